//! The 256-bit secret of a mark: its file, its fingerprint, and nothing that prints it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use secrecy::zeroize::{Zeroize, Zeroizing};
use secrecy::{ExposeSecret, SecretBox};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::prf::{from_hex, hex};

const FINGERPRINT_TAG: &[u8] = b"greenmark/key-fingerprint/1";
const FORM: &str = "64 hexadecimal digits and a newline";

/// Bytes of the longest file that is read for a key.
const MAX_BYTES: u64 = 1024;

/// A secret key. It never appears in `Debug`, logs, arguments or requests.
pub struct Key(SecretBox<[u8; 32]>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", self.fingerprint())
    }
}

impl Clone for Key {
    fn clone(&self) -> Self {
        Self::from_bytes(*self.expose())
    }
}

impl Key {
    /// A fresh key from the operating system's generator.
    ///
    /// # Errors
    /// [`Error::Backend`] when the system has no randomness to give.
    pub fn generate() -> Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|source| Error::backend("asking the system for a random key", source))?;
        let key = Self::from_bytes(bytes);
        bytes.zeroize();
        Ok(key)
    }

    /// The key with these bytes.
    #[must_use]
    pub fn from_bytes(mut bytes: [u8; 32]) -> Self {
        let key =
            Self(SecretBox::init_with_mut(|secret: &mut [u8; 32]| secret.copy_from_slice(&bytes)));
        bytes.zeroize();
        key
    }

    /// The key written as 64 hexadecimal digits, as a key file holds it (a final line break is
    /// allowed, nothing else).
    ///
    /// # Errors
    /// [`Error::Parameter`] that never repeats the text.
    pub fn from_hex(text: &str) -> Result<Self> {
        let digits = text.strip_suffix('\n').unwrap_or(text);
        let digits = digits.strip_suffix('\r').unwrap_or(digits);
        let wrong = |found: String| Error::parameter("key", found, FORM);
        if digits.len() != 64 {
            return Err(wrong(format!("text of {} characters", digits.chars().count())));
        }
        let place = digits.bytes().position(|digit| !digit.is_ascii_hexdigit());
        from_hex(digits).map(Self::from_bytes).ok_or_else(|| {
            wrong(format!("a non-hexadecimal character at place {}", place.unwrap_or_default()))
        })
    }

    /// Reads a key file. A file that others can read is refused.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read, [`Error::File`] when its mode or content is wrong.
    pub fn read(path: &Path) -> Result<Self> {
        let action = "read key file";
        let file = open_private("key", action, path, "name a file; `wm keygen` makes one")?;
        // One allocation: a growing one would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(2048));
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|source| Error::io(action, path, source))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(Error::file(
                path,
                None,
                format!("over {MAX_BYTES} bytes are no key file"),
                format!("a key file is {FORM}; `wm keygen` makes one"),
            ));
        }
        let text = std::str::from_utf8(&bytes).unwrap_or("");
        Self::from_hex(text).map_err(|error| match error {
            Error::Parameter { value, .. } => Error::file(
                path,
                None,
                format!("not a key ({value})"),
                format!("a key file is {FORM}; `wm keygen` makes one"),
            ),
            other => other,
        })
    }

    /// Writes the key to a new file with mode 0600; an existing file is never overwritten.
    ///
    /// # Errors
    /// [`Error::Io`]; its kind is `AlreadyExists` when the file is there.
    pub fn write_new(&self, path: &Path) -> Result<()> {
        let failed = |source| Error::io("create key file", path, source);
        let text = Zeroizing::new(hex(self.expose()));
        // Written whole beside its place and then linked there, so that no reader meets half a
        // key and a full disk leaves none. Temporary files have mode 0600.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        // The system's error names the temporary file, which says nothing to the reader.
        let mut file =
            tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(error.kind().into()))?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.write_all(b"\n"))
            .and_then(|()| file.as_file().sync_all())
            .map_err(failed)?;
        file.persist_noclobber(path).map(drop).map_err(|error| failed(error.error))
    }

    /// The first 8 bytes of SHA-256(tag || key), which tell keys apart and give nothing away.
    #[must_use]
    pub fn fingerprint(&self) -> KeyFingerprint {
        let digest =
            Sha256::new().chain_update(FINGERPRINT_TAG).chain_update(self.expose()).finalize();
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&digest[..8]);
        KeyFingerprint(bytes)
    }

    /// The bytes, for the PRFs of this crate only.
    pub(crate) fn expose(&self) -> &[u8; 32] {
        self.0.expose_secret()
    }
}

/// Opens a file of secrets, which nobody else may read or write. What is checked is the file that
/// is open, whatever stands at its path by then.
///
/// # Errors
/// [`Error::Io`], saying `action`, when it cannot be opened; [`Error::File`] for what is no file,
/// with `remedy`, and for one that others may read or write.
pub(crate) fn open_private(
    what: &str,
    action: &'static str,
    path: &Path,
    remedy: &str,
) -> Result<File> {
    let failed = |source| Error::io(action, path, source);
    let irregular = || Error::file(path, None, "not a regular file", remedy);
    // To open a pipe may wait for ever.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(irregular());
    }
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(irregular());
    }
    refuse_shared(what, path, &metadata)?;
    Ok(file)
}

/// Refuses a file of secrets that others may read or write.
///
/// # Errors
/// [`Error::File`] with the command that mends it.
#[cfg(unix)]
fn refuse_shared(what: &str, path: &Path, metadata: &fs::Metadata) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o777;
    let others = mode & 0o077;
    if others == 0 {
        return Ok(());
    }
    Err(Error::file(
        path,
        None,
        format!("the {what} can be read by others (mode {mode:04o})"),
        format!("run: chmod 600 {}", path.display()),
    ))
}

#[cfg(not(unix))]
fn refuse_shared(_what: &str, _path: &Path, _metadata: &fs::Metadata) -> Result<()> {
    Ok(())
}

/// Tells keys apart without giving them away: 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyFingerprint([u8; 8]);

impl std::fmt::Display for KeyFingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl std::fmt::Debug for KeyFingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for KeyFingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for KeyFingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom("a key fingerprint is 16 hexadecimal digits");
        from_hex(&text).map(Self).ok_or_else(wrong)
    }
}
