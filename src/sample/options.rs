//! What a caller may ask of the chain, with every field optional so that sources can be layered.
//!
//! Values are only carried here; each member checks its own when the chain is built.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::sample::order::Order;
use crate::token::TokenId;

/// Below this temperature decoding is greedy.
pub const GREEDY_BELOW: f64 = 1e-5;

/// The sampling parameters of one request.
///
/// A field that is not given leaves the decision to the next source; one that is given decides,
/// a 0 too. Ranges stand with each field; values outside are refused by
/// [`Chain::new`](crate::sample::Chain::new).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SamplingOptions {
    /// Divides the logits; 0 up to 1e-5 is greedy. At least 0, finite. Built-in: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Keeps so many of the best tokens; 0 and -1 are off. At least -1. Built-in: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<i64>,
    /// Keeps the best tokens up to this probability; 1 is off, 0 keeps the best. 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Keeps tokens of at least this share of the best token's probability; 0 is off. 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f64>,
    /// Keeps the most typical tokens up to this probability; 1 is off. 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typical_p: Option<f64>,
    /// Keeps tokens of at least this probability; 0 is off. 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon_cutoff: Option<f64>,
    /// The same, lowered where the entropy is high; 0 is off. 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta_cutoff: Option<f64>,
    /// Keeps logits within so many standard deviations of the best; 0 is off. At least 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_n_sigma: Option<f64>,
    /// Divides positive and multiplies negative logits of tokens seen; 1 is off. Above 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition_penalty: Option<f64>,
    /// Subtracted once from the logit of a token seen; 0 is off. Finite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Subtracted for each time a token was seen; 0 is off. Finite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// The three penalties count the last so many tokens of prompt and output. When not given,
    /// the order decides: 64 for `llama.cpp`, otherwise everything (repetition) and the output
    /// (frequency, presence).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalty_last_n: Option<usize>,
    /// No sequence of so many tokens appears twice; 0 is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_repeat_ngram_size: Option<usize>,
    /// Penalises continued repetitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry: Option<DryOptions>,
    /// Sometimes excludes the likely tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xtc: Option<XtcOptions>,
    /// Replaces the truncation members by an adaptive one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirostat: Option<MirostatOptions>,
    /// Added to the logits of single tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logit_bias: Option<BTreeMap<TokenId, Bias>>,
    /// Token sequences that must not appear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bad_words: Option<Vec<Vec<TokenId>>>,
    /// The only tokens allowed. Not empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tokens: Option<Vec<TokenId>>,
    /// No end token before so many generated tokens; 0 is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_tokens: Option<usize>,
    /// A truncation (XTC and Mirostat apart) leaves at least so many tokens. At least 1.
    /// Built-in: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_tokens_to_keep: Option<usize>,
    /// The order of the members. Built-in: `transformers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
}

impl SamplingOptions {
    /// These options, with what they leave open taken from `lower`: a flag over a request over a
    /// model's defaults.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        // The literal names every field, so one that is forgotten does not compile.
        Self {
            temperature: self.temperature.or(lower.temperature),
            top_k: self.top_k.or(lower.top_k),
            top_p: self.top_p.or(lower.top_p),
            min_p: self.min_p.or(lower.min_p),
            typical_p: self.typical_p.or(lower.typical_p),
            epsilon_cutoff: self.epsilon_cutoff.or(lower.epsilon_cutoff),
            eta_cutoff: self.eta_cutoff.or(lower.eta_cutoff),
            top_n_sigma: self.top_n_sigma.or(lower.top_n_sigma),
            repetition_penalty: self.repetition_penalty.or(lower.repetition_penalty),
            presence_penalty: self.presence_penalty.or(lower.presence_penalty),
            frequency_penalty: self.frequency_penalty.or(lower.frequency_penalty),
            penalty_last_n: self.penalty_last_n.or(lower.penalty_last_n),
            no_repeat_ngram_size: self.no_repeat_ngram_size.or(lower.no_repeat_ngram_size),
            dry: self.dry.or(lower.dry),
            xtc: self.xtc.or(lower.xtc),
            mirostat: self.mirostat.or(lower.mirostat),
            logit_bias: self.logit_bias.or(lower.logit_bias),
            bad_words: self.bad_words.or(lower.bad_words),
            allowed_tokens: self.allowed_tokens.or(lower.allowed_tokens),
            min_tokens: self.min_tokens.or(lower.min_tokens),
            min_tokens_to_keep: self.min_tokens_to_keep.or(lower.min_tokens_to_keep),
            order: self.order.or(lower.order),
        }
    }

    /// The built-in values: everything off, temperature 1, the `transformers` order.
    #[must_use]
    pub fn built_in() -> Self {
        Self {
            temperature: Some(1.0),
            top_k: Some(0),
            top_p: Some(1.0),
            min_p: Some(0.0),
            typical_p: Some(1.0),
            epsilon_cutoff: Some(0.0),
            eta_cutoff: Some(0.0),
            top_n_sigma: Some(0.0),
            repetition_penalty: Some(1.0),
            presence_penalty: Some(0.0),
            frequency_penalty: Some(0.0),
            no_repeat_ngram_size: Some(0),
            min_tokens: Some(0),
            min_tokens_to_keep: Some(1),
            order: Some(Order::default()),
            ..Self::default()
        }
    }
}

