//! The profile: every parameter of a mark in one self-describing value.
//!
//! The same value stands on the command line, in a file, in a sidecar and in every report, so
//! that generation and detection cannot drift apart. It is validated once, where it is built;
//! nothing downstream re-checks. The key itself is never inside, nor are sampling parameters.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};
use crate::prf::KeyFingerprint;

/// How an error speaks of the tokenizer and the key that a profile is held against.
const GIVEN: &str = "what was given";

/// The only version of the profile's form.
pub const PROFILE_VERSION: u32 = 1;

/// The green share of the vocabulary, in (0, 1).
///
/// What a text is tested against is [`Gamma::effective`], the share after rounding down to a
/// multiple of 2^-32.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Gamma(f64);

impl Gamma {
    /// The default of the native scheme.
    pub const DEFAULT: Self = Self(0.5);

    /// Checks the range.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-32 <= value < 1.
    pub fn new(value: f64) -> Result<Self> {
        if value < 1.0 && value * 4_294_967_296.0 >= 1.0 {
            Ok(Self(value))
        } else {
            Err(Error::parameter("gamma", value, "a number above 0 and below 1, at least 2^-32"))
        }
    }

    /// The value given.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }

    /// floor(gamma * 2^32): a token is green when its word is below this.
    #[must_use]
    pub fn threshold(self) -> u32 {
        // Validated to lie in [1, 2^32), where the product is exact and the cast cuts to floor.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
        let threshold = (self.0 * 4_294_967_296.0) as u32;
        threshold
    }

    /// The exact chance that a token is green under the null: threshold / 2^32.
    #[must_use]
    pub fn effective(self) -> f64 {
        f64::from(self.threshold()) / 4_294_967_296.0
    }
}

/// The bias added to the logits of green tokens, in [0, 1000].
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Delta(f64);

impl Delta {
    /// The default of the native scheme.
    pub const DEFAULT: Self = Self(2.0);

    /// Checks the range.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 0 <= value <= 1000.
    pub fn new(value: f64) -> Result<Self> {
        if (0.0..=1000.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(Error::parameter("delta", value, "a number from 0 to 1000"))
        }
    }

    /// The value.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// The number of previous token ids that seed a token's list, at most 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextWidth(u8);

impl ContextWidth {
    /// The widest context.
    pub const MAX: u8 = 16;

    /// Checks the range.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a width above 16.
    pub fn new(value: u64) -> Result<Self> {
        match u8::try_from(value) {
            Ok(width) if width <= Self::MAX => Ok(Self(width)),
            _ => Err(Error::parameter("context_width", value, "a whole number from 0 to 16")),
        }
    }

    /// The number of ids.
    #[must_use]
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

macro_rules! serde_through_new {
    ($type:ident, $raw:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(<$raw>::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}
serde_through_new!(Gamma, f64);
serde_through_new!(Delta, f64);
serde_through_new!(ContextWidth, u64);

/// A scheme and its own parameters, tagged by name.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SchemeParameters {
    /// Kirchenbauer et al. 2023, with independent green tokens.
    GreenList {
        /// The green share.
        gamma: Gamma,
        /// The bias in logits.
        delta: Delta,
    },
    /// Aaronson 2022: keyed exponential race, distortion-free.
    Gumbel {},
}

impl SchemeParameters {
    /// The scheme's name in a profile and on the command line.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::GreenList { .. } => "green-list",
            Self::Gumbel {} => "gumbel",
        }
    }

    /// The green share of a scheme that counts.
    #[must_use]
    pub fn gamma(&self) -> Option<Gamma> {
        match self {
            Self::GreenList { gamma, .. } => Some(*gamma),
            Self::Gumbel {} => None,
        }
    }

    /// The context that the scheme uses when nothing else is said.
    #[must_use]
    pub fn default_context(&self) -> Context {
        match self {
            Self::GreenList { .. } => Context {
                width: ContextWidth(1),
                prompt: PromptContext::Tail,
                repeats: Repeats::Mark,
            },
            Self::Gumbel {} => Context {
                width: ContextWidth(4),
                prompt: PromptContext::Tail,
                repeats: Repeats::Skip,
            },
        }
    }
}

impl Default for SchemeParameters {
    fn default() -> Self {
        Self::GreenList { gamma: Gamma::DEFAULT, delta: Delta::DEFAULT }
    }
}

/// Where the seed of a token's list comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// Number of previous ids.
    pub width: ContextWidth,
    /// Whether the first tokens may take theirs from the prompt.
    pub prompt: PromptContext,
    /// What happens when a context comes again within one text.
    pub repeats: Repeats,
}

