//! The text of foreign files: exact values, and files that want to do harm.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod docx;
mod fixture;
mod formats;
mod hostile;
mod html;
mod isolated;
mod pdf;

use greenmark::extract::{Extracted, Format, Limits, Note, text};
use greenmark::{Error, ErrorKind};

/// The text and notes of a file under the default limits.
fn read(format: Format, bytes: &[u8]) -> (String, Vec<Note>) {
    let Extracted { format: found, text, notes } = text(format, bytes, &Limits::default()).unwrap();
    assert_eq!(found, format);
    (text, notes)
}

/// The message of a refusal, which must be about the file.
fn refusal(format: Format, bytes: &[u8]) -> String {
    about_the_file(&text(format, bytes, &Limits::default()).unwrap_err())
}

fn about_the_file(error: &Error) -> String {
    assert!(matches!(error, Error::Document { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Input);
    error.to_string()
}
