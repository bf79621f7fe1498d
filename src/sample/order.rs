//! The order of the chain's members, as data.
//!
//! Engines disagree about the order, and the same values give other distributions in another
//! order, so it is a parameter: a preset named after an engine, or a list of names. A preset is
//! an order and the scope of the penalties, never values.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::sample::history::PenaltyScope;
use crate::sample::processors::{MEMBERS, member};

const WATERMARK: &str = "watermark";
/// How many tokens llama.cpp's penalties look back by default.
const LLAMA_CPP_WINDOW: usize = 64;

/// An order of members; the watermark is its last.
///
/// Its text form is the preset's name or the members' names separated by `;`. Names may be
/// written with `-` for `_`; the name of an option (`repetition_penalty`) stands for its member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Order {
    preset: Option<Preset>,
    members: Vec<&'static str>,
}

/// The orders that have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The order of transformers' `generate`.
    Transformers,
    /// The order of vLLM.
    Vllm,
    /// The order of llama.cpp.
    LlamaCpp,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 3] = [Self::Transformers, Self::Vllm, Self::LlamaCpp];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Transformers => "transformers",
            Self::Vllm => "vllm",
            Self::LlamaCpp => "llama.cpp",
        }
    }

    /// Its members in order. Each member of the registry stands in each preset.
    #[must_use]
    pub fn members(self) -> &'static [&'static str] {
        match self {
            Self::Transformers => &[
                "allowed_tokens",
                "logit_bias",
                "repetition",
                "frequency",
                "presence",
                "dry",
                "no_repeat_ngram",
                "bad_words",
                "min_tokens",
                "temperature",
                "top_n_sigma",
                "top_k",
                "top_p",
                "min_p",
                "xtc",
                "typical",
                "epsilon",
                "eta",
                "mirostat",
                "watermark",
            ],
            Self::Vllm => &[
                "allowed_tokens",
                "bad_words",
                "min_tokens",
                "logit_bias",
                "repetition",
                "frequency",
                "presence",
                "dry",
                "no_repeat_ngram",
                "temperature",
                "min_p",
                "top_n_sigma",
                "top_k",
                "top_p",
                "xtc",
                "typical",
                "epsilon",
                "eta",
                "mirostat",
                "watermark",
            ],
            Self::LlamaCpp => &[
                "allowed_tokens",
                "logit_bias",
                "bad_words",
                "min_tokens",
                "repetition",
                "frequency",
                "presence",
                "dry",
                "no_repeat_ngram",
                "top_n_sigma",
                "top_k",
                "typical",
                "top_p",
                "min_p",
                "epsilon",
                "eta",
                "xtc",
                "temperature",
                "mirostat",
                "watermark",
            ],
        }
    }
}

impl From<Preset> for Order {
    fn from(preset: Preset) -> Self {
        Self { preset: Some(preset), members: preset.members().to_vec() }
    }
}

impl Default for Order {
    fn default() -> Self {
        Preset::Transformers.into()
    }
}

impl Order {
    /// The members' names, the watermark last.
    #[must_use]
    pub fn members(&self) -> &[&'static str] {
        &self.members
    }

    /// The preset, unless the order was given member by member.
    #[must_use]
    pub fn preset(&self) -> Option<Preset> {
        self.preset
    }

    /// What the repetition penalty counts in this order.
    #[must_use]
    pub fn repetition_scope(&self) -> PenaltyScope {
        match self.preset {
            Some(Preset::LlamaCpp) => PenaltyScope::Last(LLAMA_CPP_WINDOW),
            _ => PenaltyScope::PromptAndOutput,
        }
    }

    /// What the frequency and presence penalties count in this order.
    #[must_use]
    pub fn output_scope(&self) -> PenaltyScope {
        match self.preset {
            Some(Preset::LlamaCpp) => PenaltyScope::Last(LLAMA_CPP_WINDOW),
            _ => PenaltyScope::Output,
        }
    }
}

impl std::fmt::Display for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.preset {
            Some(preset) => f.write_str(preset.name()),
            None => f.write_str(&self.members.join(";")),
        }
    }
}

impl FromStr for Order {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wanted = text.trim();
        if let Some(preset) = Preset::ALL.into_iter().find(|preset| preset.name() == wanted) {
            return Ok(preset.into());
        }
        let mut members: Vec<&'static str> = Vec::new();
        for part in wanted.split(';').map(str::trim) {
            let name = resolve(part).ok_or_else(|| unknown(part))?;
            if members.contains(&name) {
                return Err(Error::parameter("order", text, format!("{name} once")));
            }
            if members.last() == Some(&WATERMARK) {
                return Err(Error::parameter(
                    "order",
                    text,
                    format!("the watermark last: {name} stands after it"),
                ));
            }
            members.push(name);
        }
        if members.last() != Some(&WATERMARK) {
            members.push(WATERMARK);
        }
        Ok(Self { preset: None, members })
    }
}

/// The member that `part` names, by its own name or by an option that only it has.
fn resolve(part: &str) -> Option<&'static str> {
    let name = part.replace('-', "_");
    if let Some(member) = member(&name) {
        return Some(member.name);
    }
    let mut readers = MEMBERS.iter().filter(|member| member.options.contains(&name.as_str()));
    match (readers.next(), readers.next()) {
        (Some(only), None) => Some(only.name),
        _ => None,
    }
}

fn unknown(part: &str) -> Error {
    let presets = Preset::ALL.map(Preset::name).join(", ");
    let members: Vec<_> = MEMBERS.iter().map(|member| member.name).collect();
    Error::parameter(
        "order",
        part,
        format!("{presets}, or names separated by ';' out of {}", members.join(", ")),
    )
}

impl TryFrom<String> for Order {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Order> for String {
    fn from(order: Order) -> Self {
        order.to_string()
    }
}
