//! The character classes `\p{L}`, `\p{N}` and `\s` exactly as the regular-expression engine of
//! the reference tokenizer has them.
//!
//! Pre-tokenizers are defined by regular expressions, and engines differ in the Unicode version
//! of their tables. So the tables are asked of the very engine (Oniguruma), one block of 256
//! characters at a time, when a text first uses the block; the splitting itself is a plain scan
//! (see [`super::split`]), which is linear and needs no stack.

use std::sync::OnceLock;

use crate::error::{Error, Result};

/// What a character is to a pre-tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    /// `\p{L}`.
    Letter,
    /// `\p{N}`.
    Number,
    /// `\s`.
    Space,
    /// `[^\s\p{L}\p{N}]`.
    Other,
}

const BLOCK: usize = 256;
const BLOCKS: usize = 0x11_0000 / BLOCK;

type Block = Box<[Class; BLOCK]>;

/// Lazily filled tables of the three classes.
pub(super) struct Classes {
    engines: [(onig::Regex, Class); 3],
    blocks: Box<[OnceLock<Block>]>,
}

impl Classes {
    pub(super) fn new() -> Result<Self> {
        let engine = |pattern| {
            onig::Regex::new(pattern)
                .map_err(|e| Error::backend(format!("compiling the pattern {pattern}"), e))
        };
        Ok(Self {
            engines: [
                (engine(r"\p{L}+")?, Class::Letter),
                (engine(r"\p{N}+")?, Class::Number),
                (engine(r"\s+")?, Class::Space),
            ],
            blocks: (0..BLOCKS).map(|_| OnceLock::new()).collect(),
        })
    }

    pub(super) fn of(&self, character: char) -> Class {
        let code = character as usize;
        let block = self.blocks[code / BLOCK].get_or_init(|| self.fill(code / BLOCK));
        block[code % BLOCK]
    }

    #[expect(clippy::cast_possible_truncation, reason = "code points are below 2^21")]
    fn fill(&self, block: usize) -> Block {
        let mut classes = Box::new([Class::Other; BLOCK]);
        let characters: Vec<char> = (block * BLOCK..(block + 1) * BLOCK)
            .filter_map(|code| char::from_u32(code as u32))
            .collect();
        let text: String = characters.iter().collect();
        for (engine, class) in &self.engines {
            for (start, end) in engine.find_iter(&text) {
                for character in text[start..end].chars() {
                    classes[character as usize % BLOCK] = *class;
                }
            }
        }
        classes
    }
}

impl std::fmt::Debug for Classes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let filled = self.blocks.iter().filter(|block| block.get().is_some()).count();
        f.debug_struct("Classes").field("filled_blocks", &filled).finish_non_exhaustive()
    }
}
