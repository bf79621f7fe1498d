//! Text and Markdown: the bytes as they are, or a refusal that names the byte and the way out.

use super::Format;
use crate::error::{Error, Result};

/// The bytes as UTF-8, nothing added, trimmed or changed.
pub(super) fn text(format: Format, bytes: &[u8]) -> Result<String> {
    utf8(format, bytes).map(str::to_owned)
}

/// The bytes as UTF-8.
pub(super) fn utf8(format: Format, bytes: &[u8]) -> Result<&str> {
    let utf16 = match bytes {
        [0xff, 0xfe, ..] => Some("UTF-16LE"),
        [0xfe, 0xff, ..] => Some("UTF-16BE"),
        _ => None,
    };
    if let Some(charset) = utf16 {
        return Err(other_charset(format, 0, charset));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let offset = error.valid_up_to() as u64;
        Error::document(
            format.what(),
            offset,
            "not UTF-8",
            "convert it first, for example: iconv -f LATIN1 -t UTF-8",
        )
    })
}

/// The refusal of a file in another character set.
pub(super) fn other_charset(format: Format, offset: u64, charset: &str) -> Error {
    Error::document(
        format.what(),
        offset,
        format!("in {charset}, not UTF-8"),
        format!("convert it first: iconv -f {charset} -t UTF-8"),
    )
}
