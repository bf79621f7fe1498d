//! `wm verify`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The signed report; `-` is standard input
    pub(crate) file: PathBuf,
    /// The key that must have signed it: 64 hexadecimal digits, or a file that holds them
    #[arg(long, value_name = "HEX|FILE")]
    pub(crate) public_key: Option<String>,
    /// The text that the report must be about (its SHA-256 stands in the report)
    #[arg(long, value_name = "FILE")]
    pub(crate) text: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
