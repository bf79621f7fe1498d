//! The text of files that people have: plain text, Markdown, HTML, DOCX and PDF.
//!
//! What comes out is what a detector should read: the words in reading order, with the line
//! breaks of paragraphs and without the decoration of a renderer. Nothing is repaired, joined or
//! normalised. This is no converter (styles, pictures and layout are lost) and no scanner: a page
//! that is a picture has no text.
//!
//! HTML, DOCX and PDF come from strangers and their readers are large. [`text`] returns an error
//! where they panic, but a reader can still overflow its stack or run for hours, so a service
//! reads through [`isolated`], which does the same in a child process under limits.

mod docx;
mod format;
mod html;
#[cfg(feature = "server")]
mod isolated;
mod package;
mod pdf;
mod plain;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

pub use format::Format;
#[cfg(feature = "server")]
pub use isolated::{Answer, Isolation, READER_MEMORY_BYTES, isolated};

/// How large a file, and what is inside it, may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of the file, in bytes.
    pub file_bytes: u64,
    /// Of one unpacked part of a DOCX file, in bytes.
    pub unpacked_bytes: u64,
    /// Of the text, in bytes of UTF-8.
    pub text_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self { file_bytes: 32 * MIB, unpacked_bytes: 64 * MIB, text_bytes: 16 * MIB }
    }
}

/// The text of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extracted {
    /// What the file was read as.
    pub format: Format,
    /// The text.
    pub text: String,
    /// What a reader should know: mostly what was left out.
    pub notes: Vec<Note>,
}

/// What a reader of the text should know about how it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case", deny_unknown_fields)]
pub enum Note {
    /// Footnotes or endnotes are not in the text.
    NotesLeftOut,
    /// Headers or footers of the pages are not in the text.
    HeadersLeftOut,
    /// Text that the document hides is not in the text.
    HiddenTextLeftOut,
    /// Equations are not in the text.
    EquationsLeftOut,
    /// The file declares another character set but is valid UTF-8.
    OtherCharset {
        /// The declared name.
        declared: String,
    },
    /// Some pages have no text.
    PagesWithoutText {
        /// Their numbers, from 1.
        pages: Vec<u32>,
    },
}

impl Note {
    /// A stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotesLeftOut => "notes_left_out",
            Self::HeadersLeftOut => "headers_left_out",
            Self::HiddenTextLeftOut => "hidden_text_left_out",
            Self::EquationsLeftOut => "equations_left_out",
            Self::OtherCharset { .. } => "other_charset",
            Self::PagesWithoutText { .. } => "pages_without_text",
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotesLeftOut => f.write_str("footnotes and endnotes are left out"),
            Self::HeadersLeftOut => f.write_str("headers and footers of the pages are left out"),
            Self::HiddenTextLeftOut => f.write_str("hidden text is left out"),
            Self::EquationsLeftOut => f.write_str("equations are left out"),
            Self::OtherCharset { declared } => write!(
                f,
                "the file declares the character set {declared} but is valid UTF-8, and was read \
                 as UTF-8"
            ),
            Self::PagesWithoutText { pages } => {
                let are = if pages.len() == 1 { "page has" } else { "pages have" };
                write!(f, "{} {are} no text, perhaps a scan: {}", pages.len(), numbers(pages))
            }
        }
    }
}

/// The first numbers of a list that may be long.
fn numbers(pages: &[u32]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<String> = pages.iter().take(SHOWN).map(u32::to_string).collect();
    let more = if pages.len() > SHOWN { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// The text of the bytes of a file of this format. [`Format::detect`] finds the format and checks
/// that the bytes have it.
///
/// Runs in this process: stack and time are the caller's.
///
/// # Errors
/// [`Error::Document`] naming what is wrong: not UTF-8, damaged, encrypted, without text, or
/// larger than a limit.
pub fn text(format: Format, bytes: &[u8], limits: &Limits) -> Result<Extracted> {
    limit("file", bytes.len() as u64, limits.file_bytes, format)?;
    // The readers of foreign formats are not ours, and some fail by panicking.
    let read = catch_unwind(AssertUnwindSafe(|| match format {
        Format::Text | Format::Markdown => plain::text(format, bytes).map(|text| (text, vec![])),
        Format::Html => html::text(bytes, limits),
        Format::Docx => docx::text(bytes, limits),
        Format::Pdf => pdf::text(bytes, limits),
    }));
    let (text, notes) = read.unwrap_or_else(|_| {
        Err(Error::document(
            format.what(),
            None,
            "it cannot be read: it is damaged, or the reader fails on it",
            format!("save it again, or give its text in another format: {}", Format::supported()),
        ))
    })?;
    limit("text", text.len() as u64, limits.text_bytes, format)?;
    Ok(Extracted { format, text, notes })
}

/// Refuses what is larger than its limit.
fn limit(part: &str, found: u64, allowed: u64, format: Format) -> Result<()> {
    if found <= allowed {
        return Ok(());
    }
    Err(too_large(part, &format!("{found} bytes"), allowed, format))
}

/// The refusal of a part of a file that is larger than its limit.
fn too_large(part: &str, found: &str, allowed: u64, format: Format) -> Error {
    Error::document(
        format.what(),
        None,
        format!("the {part} has {found}, the limit is {allowed}"),
        "split it into smaller files",
    )
}
