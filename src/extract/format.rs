//! Which format a file has: by its name, by its declared media type, by its first bytes. What
//! they say must agree.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::package;
use crate::error::{Error, Result};

/// A format whose text can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Plain text in UTF-8.
    Text,
    /// Markdown in UTF-8. Its source is what a model writes, so the markup stays.
    Markdown,
    /// HTML in UTF-8.
    Html,
    /// Office Open XML text (Word 2007 and later).
    Docx,
    /// Portable Document Format.
    Pdf,
}

/// What the bytes of a file are by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Known(Format),
    /// A format without a reader, by name.
    Foreign(&'static str),
    /// Nothing that gives itself away.
    Plain,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 5] = [Self::Text, Self::Markdown, Self::Html, Self::Docx, Self::Pdf];

    /// Its name, as flags and reports spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "markdown",
            Self::Html => "html",
            Self::Docx => "docx",
            Self::Pdf => "pdf",
        }
    }

    /// The format of this name.
    ///
    /// # Errors
    /// [`Error::Parameter`] with the names there are.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| Error::parameter("format", name, Self::supported()))
    }

    /// Every name, for messages.
    #[must_use]
    pub fn supported() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Whether its reader is a few lines of this library, which need no process of their own.
    #[must_use]
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Text | Self::Markdown)
    }

    /// A file of this format, for messages.
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Text => "the text file",
            Self::Markdown => "the Markdown file",
            Self::Html => "the HTML file",
            Self::Docx => "the DOCX file",
            Self::Pdf => "the PDF file",
        }
    }

    /// The format of a file from its name, else from its declared media type, else from its first
    /// bytes. A file without any of them is plain text.
    ///
    /// The media type only counts where the name says nothing: programs that send files rarely
    /// know it.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when the bytes are not what the name or media type says,
    /// [`Error::Unsupported`] for another format.
    pub fn detect(name: Option<&Path>, media_type: Option<&str>, bytes: &[u8]) -> Result<Self> {
        let extension = name
            .and_then(Path::extension)
            .map(|extension| extension.to_string_lossy().to_ascii_lowercase());
        let by_name = extension.as_deref().and_then(of_extension);
        if let (Some(format), Some(extension)) = (by_name, &extension) {
            return format.check(&format!("the name (.{extension})"), bytes);
        }
        let media_type = media_type.map(essence).filter(|essence| !says_nothing(essence));
        if let Some(media_type) = &media_type
            && let Some(format) = of_media_type(media_type)
        {
            return format.check(&format!("the media type ({media_type})"), bytes);
        }
        match (content(bytes), extension, media_type) {
            (Content::Known(format), ..) => Ok(format),
            (Content::Foreign(found), Some(extension), _) => {
                Err(unsupported(format!(".{extension} ({found})")))
            }
            (Content::Foreign(found), ..) => Err(unsupported(found.to_owned())),
            (Content::Plain, Some(extension), _) => Err(unsupported(format!(".{extension}"))),
            (Content::Plain, None, Some(media_type)) => Err(unsupported(media_type)),
            (Content::Plain, None, None) => Ok(Self::Text),
        }
    }

    /// This format, when the bytes do not contradict it. `source` is who says that it is this
    /// one, for example `--format`.
    ///
    /// # Errors
    /// [`Error::Mismatch`] naming both sides.
    pub fn check(self, source: &str, bytes: &[u8]) -> Result<Self> {
        let content = content(bytes);
        let found = match (self, content) {
            (Self::Text | Self::Markdown | Self::Html, Content::Plain) => return Ok(self),
            (_, Content::Known(found)) if found == self => return Ok(self),
            // The header may stand behind other bytes.
            (Self::Pdf, Content::Plain) if has_pdf_header(bytes) => return Ok(self),
            (_, Content::Known(found)) => found.name(),
            (_, Content::Foreign(found)) => found,
            (Self::Docx, Content::Plain) => "no ZIP archive, as DOCX files are",
            (_, Content::Plain) => "no PDF header",
        };
        Err(Error::Mismatch {
            field: "file format",
            left_name: source.to_owned(),
            left: self.name().to_owned(),
            right_name: "the content".to_owned(),
            right: found.to_owned(),
            remedy: format!(
                "give the file its right name or format (supported: {})",
                Self::supported()
            ),
        })
    }
}

fn unsupported(found: String) -> Error {
    Error::Unsupported { what: "file format", found, supported: Format::supported() }
}

fn of_extension(extension: &str) -> Option<Format> {
    match extension {
        "txt" | "text" => Some(Format::Text),
        "md" | "markdown" => Some(Format::Markdown),
        "html" | "htm" | "xhtml" => Some(Format::Html),
        "docx" => Some(Format::Docx),
        "pdf" => Some(Format::Pdf),
        _ => None,
    }
}

fn of_media_type(media_type: &str) -> Option<Format> {
    match media_type {
        "text/plain" => Some(Format::Text),
        "text/markdown" | "text/x-markdown" => Some(Format::Markdown),
        "text/html" | "application/xhtml+xml" => Some(Format::Html),
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => {
            Some(Format::Docx)
        }
        "application/pdf" => Some(Format::Pdf),
        _ => None,
    }
}

/// A media type without its parameters.
fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Media types that senders give to every file.
fn says_nothing(media_type: &str) -> bool {
    matches!(media_type, "" | "application/octet-stream" | "binary/octet-stream")
}

fn content(bytes: &[u8]) -> Content {
    // What some editors put before the first character.
    let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let signatures: [(&[u8], &'static str); 7] = [
        (b"\xd0\xcf\x11\xe0", "an old or encrypted Office file"),
        (b"{\\rtf", "RTF"),
        (b"\x89PNG", "a PNG picture"),
        (b"\xff\xd8\xff", "a JPEG picture"),
        (b"GIF8", "a GIF picture"),
        (b"\x1f\x8b", "a gzip file"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    ];
    if start.starts_with(b"%PDF-") {
        return Content::Known(Format::Pdf);
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return if package::is_docx(bytes) {
            Content::Known(Format::Docx)
        } else {
            Content::Foreign("a ZIP archive that is no DOCX file")
        };
    }
    let found = signatures.iter().find(|(signature, _)| bytes.starts_with(signature));
    found.map_or(Content::Plain, |(_, name)| Content::Foreign(name))
}

/// Whether a PDF header stands where readers look for it.
fn has_pdf_header(bytes: &[u8]) -> bool {
    bytes.get(..bytes.len().min(1024)).is_some_and(|head| head.windows(5).any(|w| w == b"%PDF-"))
}
