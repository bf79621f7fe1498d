//! Flags of the mark, shared by every command that builds a profile.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemeName {
    /// Green tokens get a bias (Kirchenbauer et al. 2023)
    GreenList,
    /// The draw itself is keyed (Aaronson 2022); distortion-free
    Gumbel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PromptContextName {
    /// The end of the prompt seeds the first tokens
    Tail,
    /// The first tokens carry no mark
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RepeatsName {
    /// Mark again
    Mark,
    /// Do not mark again
    Skip,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Mark")]
pub(crate) struct MarkArgs {
    /// A profile (JSON); flags that disagree with it are refused
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// The scheme [default: green-list]
    #[arg(long, value_enum)]
    pub(crate) scheme: Option<SchemeName>,
    /// Green share of the vocabulary [default: 0.5]
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) gamma: Option<f64>,
    /// Bias of green tokens in logits; 0 marks nothing [default: 2]
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) delta: Option<f64>,
    /// Previous tokens that seed a list [default: 1, gumbel 4]
    #[arg(long, value_name = "N")]
    pub(crate) context_width: Option<u64>,
    /// Context of the first tokens [default: tail]
    #[arg(long, value_enum, value_name = "RULE")]
    pub(crate) context_prompt: Option<PromptContextName>,
    /// What a repeated context does [default: mark, gumbel skip]
    #[arg(long, value_enum, value_name = "RULE")]
    pub(crate) repeats: Option<RepeatsName>,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Key")]
pub(crate) struct KeyArgs {
    /// The key file; the default key of this user when left out
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// A name for the key in profiles and reports [default: the file's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) key_id: Option<String>,
}
