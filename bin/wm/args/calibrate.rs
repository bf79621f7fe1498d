//! `wm calibrate`.

use std::path::PathBuf;

use clap::Args;

use super::{KeyArgs, MarkArgs, TokenizerArgs};

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Unmarked texts: files, or folders with text files
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Read each file as JSON lines with the text in this field
    #[arg(long, value_name = "FIELD")]
    pub(crate) jsonl: Option<String>,
    /// Cut texts into passages of this many tokens, 1 to 10000
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) passage_tokens: u32,
    /// Test the first tokens of each passage at these lengths, at most 16 [default: 25,50,100 and
    /// --passage-tokens]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) lengths: Vec<u32>,
    /// Count results with a p of at most each of these
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        allow_negative_numbers = true,
        default_value = "1e-2,1e-3,1e-4,1e-5"
    )]
    pub(crate) alphas: Vec<f64>,
    /// Pairs of a passage and a fresh key, 1 to 1000000000
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) pairs: u64,
    /// This many fixed keys, made from the seed, in place of the deployed key, at most
    /// 1000; 0 for none
    #[arg(long, value_name = "N", conflicts_with_all = ["key_file", "key_id"])]
    pub(crate) keys: Option<u32>,
    /// Decides fresh keys and resampling; equal seeds give equal results
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Keep finished blocks here; a run that was stopped goes on from them
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Draw the tables (SVG)
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// List this many passages that fire under most keys
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// Print the text of the listed passages
    #[arg(long)]
    pub(crate) show_text: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) mark: MarkArgs,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    #[command(flatten)]
    pub(crate) tokenizer: TokenizerArgs,
}
