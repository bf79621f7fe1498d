//! `wm extract`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ExtractArgs {
    /// The file; `-` is standard input and needs --format
    pub(crate) file: PathBuf,
    /// Read it as text, markdown, html, docx or pdf, whatever its name is
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Refuse a file of more bytes [default: 33554432]
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_file: Option<u64>,
    /// Refuse a DOCX file whose text unpacks to more bytes [default: 67108864]
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_unpacked: Option<u64>,
    /// Refuse a text of more bytes [default: 16777216]
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_text: Option<u64>,
    /// Give up after this time
    #[arg(long, value_name = "SECONDS", default_value_t = 20,
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) max_seconds: u64,
    /// Print format, text and notes as JSON; a refusal too
    #[arg(long)]
    pub(crate) json: bool,
    /// Read HTML, DOCX and PDF in this process, under limits of memory and processor time,
    /// instead of in a child: this is what the child is
    #[arg(long)]
    pub(crate) in_process: bool,
}
