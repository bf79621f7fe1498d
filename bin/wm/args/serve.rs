//! `wm serve`.

use std::path::PathBuf;

use clap::Args;

/// Every flag that has a name in the configuration file goes before it, and the environment
/// variable of the same name stands between them.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The configuration file (TOML); docs/serve.md describes it
    #[arg(long, value_name = "FILE", env = "WM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The address to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", env = "WM_HOST")]
    pub(crate) host: Option<String>,
    /// The port; 0 takes a free one [default: 8080]
    #[arg(long, env = "WM_PORT")]
    pub(crate) port: Option<u16>,
    /// A profile (JSON), for a service of one profile
    #[arg(long, value_name = "FILE", env = "WM_PROFILE")]
    pub(crate) profile: Option<PathBuf>,
    /// Its key file; the default key of this user when left out
    #[arg(long, value_name = "FILE", env = "WM_KEY_FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Its tokenizer: a tokenizer.json, a GGUF file, a folder or a model name
    #[arg(long, value_name = "SPEC", env = "WM_TOKENIZER")]
    pub(crate) tokenizer: Option<String>,
    /// The model that texts are generated with [default: the default model]
    #[arg(long, value_name = "SPEC", env = "WM_MODEL")]
    pub(crate) model: Option<String>,
    /// Who decides whether a text is marked: enforce, default-on or opt-in [default: default-on]
    #[arg(long, value_name = "POLICY", env = "WM_WATERMARK_POLICY")]
    pub(crate) watermark_policy: Option<String>,
    /// Threads of the engine [default: one per core]; changes no token
    #[arg(long, value_name = "N", env = "WM_THREADS")]
    pub(crate) threads: Option<usize>,
    /// Where the model computes: cpu, cuda:N (an NVIDIA GPU by its number, in a build with CUDA), or
    /// auto: the first GPU that answers, else the CPU [default: auto]
    #[arg(long, value_name = "DEVICE", env = "WM_DEVICE")]
    pub(crate) device: Option<String>,
    /// The numbers a GPU computes in: f32, bf16, or auto, as the file suggests [default: auto]
    #[arg(long, value_name = "DTYPE", env = "WM_DTYPE")]
    pub(crate) dtype: Option<String>,
    /// Where tokens are drawn: auto, where the model computes, or cpu [default: auto]
    #[arg(long, value_name = "PLACE", env = "WM_SAMPLER")]
    pub(crate) sampler: Option<String>,
    /// Whether a GPU computes in passes of one fixed shape, so that no text depends on what runs
    /// beside it: off, on (64 rows), or the ROWS of a pass, 1 to 512 (safe up to 64). A step of
    /// fewer texts costs as much as one of ROWS. On the CPU it is always so [default: off]
    #[arg(long, value_name = "ROWS", env = "WM_DETERMINISTIC", num_args = 0..=1,
        default_missing_value = "on")]
    pub(crate) deterministic: Option<String>,
    /// Never fetch anything
    #[arg(long)]
    pub(crate) offline: bool,
    /// Longest body of a request, for example 10MB [default: 10MB]
    #[arg(long, value_name = "SIZE", env = "WM_MAX_BODY")]
    pub(crate) max_body: Option<String>,
    /// The API keys that callers need, a file that `wm apikey` writes; the default one of this
    /// user when it exists
    #[arg(long, value_name = "FILE", env = "WM_KEYS_FILE")]
    pub(crate) keys_file: Option<PathBuf>,
    /// A key file whose key signs every report (wm keygen --signing makes one)
    #[arg(long, value_name = "FILE", env = "WM_SIGNING_KEY")]
    pub(crate) signing_key: Option<PathBuf>,
    /// The file for audit lines; standard error when left out
    #[arg(long, value_name = "FILE", env = "WM_AUDIT_LOG")]
    pub(crate) audit_log: Option<PathBuf>,
    /// A line on standard error for every request
    #[arg(long, env = "WM_ACCESS_LOG", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) access_log: bool,
    /// An origin whose pages may use the service from a browser; may be given more than once
    #[arg(
        long = "cors-origin",
        value_name = "ORIGIN",
        env = "WM_CORS_ORIGINS",
        value_delimiter = ','
    )]
    pub(crate) cors_origins: Vec<String>,
    /// Detection only: no model is loaded
    #[arg(long)]
    pub(crate) no_engine: bool,
}
