//! The fields of a detection request, as written.

use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::Value;

use super::capped::Capped;
use super::input::RawInput;
use crate::server::access::{Caller, Role};
use crate::server::error::ApiError;
use crate::server::limits::Limits;
use crate::token::TokenId;

/// A detection request. [`Plan::resolve`](super::Plan::resolve) says what each field may be.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::server) struct DetectRequest {
    pub(super) text: Option<String>,
    pub(super) tokens: Option<Vec<TokenId>>,
    pub(super) inputs: Option<Capped<RawInput, { Limits::MOST_INPUTS }>>,
    /// The caller's name for a line of a batch.
    pub(in crate::server) id: Option<Value>,
    pub(super) profile: Option<String>,
    pub(super) profiles: Option<Names>,
    pub(super) detail: Option<RawDetail>,
    pub(super) normalize: Option<Capped<String, 16>>,
    pub(super) windows: Option<bool>,
    pub(super) sentences: Option<bool>,
    pub(super) entropy: Option<bool>,
    pub(super) prompt: Option<String>,
    pub(super) alpha: Option<f64>,
    pub(super) z_threshold: Option<f64>,
    pub(super) min_scored: Option<u64>,
    pub(super) format: Option<RawForm>,
    pub(super) name: Option<String>,
}

/// How much a report says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::server) enum RawDetail {
    Verdict,
    Report,
    Tokens,
}

/// The form of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::server) enum RawForm {
    Json,
    Html,
}

/// Names of profiles.
#[derive(Debug)]
pub(in crate::server) enum Names {
    /// `"all"`.
    All,
    /// A list.
    These(Vec<String>),
}

impl DetectRequest {
    /// A request under the profile of this name, or the default one, that asks for nothing more.
    pub(in crate::server) fn of_profile(profile: Option<String>) -> Self {
        Self { profile, ..Self::default() }
    }

    /// Refuses what the role of the caller does not open: scores, and anything that moves the
    /// verdict, are an oracle for forging and scrubbing marks.
    ///
    /// # Errors
    /// 403 naming the field.
    pub(super) fn admit(&self, caller: &Caller) -> Result<(), ApiError> {
        if caller.role > Role::Public {
            return Ok(());
        }
        let asked = [
            ("detail", self.detail.is_some_and(|detail| detail != RawDetail::Verdict)),
            ("normalize", self.normalize.is_some()),
            ("windows", self.windows.is_some()),
            ("sentences", self.sentences.is_some()),
            ("entropy", self.entropy.is_some()),
            ("prompt", self.prompt.is_some()),
            ("alpha", self.alpha.is_some()),
            ("z_threshold", self.z_threshold.is_some()),
            ("min_scored", self.min_scored.is_some()),
            ("format", self.format.is_some()),
            ("name", self.name.is_some()),
        ];
        match asked.into_iter().find(|(_, is_asked)| *is_asked) {
            None => Ok(()),
            Some((field, _)) => {
                let what = if field == "detail" {
                    "`detail` other than `verdict`".to_owned()
                } else {
                    format!("the field `{field}`")
                };
                let message = format!("{what} needs a key of the role {}", Role::Reviewer);
                Err(ApiError::forbidden("role", message).param(field))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NamesVisitor)
    }
}

/// An untagged enum would not say what is wrong.
struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = Names;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of names, or \"all\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Names, E> {
        match text {
            "all" => Ok(Names::All),
            _ => Err(E::invalid_type(serde::de::Unexpected::Other("another text"), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Names, A::Error> {
        let Capped::<_, 1024>(names) = Capped::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(Names::These(names))
    }
}
