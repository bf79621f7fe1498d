//! Lists of token ids, on the command line and in files.

use std::io::Read;
use std::path::Path;

use greenmark::token::TokenId;
use greenmark::{Error, Result};

/// Ids from text: a JSON list, or numbers between commas or white space. Empty text is no id.
pub(crate) fn parse_ids(name: &'static str, text: &str) -> Result<Vec<TokenId>> {
    let wrong = |found: &str| {
        Error::parameter(name, found, "token ids: a JSON list, or whole numbers between commas")
    };
    let trimmed = text.trim();
    let inner = match trimmed.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').ok_or_else(|| wrong(trimmed))?,
        None => trimmed,
    };
    inner
        .split(|c: char| c == ',' || c.is_whitespace())
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .enumerate()
        .map(|(position, part)| {
            let id: u64 = part.parse().map_err(|_| wrong(part))?;
            TokenId::try_from(id).map_err(|_| {
                Error::parameter(
                    name,
                    format!("id {id} at position {position}"),
                    "ids below 2^32 and inside the vocabulary",
                )
            })
        })
        .collect()
}

/// Ids from a file, or from standard input for `-`.
pub(crate) fn read_ids(path: &Path) -> Result<Vec<TokenId>> {
    let bytes = read_input(path)?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let at = error.valid_up_to() as u64;
        Error::file(path, at, "not text", "give token ids as numbers or a JSON list")
    })?;
    parse_ids("ids", text)
}

/// The bytes of a file, or of standard input for `-`.
pub(crate) fn read_input(path: &Path) -> Result<Vec<u8>> {
    let failed = |source| Error::io("read", path, source);
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map_err(failed)?;
        return Ok(bytes);
    }
    std::fs::read(path).map_err(failed)
}

/// A UTF-8 file, or standard input for `-`, as text: every byte of it.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read_input(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to() as u64;
        Error::file(path, at, "the text is not UTF-8", "convert it to UTF-8 first")
    })
}