/// The context of the first generated tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptContext {
    /// The end of the prompt.
    Tail,
    /// Nothing: the first `width` generated tokens carry no mark.
    None,
}

/// The treatment of a repeated context at generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repeats {
    /// The same list again.
    Mark,
    /// No mark the second time.
    Skip,
}

/// The vocabulary that the ids belong to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerIdentity {
    /// SHA-256 of the tokenizer's canonical form, in hexadecimal digits.
    pub fingerprint: String,
    /// SHA-256 of the sorted ids (u32 LE) that are never marked.
    pub never_marked: String,
}

/// Which key, without the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyIdentity {
    /// The operator's name for the key.
    pub id: String,
    /// Tells keys apart.
    pub fingerprint: KeyFingerprint,
}

/// Every parameter of a mark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    version: u32,
    scheme: SchemeParameters,
    context: Context,
    tokenizer: TokenizerIdentity,
    key: KeyIdentity,
}

impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(expecting = "a profile", deny_unknown_fields)]
        struct Raw {
            version: u32,
            scheme: SchemeParameters,
            context: Context,
            tokenizer: TokenizerIdentity,
            key: KeyIdentity,
        }
        let raw = Raw::deserialize(deserializer)?;
        if raw.version != PROFILE_VERSION {
            return Err(serde::de::Error::custom(format!(
                "profile version {} is not known; this build reads version {PROFILE_VERSION}",
                raw.version
            )));
        }
        Self::new(raw.scheme, raw.context, raw.tokenizer, raw.key).map_err(serde::de::Error::custom)
    }
}

impl Profile {
    /// Builds a profile, refusing combinations under which the scheme marks nothing.
    ///
    /// # Errors
    /// [`Error::Parameter`] with the reason.
    pub fn new(
        scheme: SchemeParameters,
        context: Context,
        tokenizer: TokenizerIdentity,
        key: KeyIdentity,
    ) -> Result<Self> {
        let id_is_plain =
            (1..=64).contains(&key.id.chars().count()) && !key.id.chars().any(char::is_control);
        if !id_is_plain {
            let allowed = "1 to 64 characters without control characters";
            return Err(Error::parameter("key id", key.id.escape_debug(), allowed));
        }
        if context.width.get() == 0 {
            // A fixed context repeats from the second token on.
            if context.repeats == Repeats::Skip {
                return Err(Error::parameter(
                    "context_width",
                    0,
                    "at least 1 when repeated contexts are not marked: with width 0 every context \
                     is the same and one token of the text would carry the mark",
                ));
            }
            if matches!(scheme, SchemeParameters::Gumbel {}) {
                return Err(Error::parameter(
                    "context_width",
                    0,
                    "at least 1 for gumbel: with width 0 every step has the same noise and the \
                     text repeats one token",
                ));
            }
        }
        Ok(Self { version: PROFILE_VERSION, scheme, context, tokenizer, key })
    }

