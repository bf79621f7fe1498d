//! What a model file says about the model's shape and arithmetic.
//!
//! Every setting that changes the arithmetic is applied or refused by name. Settings that this
//! build has never heard of are listed as a warning.

mod gguf;
mod json;

pub(super) use gguf::from_gguf;
pub(super) use json::{Object, from_json};

use std::path::Path;

use super::cpu::Heads;
use super::rope::Rope;
use crate::error::{Error, Result};

/// The model families, as transformers names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// Llama 1 to 3, SmolLM2 and other models of that shape; Mistral in GGUF files.
    Llama,
    /// Mistral: Llama with an optional sliding window.
    Mistral,
    /// Qwen2 and Qwen2.5: biases on the queries, keys and values.
    Qwen2,
    /// Qwen3: normalised query and key heads.
    Qwen3,
}

impl Architecture {
    /// All families.
    pub const ALL: [Self; 4] = [Self::Llama, Self::Mistral, Self::Qwen2, Self::Qwen3];

    /// The name in `config.json` (`model_type`).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Mistral => "mistral",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
        }
    }

    /// The class in `config.json` (`architectures`).
    fn class(self) -> &'static str {
        match self {
            Self::Llama => "LlamaForCausalLM",
            Self::Mistral => "MistralForCausalLM",
            Self::Qwen2 => "Qwen2ForCausalLM",
            Self::Qwen3 => "Qwen3ForCausalLM",
        }
    }

    fn of(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|a| a.name() == name).ok_or_else(|| Error::Unsupported {
            what: "architecture",
            found: name.to_owned(),
            supported: Self::ALL.map(Self::name).join(", "),
        })
    }
}

/// Whether a layer has a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bias {
    /// It has none.
    Absent,
    /// The configuration says it has one.
    Present,
    /// It has one if the file holds it (GGUF files do not say).
    IfStored,
}

impl From<bool> for Bias {
    fn from(present: bool) -> Self {
        if present { Self::Present } else { Self::Absent }
    }
}

/// Where the output matrix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// It is the embedding table.
    Tied,
    /// It is a tensor of its own.
    Separate,
    /// It is the embedding table unless the file holds another (GGUF files do not say).
    TiedUnlessStored,
}

/// A model's shape and arithmetic.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) architecture: Architecture,
    pub(super) hidden: usize,
    pub(super) intermediate: usize,
    pub(super) layers: usize,
    pub(super) heads: Heads,
    pub(super) vocab: usize,
    pub(super) context: usize,
    pub(super) eps: f32,
    pub(super) rope: Rope,
    pub(super) output: Output,
    pub(super) qkv_bias: Bias,
    pub(super) o_bias: Bias,
    pub(super) mlp_bias: Bias,
    pub(super) bos_id: Option<u32>,
    pub(super) end_ids: Vec<u32>,
    pub(super) warnings: Vec<String>,
}

impl Config {
    /// Refuses sizes that no model has, before anything is multiplied or allocated.
    fn check(&self, path: &Path) -> Result<()> {
        /// Above any model there is, and small enough that products of two stay in a usize.
        const LARGEST: usize = 1 << 28;
        let sizes = [
            ("hidden_size", self.hidden),
            ("intermediate_size", self.intermediate),
            ("num_hidden_layers", self.layers),
            ("num_attention_heads", self.heads.query),
            ("num_key_value_heads", self.heads.kv),
            ("head_dim", self.heads.dim),
            ("vocab_size", self.vocab),
            ("max_position_embeddings", self.context),
            ("sliding_window", self.heads.window.unwrap_or(1)),
        ];
        if let Some((name, value)) = sizes.iter().find(|(_, v)| !(1..=LARGEST).contains(v)) {
            return Err(Error::file(
                path,
                None,
                format!("{name} is {value}"),
                format!("it must be from 1 to {LARGEST}"),
            ));
        }
        if !self.heads.query.is_multiple_of(self.heads.kv) {
            return Err(Error::file(
                path,
                None,
                format!(
                    "{} attention heads cannot share {} key and value heads",
                    self.heads.query, self.heads.kv
                ),
                "the first must be a multiple of the second",
            ));
        }
        if !(self.eps.is_finite() && self.eps >= 0.0) {
            return Err(Error::file(
                path,
                None,
                format!("rms_norm_eps is {}", self.eps),
                "it must be a finite number from 0 on",
            ));
        }
        Ok(())
    }
}
