//! What an operator decides about generation: the policy, its bounds, and the room there is.
//!
//! Nothing of this can be set by a request.

use serde::{Deserialize, Deserializer, Serialize};

use super::bounds::EnforceBounds;
use crate::error::{Error, Result};

/// Who decides whether a text is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Every text is marked; a request that asks otherwise, or that would weaken the mark beyond
    /// [`EnforceBounds`], is refused.
    Enforce,
    /// Texts are marked unless a request says `"watermark": false`.
    #[default]
    DefaultOn,
    /// Texts are marked when a request says `"watermark": true` or names a profile.
    OptIn,
}

impl Policy {
    const ALL: [(&'static str, Self); 3] =
        [("enforce", Self::Enforce), ("default-on", Self::DefaultOn), ("opt-in", Self::OptIn)];
}

impl std::str::FromStr for Policy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, policy)| policy).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name).join(", ");
            Error::parameter("watermark policy", text.escape_debug(), names)
        })
    }
}

/// The operator's side of generation: the table `[generation]` of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GenerationSettings {
    /// Who decides whether a text is marked.
    pub policy: Policy,
    /// Texts that step together. 1 to 1024.
    pub max_batch: usize,
    /// Texts that may wait for a place. At most 100000.
    pub queue: usize,
    /// Tokens, of prompts and new ones together, that all texts under way may hold in their
    /// caches. At least 1.
    pub cache_tokens: usize,
    /// Prompt tokens of one text that a step reads. At least 1.
    pub prompt_chunk: usize,
    /// Threads of the engine; one per core when not given. 1 to 512.
    pub threads: Option<usize>,
    /// Where the model computes: `auto`, `cpu`, `cuda:0`. These four are names that whoever
    /// loads the model reads; what is not given is `auto`, and `off` for the last.
    pub device: Option<String>,
    /// The numbers it computes in: `auto`, `f32`, `bf16`.
    pub dtype: Option<String>,
    /// Where tokens are drawn: `auto`, `cpu`.
    pub sampler: Option<String>,
    /// Whether passes have one shape: `off`, `on`, or their number of rows; a file may also say
    /// true or false, and the number as such.
    #[serde(deserialize_with = "switch_or_rows")]
    pub deterministic: Option<String>,
    /// Further names under which requests may ask for the model.
    pub aliases: Vec<String>,
    /// Alternatives that a request may ask for at each token. At most 100.
    pub max_logprobs: usize,
    /// What a request may do to sampling under [`Policy::Enforce`].
    pub enforce: EnforceBounds,
}

/// A switch in any of the forms that TOML has for one, as the text that flags have.
fn switch_or_rows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "true, false, a number of rows, or one of them as text")]
    enum Raw {
        Switch(bool),
        Rows(u64),
        Text(String),
    }
    Ok(Some(match Raw::deserialize(deserializer)? {
        Raw::Switch(true) => "on".to_owned(),
        Raw::Switch(false) => "off".to_owned(),
        Raw::Rows(rows) => rows.to_string(),
        Raw::Text(text) => text,
    }))
}

impl Default for GenerationSettings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            max_batch: 8,
            queue: 64,
            cache_tokens: 32_768,
            prompt_chunk: 64,
            threads: None,
            device: None,
            dtype: None,
            sampler: None,
            deterministic: None,
            aliases: Vec::new(),
            max_logprobs: 20,
            enforce: EnforceBounds::default(),
        }
    }
}

impl GenerationSettings {
    /// Checks every range.
    ///
    /// # Errors
    /// [`Error::Parameter`] naming the setting.
    pub fn check(&self) -> Result<()> {
        let within = |name, value: usize, least: usize, most: usize| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(Error::parameter(name, value, format!("{least} to {most}")))
        };
        within("generation.max_batch", self.max_batch, 1, 1024)?;
        within("generation.queue", self.queue, 0, 100_000)?;
        within("generation.cache_tokens", self.cache_tokens, 1, usize::MAX)?;
        within("generation.prompt_chunk", self.prompt_chunk, 1, usize::MAX)?;
        within("generation.threads", self.threads.unwrap_or(1), 1, 512)?;
        within("generation.max_logprobs", self.max_logprobs, 0, 100)?;
        self.enforce.check()
    }
}
