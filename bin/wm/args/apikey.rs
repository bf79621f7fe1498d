//! `wm apikey`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct ApiKeyArgs {
    #[command(subcommand)]
    pub(crate) command: ApiKeyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApiKeyCommand {
    /// Make a key and print it, the only time that it is shown
    Add(ApiKeyAddArgs),
    /// List the keys: names, roles and times
    List {
        #[command(flatten)]
        file: KeysFileArgs,
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a key back; a running service follows within a second
    Revoke {
        /// The name of the key
        name: String,
        #[command(flatten)]
        file: KeysFileArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ApiKeyAddArgs {
    /// The name that stands in logs; each only once, for example desk-2026
    pub(crate) name: String,
    /// What the key opens
    #[arg(long, value_enum)]
    pub(crate) role: RoleName,
    /// From when on it is refused: a date (its first second) or 2027-01-31T18:00:00Z, in UTC
    #[arg(long, value_name = "DATE")]
    pub(crate) expires: Option<String>,
    #[command(flatten)]
    pub(crate) file: KeysFileArgs,
}

#[derive(Debug, Args)]
pub(crate) struct KeysFileArgs {
    /// The file of API keys [default: wm/apikeys.json in the user's configuration folder]
    #[arg(long, value_name = "FILE", env = "WM_KEYS_FILE")]
    pub(crate) keys_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleName {
    /// The verdict, nothing more, at a low rate
    Public,
    /// Full reports
    Reviewer,
    /// All of that, generation and metrics
    Operator,
}