    /// Reads a profile file (JSON).
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::File`] naming the line, the field and the values allowed.
    pub fn read(path: &Path) -> Result<Self> {
        let text = read_object(path, "profile", "compare it with `wm profile show`")?;
        serde_json::from_str(&text).map_err(|error| {
            Error::file(
                path,
                None,
                format!("not a profile: {error}"),
                "compare it with `wm profile show`",
            )
        })
    }

    /// The scheme and its parameters.
    #[must_use]
    pub fn scheme(&self) -> &SchemeParameters {
        &self.scheme
    }

    /// The context rule.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The vocabulary.
    #[must_use]
    pub fn tokenizer(&self) -> &TokenizerIdentity {
        &self.tokenizer
    }

    /// The key's identity.
    #[must_use]
    pub fn key(&self) -> &KeyIdentity {
        &self.key
    }

    /// Checks that a tokenizer and a key are the ones this profile names; anything else would give
    /// a z near 0 that says nothing. `name` is how an error speaks of this profile.
    ///
    /// # Errors
    /// [`Error::Mismatch`] naming the field and both sides.
    pub fn require(
        &self,
        name: &str,
        tokenizer: &TokenizerIdentity,
        key: KeyFingerprint,
    ) -> Result<()> {
        self.require_tokenizer(name, tokenizer)?;
        self.require_key(name, key)
    }

    /// The tokenizer's half of [`Profile::require`].
    ///
    /// # Errors
    /// [`Error::Mismatch`].
    pub fn require_tokenizer(&self, name: &str, given: &TokenizerIdentity) -> Result<()> {
        let remedy = "name the tokenizer of the model that wrote the text with --tokenizer";
        let fields = |identity: &TokenizerIdentity| {
            [
                ("tokenizer fingerprint", identity.fingerprint.clone()),
                ("never-marked ids", identity.never_marked.clone()),
            ]
        };
        compare(fields(&self.tokenizer), name, fields(given), GIVEN, remedy)
    }

    /// The key's half of [`Profile::require`].
    ///
    /// # Errors
    /// [`Error::Mismatch`].
    pub fn require_key(&self, name: &str, given: KeyFingerprint) -> Result<()> {
        let remedy = "name the key that belongs to this profile with --key-file";
        let field = |key: KeyFingerprint| [("key fingerprint", key.to_string())];
        compare(field(self.key.fingerprint), name, field(given), GIVEN, remedy)
    }

    /// Compares what decides a detection (scheme, gamma, context width, tokenizer, key); `delta`,
    /// the rules for prompts and repeats, and the key's name do not.
    ///
    /// # Errors
    /// [`Error::Mismatch`] naming the field and both sides.
    pub fn agree(&self, name: &str, other: &Self, other_name: &str, remedy: &str) -> Result<()> {
        compare(self.deciding_fields(), name, other.deciding_fields(), other_name, remedy)
    }

    /// Compares everything that stands under `scheme` and `context` too, which [`Profile::agree`]
    /// leaves to the deciding fields; the key's name may differ.
    ///
    /// # Errors
    /// As [`Profile::agree`].
    pub fn agree_fully(
        &self,
        name: &str,
        other: &Self,
        other_name: &str,
        remedy: &str,
    ) -> Result<()> {
        self.agree(name, other, other_name, remedy)?;
        let fields = |profile: &Self| {
            let context = profile.context;
            let delta = match profile.scheme {
                SchemeParameters::GreenList { delta, .. } => delta.to_string(),
                SchemeParameters::Gumbel {} => "none".to_owned(),
            };
            [
                ("delta", delta),
                ("context prompt", format!("{:?}", context.prompt).to_lowercase()),
                ("context repeats", format!("{:?}", context.repeats).to_lowercase()),
            ]
        };
        compare(fields(self), name, fields(other), other_name, remedy)
    }

    fn deciding_fields(&self) -> [(&'static str, String); 6] {
        let gamma = self.scheme.gamma().map_or("none".to_owned(), |gamma| gamma.to_string());
        [
            ("scheme", self.scheme.name().to_owned()),
            ("gamma", gamma),
            ("context width", self.context.width.to_string()),
            ("tokenizer fingerprint", self.tokenizer.fingerprint.clone()),
            ("never-marked ids", self.tokenizer.never_marked.clone()),
            ("key fingerprint", self.key.fingerprint.to_string()),
        ]
    }
}

/// The first of the same fields of two sides that differ, as an error.
fn compare<const N: usize>(
    ours: [(&'static str, String); N],
    name: &str,
    theirs: [(&'static str, String); N],
    other_name: &str,
    remedy: &str,
) -> Result<()> {
    for ((field, left), (_, right)) in ours.into_iter().zip(theirs) {
        if left != right {
            return Err(Error::Mismatch {
                field,
                left_name: name.to_owned(),
                left,
                right_name: other_name.to_owned(),
                right,
                remedy: remedy.to_owned(),
            });
        }
    }
    Ok(())
}

/// Reads a file that is to hold a JSON object, a leading byte-order mark left out. Anything else
/// is refused without repeating a part of it: it may be a key or a text named by mistake.
///
/// # Errors
/// [`Error::Io`], or [`Error::File`] saying that the file is no `what`.
pub(crate) fn read_object(path: &Path, what: &str, remedy: &str) -> Result<String> {
    let wrong = || Error::file(path, None, format!("not a {what}: no JSON object"), remedy);
    let bytes = std::fs::read(path).map_err(|source| Error::io("read", path, source))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.trim_start().starts_with('{') { Ok(text.to_owned()) } else { Err(wrong()) }
}
