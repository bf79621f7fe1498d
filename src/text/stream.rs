//! Streaming decode: whole characters as soon as they are complete, nothing lost at the end.

use super::tokenizer::Tokenizer;
use crate::token::TokenId;

/// Turns a stream of bytes into text. The parts concatenate to `String::from_utf8_lossy` of all
/// the bytes: a complete character comes out at once, bytes that can never become one come out
/// as U+FFFD, and only the beginning of a character waits.
#[derive(Clone, Debug, Default)]
pub struct Utf8Stream {
    /// The beginning of a character, at most three bytes.
    pending: Vec<u8>,
}

impl Utf8Stream {
    /// An empty stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes and gives the text that is now certain.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest = 0;
        for chunk in self.pending.utf8_chunks() {
            text.push_str(chunk.valid());
            rest += chunk.valid().len();
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            // The last chunk may be a character that goes on.
            let at_end = rest + invalid.len() == self.pending.len();
            if at_end && may_continue(invalid) {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            rest += invalid.len();
        }
        self.pending.drain(..rest);
        text
    }

    /// Ends the stream and gives what was held back: U+FFFD for an unfinished character.
    #[must_use]
    pub fn finish(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.pending).into_owned();
        self.pending.clear();
        text
    }
}

/// Whether more bytes can make a character of these.
fn may_continue(bytes: &[u8]) -> bool {
    // Only an error at the end of the input has no length.
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Turns a stream of ids into text; see [`Utf8Stream`]. The parts concatenate to
/// [`Tokenizer::decode_lossy`] of all the ids.
#[derive(Clone, Debug)]
pub struct StreamDecoder<'a> {
    tokenizer: &'a Tokenizer,
    stream: Utf8Stream,
    started: bool,
}

impl<'a> StreamDecoder<'a> {
    /// An empty stream.
    #[must_use]
    pub fn new(tokenizer: &'a Tokenizer) -> Self {
        Self { tokenizer, stream: Utf8Stream::new(), started: false }
    }

    /// Takes one id and gives the text that is now certain.
    #[must_use]
    pub fn push(&mut self, id: TokenId) -> String {
        let Some(mut bytes) = self.tokenizer.token_bytes(id).filter(|b| !b.is_empty()) else {
            return String::new();
        };
        if !self.started && self.tokenizer.strips_leading_space() {
            bytes = bytes.strip_prefix(b" ").unwrap_or(bytes);
        }
        // A first token that is only the dropped space leaves the text empty.
        self.started |= !bytes.is_empty();
        self.stream.push(bytes)
    }

    /// Number of bytes that wait for the rest of their character, at most three.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.stream.pending.len()
    }

    /// Ends the stream and gives what was held back.
    #[must_use]
    pub fn finish(&mut self) -> String {
        self.stream.finish()
    }
}
