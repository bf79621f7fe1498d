//! `wm inspect`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::generate::WeightsSource;
use super::{DeviceArgs, KeyArgs, MarkArgs, SamplingArgs, TailArgs, TokenizerArgs};

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    #[command(subcommand)]
    pub(crate) command: InspectCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum InspectCommand {
    /// The green list after a context
    GreenList(GreenListArgs),
    /// What each member of the sampling chain does to given logits
    Chain(Box<ChainArgs>),
    /// What a model says at each position
    Model(ModelArgs),
    /// How likely a count or a sum this large is under chance: the tails behind every p
    Tail(TailArgs),
    /// The tokens of a text, with offsets and colour
    Tokens(TokensArgs),
}

#[derive(Debug, Args)]
pub(crate) struct GreenListArgs {
    /// The key file; the default key of this user when left out
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// The context's token ids, oldest first, between commas; empty for the fixed list
    #[arg(long, value_name = "IDS", default_value = "")]
    pub(crate) context: String,
    /// Green share of the vocabulary
    #[arg(long, default_value_t = 0.5, allow_negative_numbers = true)]
    pub(crate) gamma: f64,
    /// Number of token ids
    #[arg(long, value_name = "N")]
    pub(crate) vocab: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ChainArgs {
    /// The logits, a JSON list or @FILE; `null`, `"-inf"`, `"inf"` and `"nan"` are understood
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) logits: String,
    /// Generated token ids so far, between commas
    #[arg(long, value_name = "IDS", default_value = "")]
    pub(crate) history: String,
    /// Prompt token ids, between commas
    #[arg(long, value_name = "IDS", default_value = "")]
    pub(crate) prompt_ids: String,
    /// End-of-sequence ids, between commas (for --min-tokens)
    #[arg(long, value_name = "IDS", default_value = "")]
    pub(crate) end_ids: String,
    /// Seed of the draw
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Apply the mark of this key
    #[arg(long)]
    pub(crate) watermark: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) mark: MarkArgs,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// Token ids, a JSON list or numbers between commas
    #[arg(long, value_name = "IDS")]
    pub(crate) ids: String,
    /// Add the first N logits of each position
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) logits: usize,
    /// Continue greedily with N tokens
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) greedy: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) source: WeightsSource,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TokensArgs {
    /// The text file; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) mark: MarkArgs,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    #[command(flatten)]
    pub(crate) tokenizer: TokenizerArgs,
}
