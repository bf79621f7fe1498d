//! Which ids end a text and which are never marked, from a model and its tokenizer together.

use crate::document;
use crate::engine::ModelInfo;
use crate::error::Result;
use crate::text::Tokenizer;
use crate::token::{TokenId, TokenSet};

/// The ids that end a text, ascending: every one that the model or its tokenizer declares.
#[must_use]
pub fn end_ids(info: &ModelInfo, tokenizer: &Tokenizer) -> Vec<TokenId> {
    let mut ids = info.end_ids.clone();
    ids.extend_from_slice(tokenizer.eos_ids());
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The ids that generation never marks: those that detection never scores, and every id that ends
/// a text, whatever its kind.
///
/// # Errors
/// [`crate::Error::TokenOutOfRange`] when the model has fewer ids than the tokenizer.
pub fn never_marked(info: &ModelInfo, tokenizer: &Tokenizer) -> Result<TokenSet> {
    let control = document::never_marked(tokenizer, info.vocab_size)?;
    let ids: Vec<TokenId> = control.iter().chain(end_ids(info, tokenizer)).collect();
    TokenSet::from_ids(info.vocab_size, ids)
}
