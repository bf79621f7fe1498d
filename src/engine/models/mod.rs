//! The model families, one self-contained file each, written in the operations of
//! [`super::ops::Ops`] and in the tensor names of transformers checkpoints.

mod llama;
mod qwen2;
mod qwen3;

use super::batch::Pass;
use super::config::{Architecture, Bias, Config};
use super::ops::Ops;
use super::scores::Scores;
use super::weights::Weights;
use crate::error::Result;

/// A causal language model.
pub(super) trait Causal: Send + Sync {
    /// Runs the rows of a pass through the model, appends to the caches (without advancing
    /// them) and returns the logits of the wanted rows.
    fn forward(&self, pass: &mut Pass<'_>) -> Result<Scores>;
}

/// Loads the model that `config` describes.
pub(super) fn load<O: Ops>(
    ops: &O,
    config: &Config,
    weights: &Weights<'_>,
) -> Result<Box<dyn Causal>> {
    Ok(match config.architecture {
        Architecture::Llama | Architecture::Mistral => {
            Box::new(llama::Llama::load(ops, config, weights)?)
        }
        Architecture::Qwen2 => Box::new(qwen2::Qwen2::load(ops, config, weights)?),
        Architecture::Qwen3 => Box::new(qwen3::Qwen3::load(ops, config, weights)?),
    })
}

/// Loads `{name}.weight` of `columns` x `inputs` and `{name}.bias`.
fn linear<O: Ops>(
    ops: &O,
    weights: &Weights<'_>,
    name: &str,
    [columns, inputs]: [usize; 2],
    bias: Bias,
) -> Result<O::Linear> {
    let weight = weights.tensor(&format!("{name}.weight"), &[columns, inputs])?;
    let name = format!("{name}.bias");
    let bias = match bias {
        Bias::Absent => None,
        Bias::Present => Some(weights.tensor(&name, &[columns])?),
        Bias::IfStored => weights.optional(&name, &[columns])?,
    };
    ops.load_linear(&weight, bias.as_ref())
}

/// Loads `{name}.weight`, a vector of `len`.
fn vector<O: Ops>(ops: &O, weights: &Weights<'_>, name: &str, len: usize) -> Result<O::Vector> {
    ops.load_vector(&weights.tensor(&format!("{name}.weight"), &[len])?)
}
