//! API keys: 256 random bits, shown once and stored as a hash.
//!
//! A key is `gmk_`, 64 hexadecimal digits and 8 of a checksum, so that one that lost a piece on
//! its way is told from one that is unknown. Nobody can guess 256 random bits, however fast the
//! hash: the slow hashes that protect passwords would only make every request slow.

use secrecy::zeroize::Zeroize;
use secrecy::{ExposeSecret, SecretBox, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::error::{Error, Result};
use crate::prf::{from_hex, hex};

const START: &str = "gmk_";
const HASH_TAG: &[u8] = b"greenmark/api-key/1";
const CHECKSUM_TAG: &[u8] = b"greenmark/api-key-checksum/1";

/// The form of a key, for messages.
pub(super) const FORM: &str = "gmk_ and 72 hexadecimal digits";

/// A secret API key. It never appears in `Debug`, logs or files.
pub struct ApiKey(SecretBox<[u8; 32]>);

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKey")
    }
}

impl ApiKey {
    /// A fresh key from the operating system's generator.
    ///
    /// # Errors
    /// [`Error::Backend`] when the system has no randomness to give.
    pub fn generate() -> Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|source| Error::backend("asking the system for a random key", source))?;
        Ok(Self::from_bytes(bytes))
    }

    /// Reads a key as [`ApiKey::text`] writes it; none when it is anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(START)?;
        let (secret, checksum) = digits.split_at_checked(64)?;
        let key = Self::from_bytes(from_hex::<32>(secret)?);
        let found = from_hex::<4>(checksum)?;
        bool::from(found.ct_eq(&key.checksum())).then_some(key)
    }

    /// The key as it is shown to its owner.
    #[must_use]
    pub fn text(&self) -> SecretString {
        let mut secret = hex(self.0.expose_secret());
        let text = format!("{START}{secret}{}", hex(&self.checksum()));
        secret.zeroize();
        text.into()
    }

    /// What is stored of it.
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        KeyHash(self.digest(HASH_TAG))
    }

    fn from_bytes(mut bytes: [u8; 32]) -> Self {
        let key =
            Self(SecretBox::init_with_mut(|secret: &mut [u8; 32]| secret.copy_from_slice(&bytes)));
        bytes.zeroize();
        key
    }

    fn checksum(&self) -> [u8; 4] {
        let [a, b, c, d, ..] = self.digest(CHECKSUM_TAG);
        [a, b, c, d]
    }

    fn digest(&self, tag: &[u8]) -> [u8; 32] {
        Sha256::new().chain_update(tag).chain_update(self.0.expose_secret()).finalize().into()
    }
}

/// SHA-256 of a tag and an API key: 64 hexadecimal digits in a file.
#[derive(Clone, Copy)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    /// Whether both belong to one key, in a time that does not depend on where they differ.
    pub(super) fn matches(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl std::fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHash")
    }
}

impl Serialize for KeyHash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for KeyHash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        from_hex(&text)
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("the hash of a key is 64 hexadecimal digits"))
    }
}
