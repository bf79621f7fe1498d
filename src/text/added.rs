//! Finds literal tokens in a text: the leftmost, of those the longest.
//!
//! Two sets are kept apart: tokens that were added to a vocabulary as text (`<think>`), which
//! every text may contain, and control tokens, which only a template may write.

use std::collections::HashMap;

use crate::token::TokenId;

/// A set of literal strings with their ids.
#[derive(Debug, Default)]
pub(super) struct Literals {
    /// Children by (node, byte); node 0 is the root.
    edges: HashMap<(u32, u8), u32>,
    /// Id at each node.
    ids: Vec<Option<TokenId>>,
    /// Whether a string starts with the byte.
    first: Vec<bool>,
}

/// A stretch of text between literals, or a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    Text(&'t str),
    Literal(TokenId, &'t str),
}

impl Literals {
    pub(super) fn new<'s>(strings: impl Iterator<Item = (&'s str, TokenId)>) -> Self {
        let mut set = Self { edges: HashMap::new(), ids: vec![None], first: vec![false; 256] };
        for (text, id) in strings.filter(|(text, _)| !text.is_empty()) {
            set.first[usize::from(text.as_bytes()[0])] = true;
            let mut node = 0;
            for &byte in text.as_bytes() {
                // There are fewer nodes than bytes in a vocabulary.
                #[expect(clippy::cast_possible_truncation, reason = "see above")]
                let fresh = set.ids.len() as u32;
                node = *set.edges.entry((node, byte)).or_insert(fresh);
                if node == fresh {
                    set.ids.push(None);
                }
            }
            set.ids[node as usize] = Some(id);
        }
        set
    }

    pub(super) fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// The longest literal at the start of `bytes`: its id and length.
    fn at_start(&self, bytes: &[u8]) -> Option<(TokenId, usize)> {
        let mut node = 0;
        let mut found = None;
        for (index, &byte) in bytes.iter().enumerate() {
            let Some(&child) = self.edges.get(&(node, byte)) else { break };
            node = child;
            if let Some(id) = self.ids[node as usize] {
                found = Some((id, index + 1));
            }
        }
        found
    }

    /// Cuts a text at its literals; parts of text are never empty.
    pub(super) fn split<'t>(&self, text: &'t str) -> Vec<Part<'t>> {
        let mut parts = Vec::new();
        let bytes = text.as_bytes();
        let (mut from, mut at) = (0, 0);
        while !self.is_empty() && at < bytes.len() {
            let found =
                if self.first[usize::from(bytes[at])] { self.at_start(&bytes[at..]) } else { None };
            // A literal starts and ends with whole characters, and so its match does.
            match found {
                Some((id, length)) => {
                    if from < at {
                        parts.push(Part::Text(&text[from..at]));
                    }
                    parts.push(Part::Literal(id, &text[at..at + length]));
                    at += length;
                    from = at;
                }
                None => at += 1,
            }
        }
        if from < bytes.len() {
            parts.push(Part::Text(&text[from..]));
        }
        parts
    }
}
