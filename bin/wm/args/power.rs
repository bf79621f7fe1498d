//! `wm power`.

use std::path::PathBuf;

use clap::Args;

use super::DeviceArgs;

#[derive(Debug, Args)]
pub(crate) struct PowerArgs {
    /// Give the power at this number of scored tokens, 1 to 10000000
    #[arg(long, value_name = "N", conflicts_with = "power")]
    pub(crate) tokens: Option<u64>,
    /// Give the number of scored tokens for this chance to detect the mark, above 0 and below 1
    /// [default: 0.9]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) power: Option<f64>,
    /// Accepted rate of false accusations [default: 3.167e-5, the p of z = 4]
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) alpha: Option<f64>,
    /// Green share of the vocabulary
    #[arg(long, default_value_t = 0.5, allow_negative_numbers = true)]
    pub(crate) gamma: f64,
    /// Bias of green tokens in logits
    #[arg(long, default_value_t = 2.0, allow_negative_numbers = true)]
    pub(crate) delta: f64,
    /// The steps of a text: a sidecar FILE.wm.json, or a JSON list of distributions (lists of
    /// probabilities) or of chances of green
    #[arg(long, value_name = "FILE")]
    pub(crate) entropy_profile: Option<PathBuf>,
    /// A mean spike entropy: the power is then a lower bound
    #[arg(
        long,
        value_name = "S",
        conflicts_with = "entropy_profile",
        allow_negative_numbers = true
    )]
    pub(crate) spike_entropy: Option<f64>,
    /// Measure the steps: a model continues this prompt
    #[arg(long, value_name = "FILE", conflicts_with_all = ["entropy_profile", "spike_entropy"])]
    pub(crate) prompt_file: Option<PathBuf>,
    /// The model that continues it
    #[arg(long, value_name = "SPEC", default_value = "default", requires = "prompt_file")]
    pub(crate) model: String,
    /// Never fetch anything
    #[arg(long)]
    pub(crate) offline: bool,
    /// Texts that are written to measure, 1 to 1024
    #[arg(long, value_name = "N", default_value_t = 4, requires = "prompt_file")]
    pub(crate) samples: u32,
    /// Tokens of each
    #[arg(long, value_name = "N", default_value_t = 200, requires = "prompt_file")]
    pub(crate) sample_tokens: usize,
    /// Their temperature
    #[arg(long, default_value_t = 1.0, requires = "prompt_file", allow_negative_numbers = true)]
    pub(crate) temperature: f64,
    /// Seed of their draw
    #[arg(long, default_value_t = 1, requires = "prompt_file")]
    pub(crate) seed: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}
