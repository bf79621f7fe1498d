//! `wm detect`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{DeviceArgs, KeyArgs, MarkArgs, TokenizerArgs};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags are what the user typed")]
pub(crate) struct DetectArgs {
    /// Text files or folders; `-` or nothing reads standard input
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Read token ids (a JSON list, or numbers between white space) instead of text
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "normalize", "sidecar"])]
    pub(crate) ids: Option<PathBuf>,
    /// The prompt of the text: gives the first tokens their context and is not scored
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt_file: Option<PathBuf>,
    /// Accepted rate of false accusations [default: 3.167e-5, the p of z = 4]
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) alpha: Option<f64>,
    /// The same as --alpha, as the z of a normal test
    #[arg(long, value_name = "Z", allow_negative_numbers = true, conflicts_with = "alpha")]
    pub(crate) z_threshold: Option<f64>,
    /// Fewer scored tokens than this are insufficient
    #[arg(long, value_name = "N")]
    pub(crate) min_scored: Option<u64>,
    /// Look a second time after these changes and pay for the look: newlines, zero-width,
    /// confusables, nfc
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) normalize: Vec<String>,
    /// Add the tests that weigh tokens by the model's uncertainty: MODEL reads the text; without a
    /// name the sidecar in use serves, or the default model reads
    #[arg(long, value_name = "MODEL", num_args = 0..=1, default_missing_value = "",
        conflicts_with = "ids")]
    pub(crate) entropy: Option<String>,
    /// List every token with its offsets in the JSON report
    #[arg(long, requires = "json")]
    pub(crate) details: bool,
    /// Test every stretch of the text too, for half of alpha, and say where the mark is
    #[arg(long)]
    pub(crate) windows: bool,
    /// Test every sentence too, as a reading aid that decides nothing
    #[arg(long, conflicts_with = "ids")]
    pub(crate) sentences: bool,
    /// Show the text with every token marked green, red or not scored
    #[arg(long, conflicts_with_all = ["ids", "json"])]
    pub(crate) highlight: bool,
    /// Colours of --highlight; `auto` uses them on a terminal unless `NO_COLOR` is set
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
    /// Write the report as one self-contained page; for several texts an existing folder, which
    /// gets a page for each and an index
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Inputs hold one JSON object a line; the text is in this field
    #[arg(long, value_name = "FIELD", conflicts_with_all = ["ids", "sidecar"])]
    pub(crate) jsonl: Option<String>,
    /// Give every text a q-value: the false discovery rate among all texts that are as surprising
    #[arg(long, conflicts_with = "ids")]
    pub(crate) q_values: bool,
    /// Texts judged at the same time, 1 to 512 [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    pub(crate) threads: Option<u16>,
    /// Follow the profile of the sidecar FILE.wm.json
    #[arg(long, conflicts_with_all = ["ignore_sidecar", "profile"])]
    pub(crate) sidecar: bool,
    /// Do not read the sidecar
    #[arg(long)]
    pub(crate) ignore_sidecar: bool,
    /// Print the report as JSON (one document; one line each for several inputs)
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) mark: MarkArgs,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    #[command(flatten)]
    pub(crate) tokenizer: TokenizerArgs,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

impl DetectArgs {
    /// Whether what is shown quotes the text.
    pub(crate) fn reads_text(&self) -> bool {
        self.sentences || self.highlight || self.html.is_some()
    }
}

/// When colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}