/// Parameters of DRY.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DryOptions {
    /// The penalty of a repetition of the allowed length; 0 is off. At least 0.
    pub multiplier: f64,
    /// Growth per further token. At least 1.
    #[serde(default = "DryOptions::default_base")]
    pub base: f64,
    /// The longest repetition without penalty, plus one. At least 1.
    #[serde(default = "DryOptions::default_allowed_length")]
    pub allowed_length: usize,
    /// Token sequences that a repetition never crosses.
    #[serde(default)]
    pub sequence_breakers: Vec<Vec<TokenId>>,
}

impl DryOptions {
    fn default_base() -> f64 {
        1.75
    }

    fn default_allowed_length() -> usize {
        2
    }

    /// The usual parameters (base 1.75, allowed length 2, no breakers) with `multiplier`.
    #[must_use]
    pub fn new(multiplier: f64) -> Self {
        Self {
            multiplier,
            base: Self::default_base(),
            allowed_length: Self::default_allowed_length(),
            sequence_breakers: Vec::new(),
        }
    }
}

/// Parameters of XTC.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XtcOptions {
    /// How often it acts; 0 is off. 0 to 1.
    pub probability: f64,
    /// From which probability on a token counts as likely. 0 to 1.
    #[serde(default = "XtcOptions::default_threshold")]
    pub threshold: f64,
}

impl XtcOptions {
    fn default_threshold() -> f64 {
        0.1
    }

    /// The usual threshold (0.1) with `probability`.
    #[must_use]
    pub fn new(probability: f64) -> Self {
        Self { probability, threshold: Self::default_threshold() }
    }
}

/// Parameters of Mirostat.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MirostatOptions {
    /// Which version, or off.
    pub mode: MirostatMode,
    /// The target surprisal in bits. Above 0.
    #[serde(default = "MirostatOptions::default_tau")]
    pub tau: f64,
    /// The learning rate. Above 0.
    #[serde(default = "MirostatOptions::default_eta")]
    pub eta: f64,
}

impl MirostatOptions {
    fn default_tau() -> f64 {
        5.0
    }

    fn default_eta() -> f64 {
        0.1
    }

    /// The usual parameters (tau 5, eta 0.1) with `mode`.
    #[must_use]
    pub fn new(mode: MirostatMode) -> Self {
        Self { mode, tau: Self::default_tau(), eta: Self::default_eta() }
    }
}

/// A version of Mirostat; the numbers 0, 1, 2 in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum MirostatMode {
    /// No Mirostat.
    Off,
    /// Version 1: estimates Zipf's exponent.
    V1,
    /// Version 2: bounds the surprisal.
    V2,
}

impl TryFrom<u8> for MirostatMode {
    type Error = Error;

    fn try_from(value: u8) -> Result<Self> {
        match value {
            0 => Ok(Self::Off),
            1 => Ok(Self::V1),
            2 => Ok(Self::V2),
            other => Err(Error::parameter("mirostat.mode", other, "0 (off), 1 or 2")),
        }
    }
}

impl From<MirostatMode> for u8 {
    fn from(mode: MirostatMode) -> Self {
        match mode {
            MirostatMode::Off => 0,
            MirostatMode::V1 => 1,
            MirostatMode::V2 => 2,
        }
    }
}

/// An addition to a logit: finite, or negative infinity, which JSON writes as `"-inf"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bias(pub f32);

impl std::str::FromStr for Bias {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.trim().parse::<f32>() {
            Ok(value) if value < f32::INFINITY => Ok(Self(value)),
            _ => Err(Error::parameter("logit_bias", text, "a finite number or -inf")),
        }
    }
}

impl Bias {
    /// Reads `ID=V`, the form of the command line.
    ///
    /// # Errors
    /// [`Error::Parameter`] when it is none.
    pub fn parse_pair(text: &str) -> Result<(TokenId, Self)> {
        let wrong =
            || Error::parameter("logit_bias", text, "ID=V, for example 260=-100 or 260=-inf");
        let (id, value) = text.split_once('=').ok_or_else(wrong)?;
        let id = id.trim().parse().map_err(|_| wrong())?;
        Ok((id, value.parse().map_err(|_| wrong())?))
    }
}

impl Serialize for Bias {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 == f32::NEG_INFINITY {
            serializer.serialize_str("-inf")
        } else {
            serializer.serialize_f32(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Bias {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bias;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a finite number or \"-inf\"")
            }

            #[expect(clippy::cast_possible_truncation, reason = "checked when the chain is built")]
            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Bias, E> {
                Ok(Bias(value as f32))
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Bias, E> {
                self.visit_f64(value as f64)
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Bias, E> {
                self.visit_f64(value as f64)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Bias, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
