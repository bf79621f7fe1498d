//! The sampling defaults that a model brings along in `generation_config.json`.
//!
//! They are reported, not applied: whoever samples decides by flag > request > model > built-in.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::config::Object;
use crate::error::Result;

/// What a model's `generation_config.json` says; `None` where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct GenerationDefaults {
    /// The file; `None` if there is none.
    pub file: Option<PathBuf>,
    /// `false`: the model's authors decode greedily.
    pub do_sample: Option<bool>,
    /// Temperature.
    pub temperature: Option<f64>,
    /// Number of most likely tokens kept; 0 switches it off.
    pub top_k: Option<u64>,
    /// Nucleus mass.
    pub top_p: Option<f64>,
    /// Smallest probability relative to the most likely token's.
    pub min_p: Option<f64>,
    /// Mass of the typical set.
    pub typical_p: Option<f64>,
    /// Absolute probability cut-off.
    pub epsilon_cutoff: Option<f64>,
    /// Entropy-dependent probability cut-off.
    pub eta_cutoff: Option<f64>,
    /// Repetition penalty; 1 switches it off.
    pub repetition_penalty: Option<f64>,
    /// Largest length of a repeated n-gram that is refused; 0 switches it off.
    pub no_repeat_ngram_size: Option<u64>,
    /// End-of-sequence ids, in the file's order.
    pub end_ids: Option<Vec<u32>>,
    /// Beginning-of-sequence id.
    pub bos_id: Option<u32>,
}

impl GenerationDefaults {
    /// Reads `generation_config.json` of a folder; everything is `None` if there is no such file.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if it cannot be read, [`crate::Error::File`] naming the field whose
    /// type is wrong.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("generation_config.json");
        if !path.is_file() {
            return Ok(Self::default());
        }
        let object = Object::read(&path)?;
        Ok(Self {
            do_sample: object.bool("do_sample")?,
            temperature: object.f64("temperature")?,
            top_k: object.u64("top_k")?,
            top_p: object.f64("top_p")?,
            min_p: object.f64("min_p")?,
            typical_p: object.f64("typical_p")?,
            epsilon_cutoff: object.f64("epsilon_cutoff")?,
            eta_cutoff: object.f64("eta_cutoff")?,
            repetition_penalty: object.f64("repetition_penalty")?,
            no_repeat_ngram_size: object.u64("no_repeat_ngram_size")?,
            end_ids: object.ids("eos_token_id")?,
            bos_id: object.ids("bos_token_id")?.and_then(|ids| ids.first().copied()),
            file: Some(path),
        })
    }
}

/// Ids of a value that is an integer or a list of integers.
pub(super) fn ids(value: &Value) -> Option<Vec<u32>> {
    let one = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    match value {
        Value::Array(items) => items.iter().map(one).collect(),
        other => one(other).map(|id| vec![id]),
    }
}
