//! Cutting a text into passages of token ids.

use crate::detect::calibration::Passage;
use crate::error::Result;
use crate::text::Tokenizer;
use crate::token::TokenId;

/// Cuts `text` into passages of `longest` tokens, each at least 1; what is left at the end is a
/// passage too when it has at least `shortest`. `document` is what the passages say they come
/// from.
///
/// The text is encoded as a detection encodes it, once and whole: a leading byte-order mark is
/// left out, nothing else is changed.
///
/// # Errors
/// As the tokenizer's.
pub fn passages(
    tokenizer: &Tokenizer,
    text: &str,
    document: u32,
    shortest: usize,
    longest: usize,
) -> Result<Vec<Passage>> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let skipped = text.len() - body.len();
    let pieces = tokenizer.encode(body)?;
    let passages = pieces
        .chunks(longest.max(1))
        .filter(|pieces| pieces.len() >= shortest)
        .map(|pieces| Passage {
            document,
            offset: (skipped + pieces[0].bytes.start) as u64,
            ids: pieces.iter().map(|piece| piece.id).collect::<Box<[TokenId]>>(),
        })
        .collect();
    Ok(passages)
}
