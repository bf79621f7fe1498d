//! What the user typed, as typed. Nothing here is checked beyond its form.

mod apikey;
mod calibrate;
mod detect;
mod device;
mod doctor;
mod eval;
mod extract;
mod generate;
mod inspect;
mod mark;
mod power;
mod sampling;
mod serve;
mod tail;
mod verify;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use apikey::{ApiKeyAddArgs, ApiKeyArgs, ApiKeyCommand, RoleName};
pub(crate) use calibrate::CalibrateArgs;
pub(crate) use detect::{ColorChoice, DetectArgs};
pub(crate) use device::DeviceArgs;
pub(crate) use doctor::DoctorArgs;
pub(crate) use eval::{EvalArgs, EvalCommand};
#[cfg(feature = "engine")]
pub(crate) use eval::{EvalCurveArgs, EvalEntropyArgs, EvalQuickArgs};
pub(crate) use extract::ExtractArgs;
pub(crate) use generate::{DemoArgs, GenerateArgs};
#[cfg(feature = "engine")]
pub(crate) use generate::{ModelSource, WeightsSource};
pub(crate) use inspect::{
    ChainArgs, GreenListArgs, InspectArgs, InspectCommand, ModelArgs, TokensArgs,
};
pub(crate) use mark::{KeyArgs, MarkArgs, PromptContextName, RepeatsName, SchemeName};
pub(crate) use power::PowerArgs;
pub(crate) use sampling::SamplingArgs;
pub(crate) use serve::ServeArgs;
pub(crate) use tail::{BinomialArgs, GammaArgs, NormalArgs, TailArgs, TailCommand, WeightedArgs};
pub(crate) use verify::VerifyArgs;

/// Embeds a watermark in text while a language model samples it, and detects it later without the
/// model.
#[derive(Debug, Parser)]
#[command(name = "wm", version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write marked text and detect it: the whole product in one run
    Demo(DemoArgs),
    /// Continue a prompt with marked text
    Generate(Box<GenerateArgs>),
    /// Test texts for the mark
    ///
    /// Exit code: 0 nothing flagged, 10 watermark found, 11 too little text, 2 wrong input,
    /// 1 failure, 141 closed pipe. Several inputs: any error first (2, then 1), then 10, then 11.
    Detect(Box<DetectArgs>),
    /// Answer over HTTP: detection, marked generation, a page for reviewers
    ///
    /// Flags go before environment variables, those before the configuration file.
    Serve(Box<ServeArgs>),
    /// Add, list or revoke the API keys of a service
    #[command(name = "apikey")]
    ApiKey(ApiKeyArgs),
    /// Print the text of a file: text, Markdown, HTML, DOCX or PDF
    Extract(ExtractArgs),
    /// Measure how often your own unmarked texts fire
    ///
    /// Prints how true the p of the test is on them (a fresh key for every passage) and how often
    /// they fire under the deployed key. docs/calibration.md says how to read it.
    Calibrate(Box<CalibrateArgs>),
    /// Say how many tokens a mark needs to be found, or how well so many can be told
    Power(Box<PowerArgs>),
    /// Check a signed report
    ///
    /// Exit code: 0 everything that was asked holds, 2 something does not.
    Verify(VerifyArgs),
    /// Make a key file (never overwrites)
    Keygen(KeygenArgs),
    /// Show or check a profile
    Profile(ProfileArgs),
    /// List the known models, or fetch one
    Models(ModelsArgs),
    /// Look into one layer: green lists, the sampling chain, a model, tokens
    Inspect(InspectArgs),
    /// Measure the mark on the real model
    Eval(EvalArgs),
    /// Say whether this installation works: build, devices, cache, keys, tokenizer, self tests
    ///
    /// Fetches and changes nothing. Exit code: 0 nothing is a problem, 1 something is.
    Doctor(DoctorArgs),
}

#[derive(Debug, Args)]
pub(crate) struct KeygenArgs {
    /// The file to write; the default key of this user when left out
    pub(crate) path: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Make a key that signs reports, and print its public half
    #[arg(long, requires = "path")]
    pub(crate) signing: bool,
    /// Make nothing: print the public half of the signing key that is there
    #[arg(long, requires = "path", conflicts_with = "signing")]
    pub(crate) public: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    #[command(subcommand)]
    pub(crate) command: ProfileCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// Print the profile that the given flags make
    Show(ProfileShowArgs),
    /// Check a profile file, and that a key and a tokenizer belong to it when given
    Check(ProfileCheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ProfileShowArgs {
    #[command(flatten)]
    pub(crate) mark: MarkArgs,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    #[command(flatten)]
    pub(crate) tokenizer: TokenizerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ProfileCheckArgs {
    /// The profile (JSON)
    pub(crate) file: PathBuf,
    /// A key that the profile should name
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// A tokenizer that the profile should name
    #[arg(long, value_name = "SPEC")]
    pub(crate) tokenizer: Option<String>,
    /// Never fetch anything
    #[arg(long)]
    pub(crate) offline: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenizerArgs {
    /// A tokenizer.json, a GGUF file, a folder or a model name
    #[arg(long, value_name = "SPEC", default_value = "default")]
    pub(crate) tokenizer: String,
    /// Never fetch anything
    #[arg(long)]
    pub(crate) offline: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ModelsCommand>,
    /// Print the table as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Fetch a model into the cache
    Pull {
        /// A name of the table, org/repo or org/repo:file
        name: String,
        /// Only say whether it is there
        #[arg(long)]
        offline: bool,
    },
}
