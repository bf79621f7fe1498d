//! The API keys of a running service, which follow their file.
//!
//! The file is looked at when a request comes, a few times a second at most: a key that was
//! revoked opens nothing more within that time, without a signal and without a thread. A file that
//! cannot be read, is damaged or gone changes nothing but the log, and is tried again at every look.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use subtle::{Choice, ConditionallySelectable};

use super::file::{KeyFile, KeyStatus, StoredKey};
use super::key::ApiKey;
use super::moment::Moment;
use super::rate::{Rate, Rates};
use crate::error::{Error, Result};
use crate::server::layers::log;

/// Time between two looks at the file.
const LOOK: Duration = Duration::from_millis(250);

/// Follows one file of API keys.
#[derive(Debug)]
pub struct KeyRing {
    file: KeyFile,
    rates: Rates,
    entries: RwLock<Arc<Vec<Entry>>>,
    look: Mutex<Look>,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) stored: StoredKey,
    pub(super) rate: Option<Arc<Rate>>,
}

#[derive(Debug)]
struct Look {
    last: Instant,
    /// The file as it was before it was read the last time with success.
    seen: Option<Stamp>,
    /// What the log was told last, if the file could not be read since.
    failure: Option<Failure>,
}

/// Why the file could not be read, and as which.
#[derive(Debug, PartialEq, Eq)]
struct Failure {
    stamp: Option<Stamp>,
    reason: String,
}

/// What changes when a file is written or replaced, or when its mode or owner changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    changed: (i64, i64),
    length: u64,
    inode: u64,
}

impl KeyRing {
    /// Reads the file.
    ///
    /// # Errors
    /// As [`KeyFile::read`], and [`Error::File`] when no key in it opens anything.
    pub fn open(file: KeyFile, rates: Rates) -> Result<Self> {
        let look = Look { seen: Stamp::of(&file), last: Instant::now(), failure: None };
        let keys = file.read()?;
        let now = Moment::now();
        if !keys.iter().any(|key| key.status(now) == KeyStatus::Active) {
            return Err(Error::file(
                file.path(),
                None,
                format!("none of its {} API keys is active, so that nobody could ask", keys.len()),
                "add one with `wm apikey add NAME --role reviewer`",
            ));
        }
        let entries = RwLock::new(Arc::new(entries(keys, &[], &rates)));
        Ok(Self { file, rates, entries, look: Mutex::new(look) })
    }

    /// The entry of a key, whatever its status. Every stored hash is compared, each in constant
    /// time.
    pub(super) fn find(&self, key: &ApiKey) -> Option<Entry> {
        let entries = self.current();
        let hash = key.hash();
        let (mut place, mut found) = (0_u64, Choice::from(0));
        for (index, entry) in (0..).zip(entries.iter()) {
            let same = entry.stored.hash().matches(&hash);
            place.conditional_assign(&index, same);
            found |= same;
        }
        let place = bool::from(found).then_some(place)?;
        entries.get(usize::try_from(place).ok()?).cloned()
    }

    /// The entry with this name.
    pub(super) fn named(&self, name: &str) -> Option<Entry> {
        self.current().iter().find(|entry| entry.stored.name == name).cloned()
    }

    fn current(&self) -> Arc<Vec<Entry>> {
        // Somebody else looks when the lock is taken.
        if let Ok(mut look) = self.look.try_lock()
            && look.last.elapsed() >= LOOK
        {
            look.last = Instant::now();
            let stamp = Stamp::of(&self.file);
            if stamp != look.seen {
                self.read_again(stamp, &mut look);
            }
        }
        Arc::clone(&self.entries.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Only what was read counts as seen: a key that was revoked must not stay valid because the
    /// file could not be read at the first try.
    fn read_again(&self, stamp: Option<Stamp>, look: &mut Look) {
        match self.file.read() {
            Ok(keys) => {
                (look.seen, look.failure) = (stamp, None);
                log(&format!("read {} API keys again", keys.len()));
                let mut held = self.entries.write().unwrap_or_else(PoisonError::into_inner);
                *held = Arc::new(entries(keys, &held, &self.rates));
            }
            Err(error) => {
                let failure = Some(Failure { stamp, reason: error.to_string() });
                if look.failure != failure {
                    log(&format!("the API keys stay as they were: {error}"));
                    look.failure = failure;
                }
            }
        }
    }
}

/// Entries for the keys; one that was there before keeps what it has used of its rate.
fn entries(keys: Vec<StoredKey>, before: &[Entry], rates: &Rates) -> Vec<Entry> {
    let known: std::collections::HashMap<&str, &Entry> =
        before.iter().map(|entry| (entry.stored.name.as_str(), entry)).collect();
    let rate = |key: &StoredKey| match known.get(key.name.as_str()) {
        Some(entry) if entry.stored.role == key.role => entry.rate.clone(),
        _ => rates.limiter(key.role).map(Arc::new),
    };
    keys.into_iter().map(|key| Entry { rate: rate(&key), stored: key }).collect()
}

impl Stamp {
    fn of(file: &KeyFile) -> Option<Self> {
        let metadata = fs::metadata(file.path()).ok()?;
        Some(Self {
            modified: metadata.modified().ok(),
            changed: changed(&metadata),
            length: metadata.len(),
            inode: inode(&metadata),
        })
    }
}

/// When content, mode or owner changed, in seconds and nanoseconds.
#[cfg(unix)]
fn changed(metadata: &fs::Metadata) -> (i64, i64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn changed(_metadata: &fs::Metadata) -> (i64, i64) {
    (0, 0)
}

#[cfg(unix)]
pub(in crate::server) fn inode(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
pub(in crate::server) fn inode(_metadata: &fs::Metadata) -> u64 {
    0
}
