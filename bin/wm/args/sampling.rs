//! Flags of the sampling chain, under the field's own names. All optional: an explicit value, 0
//! included, wins over the model's defaults.

use clap::Args;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// Order of the chain: transformers, vllm, llama.cpp, or members between semicolons
    #[arg(long, value_name = "ORDER")]
    pub(crate) order: Option<String>,
    /// Divides the logits; below 1e-5 is greedy [default: 1]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub(crate) temperature: Option<f64>,
    /// Keep the K most likely tokens; 0 or -1 is off
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub(crate) top_k: Option<i64>,
    /// Keep the shortest head whose mass reaches P
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) top_p: Option<f64>,
    /// Keep tokens of at least P times the largest probability
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) min_p: Option<f64>,
    /// Keep the tokens whose surprisal is closest to the entropy, up to this mass
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) typical_p: Option<f64>,
    /// Keep tokens of at least this probability
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub(crate) epsilon_cutoff: Option<f64>,
    /// Entropy-dependent cut-off
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub(crate) eta_cutoff: Option<f64>,
    /// Keep logits within N standard deviations of the largest
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) top_n_sigma: Option<f64>,
    /// Divides positive and multiplies negative logits of seen tokens
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub(crate) repetition_penalty: Option<f64>,
    /// Subtracted once from the logits of seen tokens
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub(crate) presence_penalty: Option<f64>,
    /// Subtracted per occurrence from the logits of seen tokens
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub(crate) frequency_penalty: Option<f64>,
    /// The three penalties count the last N tokens of prompt and output [default: the order's]
    #[arg(long, value_name = "N")]
    pub(crate) penalty_last_n: Option<u64>,
    /// A truncation leaves at least N tokens [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) min_tokens_to_keep: Option<u64>,
    /// Ban tokens that would repeat an n-gram of this size
    #[arg(long, value_name = "N")]
    pub(crate) no_repeat_ngram_size: Option<u64>,
    /// DRY multiplier; 0 is off
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) dry_multiplier: Option<f64>,
    /// DRY base [default: 1.75]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) dry_base: Option<f64>,
    /// DRY: repeats up to this length cost nothing [default: 2]
    #[arg(long, value_name = "N")]
    pub(crate) dry_allowed_length: Option<u64>,
    /// XTC: chance to drop the head
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) xtc_probability: Option<f64>,
    /// XTC: tokens of at least this probability are the head [default: 0.1]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) xtc_threshold: Option<f64>,
    /// Mirostat version 1 or 2; 0 is off
    #[arg(long, value_name = "V")]
    pub(crate) mirostat: Option<u8>,
    /// Mirostat target surprisal in bit [default: 5]
    #[arg(long, value_name = "TAU", allow_negative_numbers = true)]
    pub(crate) mirostat_tau: Option<f64>,
    /// Mirostat learning rate [default: 0.1]
    #[arg(long, value_name = "ETA", allow_negative_numbers = true)]
    pub(crate) mirostat_eta: Option<f64>,
    /// Add V to a token's logit; -inf bans it; may be given several times
    #[arg(long, value_name = "ID=V")]
    pub(crate) logit_bias: Vec<String>,
    /// Ban a sequence of token ids, between commas; may be given several times
    #[arg(long, value_name = "IDS")]
    pub(crate) bad_words: Vec<String>,
    /// Allow only these token ids, between commas
    #[arg(long, value_name = "IDS")]
    pub(crate) allowed_tokens: Option<String>,
    /// No end-of-sequence before this many new tokens
    #[arg(long, value_name = "N")]
    pub(crate) min_tokens: Option<u64>,
}
