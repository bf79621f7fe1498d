//! PDF: the text that pdf-extract finds, page by page.
//!
//! A PDF places glyphs and knows neither words nor paragraphs: spaces and line breaks come from
//! positions, so every line of the layout is a line of the text, a word that was broken at the
//! end of a line stays broken, and headers, footers and page numbers are part of the text.
//! Runs of spaces become one, and none ends a line: in justified text a space and the gap that
//! widens it would be two.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use pdf_extract::{
    ConvertToFmt, Document, Error as PdfError, MediaBox, OutputDev, OutputError, PlainTextOutput,
    Transform, output_doc,
};

use super::{Format, Limits, Note, too_large};
use crate::error::{Error, Result};

const AGAIN: &str = "print it to a new PDF, or give its text in another format";

pub(super) fn text(bytes: &[u8], limits: &Limits) -> Result<(String, Vec<Note>)> {
    let document = Document::load_mem(bytes).map_err(|error| match error {
        PdfError::Decryption(_) | PdfError::InvalidPassword | PdfError::AlreadyEncrypted => {
            encrypted()
        }
        error => damaged(&error.to_string()),
    })?;
    // A file that opens without a password has been decrypted by now.
    if document.is_encrypted() {
        return Err(encrypted());
    }
    let buffer = Buffer::new(limits.text_bytes);
    let mut pages = Pages { writer: buffer.writer(), buffer: buffer.clone(), texts: Vec::new() };
    let read = output_doc(&document, &mut pages);
    if buffer.is_full() {
        let found = format!("more than {} bytes", limits.text_bytes);
        return Err(too_large("text", &found, limits.text_bytes, Format::Pdf));
    }
    read.map_err(|error| damaged(&error.to_string()))?;
    let texts = pages.texts;
    let without: Vec<u32> = texts.iter().filter(|(_, text)| text.is_empty()).map(|p| p.0).collect();
    if without.len() == texts.len() {
        let problem = match texts.len() {
            0 => "no page in it".to_owned(),
            pages => format!("no text in it ({pages} pages); perhaps a scan"),
        };
        let remedy = "recognise its text first, for example with ocrmypdf";
        return Err(Error::document(Format::Pdf.what(), None, problem, remedy));
    }
    let text: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
    let text = text.iter().filter(|text| !text.is_empty()).fold(String::new(), |mut all, page| {
        all.push_str(page);
        all.push('\n');
        all
    });
    let notes = if without.is_empty() {
        Vec::new()
    } else {
        vec![Note::PagesWithoutText { pages: without }]
    };
    Ok((text, notes))
}

/// The lines of a page with single spaces and nothing around them.
fn tidy(page: &str) -> String {
    let words = |line: &str| {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        words.join(" ")
    };
    let lines: Vec<String> = page.lines().map(words).collect();
    lines.join("\n").trim().to_owned()
}

fn damaged(problem: &str) -> Error {
    Error::document(Format::Pdf.what(), None, format!("damaged or cut short ({problem})"), AGAIN)
}

fn encrypted() -> Error {
    let remedy = "remove the password first, for example: qpdf --decrypt --password=... in out";
    Error::document(Format::Pdf.what(), None, "encrypted, and needs a password", remedy)
}

/// Where a page's text goes: shared with the writer, and never longer than the limit.
#[derive(Clone)]
struct Buffer(Rc<RefCell<Content>>);

struct Content {
    page: String,
    /// Bytes that may still be written.
    left: u64,
    is_full: bool,
}

impl Buffer {
    fn new(limit: u64) -> Self {
        Self(Rc::new(RefCell::new(Content { page: String::new(), left: limit, is_full: false })))
    }

    fn writer(&self) -> PlainTextOutput<Self> {
        PlainTextOutput::new(self.clone())
    }

    fn take(&self) -> String {
        std::mem::take(&mut self.0.borrow_mut().page)
    }

    fn is_full(&self) -> bool {
        self.0.borrow().is_full
    }
}

impl fmt::Write for Buffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut content = self.0.borrow_mut();
        let Some(left) = content.left.checked_sub(text.len() as u64) else {
            content.is_full = true;
            return Err(fmt::Error);
        };
        content.left = left;
        content.page.push_str(text);
        Ok(())
    }
}

impl ConvertToFmt for Buffer {
    type Writer = Self;

    fn convert(self) -> Self {
        self
    }
}

/// pdf-extract's plain text, kept page by page.
struct Pages {
    writer: PlainTextOutput<Buffer>,
    buffer: Buffer,
    /// Page number from 1, and its text.
    texts: Vec<(u32, String)>,
}

impl OutputDev for Pages {
    fn begin_page(
        &mut self,
        page: u32,
        media_box: &MediaBox,
        art_box: Option<(f64, f64, f64, f64)>,
    ) -> Result<(), OutputError> {
        // The writer remembers where the last character of the page before stood.
        self.writer = self.buffer.writer();
        self.texts.push((page, String::new()));
        self.writer.begin_page(page, media_box, art_box)
    }

    fn end_page(&mut self) -> Result<(), OutputError> {
        self.writer.end_page()?;
        let text = self.buffer.take();
        if let Some((_, last)) = self.texts.last_mut() {
            *last = tidy(&text);
        }
        Ok(())
    }

    fn output_character(
        &mut self,
        position: &Transform,
        width: f64,
        spacing: f64,
        font_size: f64,
        character: &str,
    ) -> Result<(), OutputError> {
        self.writer.output_character(position, width, spacing, font_size, character)
    }

    fn begin_word(&mut self) -> Result<(), OutputError> {
        self.writer.begin_word()
    }

    fn end_word(&mut self) -> Result<(), OutputError> {
        self.writer.end_word()
    }

    fn end_line(&mut self) -> Result<(), OutputError> {
        self.writer.end_line()
    }
}
