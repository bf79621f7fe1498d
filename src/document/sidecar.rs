//! What `wm generate --out FILE` leaves beside a text, in `FILE.wm.json`.
//!
//! A sidecar says with which profile a text was marked and how uncertain the model was at each
//! token. It never holds the key or the prompt.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::detect::entropy::{Chances, TokenUncertainty};
use crate::error::{Error, Result};
use crate::prf::hex;
use crate::profile::{Profile, read_object};
use crate::token::{Piece, TokenId};

const VERSION: u32 = 1;

/// The sidecar of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "a sidecar", deny_unknown_fields)]
pub struct Sidecar {
    version: u32,
    /// The profile of the mark.
    pub profile: Profile,
    /// SHA-256 of the text, in hexadecimal digits.
    pub text_sha256: String,
    /// The effective sampling parameters.
    pub generation: Value,
    /// One entry per generated token, in order.
    pub entropies: Vec<TokenEntropy>,
}

/// The model's uncertainty before one token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntropy {
    /// Byte offset of the token in the text.
    pub byte: usize,
    /// Shannon entropy of the distribution before the mark, in nats.
    pub nats: f64,
    /// The token; absent in sidecars of the first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<TokenId>,
    /// What the mark did to the step; absent in sidecars of the first version and for schemes
    /// without a green list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chances: Option<Chances>,
}

impl TokenEntropy {
    /// Whether every number lies where such numbers can lie.
    fn is_possible(&self) -> bool {
        /// The entropy of a uniform choice among 2^32 tokens.
        const MOST_NATS: f64 = 22.2;
        let share = |value: f64| (0.0..=1.0).contains(&value);
        // Rounding may leave a sum of shares a hair above 1.
        let nearly_share = |value: f64| (0.0..1.0 + 1e-6).contains(&value);
        (0.0..=MOST_NATS).contains(&self.nats)
            && self.chances.is_none_or(|chances| {
                nearly_share(chances.spike_entropy)
                    && share(chances.probability)
                    && share(chances.step_green)
                    && share(chances.token_green)
            })
    }
}

/// The sidecar's place: the text's file name with `.wm.json` added.
#[must_use]
pub fn sidecar_path(text: &Path) -> PathBuf {
    let mut name = text.as_os_str().to_owned();
    name.push(".wm.json");
    PathBuf::from(name)
}

impl Sidecar {
    /// The sidecar of `text`.
    #[must_use]
    pub fn new(
        profile: Profile,
        text: &[u8],
        generation: Value,
        entropies: Vec<TokenEntropy>,
    ) -> Self {
        Self { version: VERSION, profile, text_sha256: sha256_hex(text), generation, entropies }
    }

    /// Reads a sidecar.
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::File`] when the content is no sidecar of this version.
    pub fn read(path: &Path) -> Result<Self> {
        let remedy = "pass --ignore-sidecar to detect without it";
        let text = read_object(path, "sidecar", remedy)?;
        let wrong = |problem: String| Error::file(path, None, problem, remedy);
        let sidecar: Self = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("not a sidecar: {error}")))?;
        if sidecar.version != VERSION {
            return Err(wrong(format!("sidecar version {} is not known", sidecar.version)));
        }
        if let Some(index) = sidecar.entropies.iter().position(|entry| !entry.is_possible()) {
            let entry = serde_json::to_string(&sidecar.entropies[index]).unwrap_or_default();
            return Err(wrong(format!(
                "entropies[{index}] holds a number that cannot be: {entry}"
            )));
        }
        Ok(sidecar)
    }

    /// The uncertainty of each of `pieces`, the tokens of the text that the sidecar belongs to.
    ///
    /// A token has one when an entry stands at its first byte and is the same token: by its id or,
    /// where an entry has none, by ending at the same byte. Decoding and encoding do not always
    /// give the tokens of generation back.
    #[must_use]
    pub fn align(&self, pieces: &[Piece]) -> Vec<Option<TokenUncertainty>> {
        let end = pieces.last().map_or(0, |piece| piece.bytes.end);
        let mut entries = self.entropies.iter().enumerate().peekable();
        let mut aligned = Vec::with_capacity(pieces.len());
        for piece in pieces {
            while entries.next_if(|(_, entry)| entry.byte < piece.bytes.start).is_some() {}
            let mut found = None;
            while let Some((index, entry)) =
                entries.next_if(|(_, entry)| entry.byte == piece.bytes.start)
            {
                let next = self.entropies.get(index + 1).map_or(end, |next| next.byte);
                let same = entry.id.map_or(next == piece.bytes.end, |id| id == piece.id);
                if same && found.is_none() {
                    found = Some(TokenUncertainty { entropy: entry.nats, chances: entry.chances });
                }
            }
            aligned.push(found);
        }
        aligned
    }

    /// Writes the sidecar.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|source| Error::backend("writing a sidecar as JSON", source))?;
        std::fs::write(path, text + "\n").map_err(|source| Error::io("write", path, source))
    }

    /// Whether the sidecar belongs to `text`.
    #[must_use]
    pub fn belongs_to(&self, text: &[u8]) -> bool {
        self.text_sha256 == sha256_hex(text)
    }
}

/// SHA-256 in hexadecimal digits, as sidecars and reports name inputs.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
