//! Lists of token ids, on the command line and in files.

use std::io::Read;
use std::path::Path;

use greenmark::token::TokenId;
use greenmark::{Error, Result};

const FORM: &str = "token ids: a JSON list, or whole numbers between commas or white space";

/// Ids on the command line: a JSON list, or numbers between commas or white space. Empty text is
/// no id.
pub(crate) fn parse_ids(name: &'static str, text: &str) -> Result<Vec<TokenId>> {
    ids(text).map_err(|wrong| {
        // A slip of a paste is not echoed whole.
        let shown: String = wrong.part.chars().take(40).collect();
        Error::parameter(name, format!("{shown} at position {}", wrong.position), FORM)
    })
}

/// Ids from a file's bytes. What the file holds is never repeated: it may be a text or a key that
/// was named by mistake.
pub(crate) fn ids_from(path: &Path, bytes: &[u8]) -> Result<Vec<TokenId>> {
    let refuse = |problem: String| Error::file(path, None, problem, format!("give {FORM}"));
    let text = std::str::from_utf8(bytes).map_err(|_| refuse("not text".to_owned()))?;
    ids(text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(|wrong| {
        let length = wrong.part.chars().count();
        match wrong.part.parse::<u64>() {
            Ok(id) => refuse(format!("id {id} at position {} is no token id", wrong.position)),
            Err(_) => refuse(format!(
                "{length} characters at position {} are no token id",
                wrong.position
            )),
        }
    })
}

/// A part of a list that is no id.
struct Wrong<'a> {
    position: usize,
    part: &'a str,
}

fn ids(text: &str) -> std::result::Result<Vec<TokenId>, Wrong<'_>> {
    let trimmed = text.trim();
    let inner = match trimmed.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').ok_or(Wrong { position: 0, part: trimmed })?,
        None => trimmed,
    };
    inner
        .split(|c: char| c == ',' || c.is_whitespace())
        .filter(|part| !part.is_empty())
        .enumerate()
        .map(|(position, part)| part.parse().map_err(|_| Wrong { position, part }))
        .collect()
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

/// As [`read_input`], refusing more than `limit` bytes before they fill the memory.
pub(crate) fn read_input_up_to(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let failed = |source| Error::io("read", path, source);
    let mut bytes = Vec::new();
    let most = limit.saturating_add(1);
    if path.as_os_str() == "-" {
        std::io::stdin().take(most).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    }
    if bytes.len() as u64 > limit {
        let problem = format!("more than {limit} bytes");
        return Err(Error::file(path, None, problem, "raise the limit, or split the file"));
    }
    Ok(bytes)
}

/// A UTF-8 file, or standard input for `-`, as text: every byte of it.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read_input(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to() as u64;
        Error::file(path, at, "the text is not UTF-8", "convert it to UTF-8 first")
    })
}
