//! `wm generate` and `wm demo`.

use std::path::PathBuf;

use clap::Args;

use super::{DeviceArgs, KeyArgs, MarkArgs, SamplingArgs};

#[derive(Debug, Args)]
pub(crate) struct WeightsSource {
    /// A model name, a GGUF file, a safetensors folder, org/repo or org/repo:file
    #[arg(long, value_name = "SPEC", default_value = "default")]
    pub(crate) model: String,
    /// Never fetch anything
    #[arg(long)]
    pub(crate) offline: bool,
    /// Threads of the engine [default: one per core]; changes no token
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct ModelSource {
    #[command(flatten)]
    pub(crate) weights: WeightsSource,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// A tokenizer.json, when the model's own is missing or cannot be read
    #[arg(long, value_name = "FILE")]
    pub(crate) tokenizer: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags are what the user typed")]
pub(crate) struct GenerateArgs {
    /// The prompt; standard input when neither this nor --prompt-file is given
    #[arg(conflicts_with = "prompt_file")]
    pub(crate) prompt: Option<String>,
    /// Read the prompt from a file, every byte of it (a final newline included)
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt_file: Option<PathBuf>,
    /// Treat the prompt as a user's message and apply the model's chat template
    #[arg(long)]
    pub(crate) chat: bool,
    /// A system message for --chat
    #[arg(long, value_name = "TEXT", requires = "chat")]
    pub(crate) system: Option<String>,
    /// Most new tokens [default: 256, or the room that the context leaves if that is less]
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<usize>,
    /// End the text at this string; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) stop: Vec<String>,
    /// Seed of the draw [default: from the system]; with gumbel the key decides the draw
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Number of texts
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1)]
    pub(crate) n: u32,
    /// Generate without a mark
    #[arg(long, conflicts_with_all = ["profile", "scheme", "gamma", "delta", "context_width",
        "context_prompt", "repeats"])]
    pub(crate) no_watermark: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the text to FILE and, when it is marked, its sidecar to FILE.wm.json
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print the effective parameters and the order of the chain on standard error
    #[arg(long, short)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) source: ModelSource,
    #[command(flatten)]
    pub(crate) mark: MarkArgs,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The prompt
    #[arg(default_value = "The lighthouse keeper opened the door and")]
    pub(crate) prompt: String,
    /// New tokens
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) max_tokens: usize,
    /// Seed of the draw
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) source: ModelSource,
}
