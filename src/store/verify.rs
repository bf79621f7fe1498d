//! Is a file the one that was meant: its size, its SHA-256, and the stamp that remembers a check.
//!
//! A stamp is no proof against somebody who can write into the cache; it tells a file that was
//! checked from one that was changed, cut or half written since.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::prf::hex;

const CHUNK: usize = 1 << 18;

/// Copies at most `limit` bytes and hashes them. A source that holds more is reported as holding
/// `limit + 1`, so that no crafted archive fills the disk.
pub(super) fn copy_hashed(
    from: &mut dyn Read,
    to: &mut dyn Write,
    limit: u64,
) -> io::Result<(u64, String)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    let mut count = 0_u64;
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        count += read as u64;
        if count > limit {
            return Ok((limit.saturating_add(1), String::new()));
        }
        hasher.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
    }
    Ok((count, hex(&hasher.finalize())))
}

/// The SHA-256 of a file, in lower-case hexadecimal digits.
pub(super) fn sha256_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    copy_hashed(&mut file, &mut io::sink(), u64::MAX).map(|(_, sha256)| sha256)
}

/// What was true of a file when its SHA-256 was last computed.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stamp {
    sha256: String,
    bytes: u64,
    /// Modification time in nanoseconds since 1970, as text: it exceeds 2^53.
    modified_ns: String,
}

fn stamp_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".verified");
    name.into()
}

/// What a file looked like from outside at one moment.
#[derive(Debug)]
pub(super) struct Seen {
    /// Its size.
    pub(super) bytes: u64,
    modified_ns: String,
}

impl Seen {
    /// Looks at a file now.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        // A time before 1970 never matches a later one, which only costs another check.
        let ns = modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        Ok(Self { bytes: metadata.len(), modified_ns: ns.to_string() })
    }
}

/// The SHA-256 in the stamp, if the file has not changed since it was written.
pub(super) fn stamped(path: &Path) -> Option<String> {
    let stamp: Stamp = serde_json::from_slice(&fs::read(stamp_path(path)).ok()?).ok()?;
    let now = Seen::of(path).ok()?;
    (stamp.bytes == now.bytes && stamp.modified_ns == now.modified_ns).then_some(stamp.sha256)
}

/// Writes the stamp of a file that had this SHA-256 and has not changed since it was `seen`.
///
/// `seen` is taken before the bytes are read, so that a change while they are hashed leaves a
/// stamp that does not match. A cache that cannot be written to costs a hash at every use,
/// nothing else, so a failure is not reported.
pub(super) fn write_stamp(path: &Path, seen: Seen, sha256: &str) {
    let write = || -> io::Result<()> {
        let stamp =
            Stamp { sha256: sha256.to_owned(), bytes: seen.bytes, modified_ns: seen.modified_ns };
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        // Others who share the cache read the stamp too.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
        let mut file = builder.prefix(".stamp-").tempfile_in(folder)?;
        serde_json::to_writer(&mut file, &stamp)?;
        file.write_all(b"\n")?;
        file.persist(stamp_path(path)).map_err(|error| error.error)?;
        Ok(())
    };
    let _ = write();
}
