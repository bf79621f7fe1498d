//! `wm doctor`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The model whose tokenizer is tried: a model name, a GGUF file, a tokenizer.json, a folder,
    /// org/repo or org/repo:file
    #[arg(long, value_name = "SPEC", default_value = "default")]
    pub(crate) model: String,
    /// Never fetch anything: always so here
    #[arg(long)]
    pub(crate) offline: bool,
    /// Print the checks and the devices as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
