//! Pre-tokenizers: where a byte-level BPE text is cut before merging.
//!
//! Each is a hand-written scan that finds the same pieces as the regular expression that defines
//! it, in linear time and constant stack. Tests compare both on every character and on random
//! strings.

use super::classes::{Class, Classes};

/// The pre-tokenizers this crate knows by name; the names are those of `tokenizer.ggml.pre`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PreTokenizer {
    /// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    /// (Radford et al. 2019).
    Gpt2,
    /// Every number character alone (Rust's `char::is_numeric`, as the reference does), then
    /// [`PreTokenizer::Gpt2`] on what lies between.
    Smollm,
    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|`
    /// ` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+` (Llama 3).
    LlamaBpe,
    /// As [`PreTokenizer::LlamaBpe`] with `\p{N}` for `\p{N}{1,3}` (Qwen 2 and 3).
    Qwen2,
}

impl PreTokenizer {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Gpt2, Self::Smollm, Self::LlamaBpe, Self::Qwen2];

    /// The name in `tokenizer.ggml.pre`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gpt2 => "gpt-2",
            Self::Smollm => "smollm",
            Self::LlamaBpe => "llama-bpe",
            Self::Qwen2 => "qwen2",
        }
    }

    /// The pre-tokenizer of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pre| pre.name() == name)
    }

    /// Calls `found` with every piece of `text`, in order; the pieces concatenate to `text`.
    pub(super) fn split<'t>(
        self,
        classes: &Classes,
        text: &'t str,
        mut found: impl FnMut(&'t str),
    ) {
        let mut scan = |text: &'t str| {
            let mut rest = text;
            while !rest.is_empty() {
                let scanner = Scanner { classes, text: rest };
                let end = match self {
                    Self::Gpt2 | Self::Smollm => scanner.gpt2(),
                    Self::LlamaBpe => scanner.llama(3),
                    Self::Qwen2 => scanner.llama(1),
                };
                let (piece, tail) = rest.split_at(end);
                found(piece);
                rest = tail;
            }
        };
        if self == Self::Smollm {
            let mut from = 0;
            for (at, number) in text.match_indices(char::is_numeric) {
                scan(&text[from..at]);
                // One character is one piece under any of the expressions.
                scan(number);
                from = at + number.len();
            }
            scan(&text[from..]);
        } else {
            scan(text);
        }
    }
}

/// Finds the first match in a text that is not empty.
struct Scanner<'a> {
    classes: &'a Classes,
    text: &'a str,
}

impl Scanner<'_> {
    fn class_at(&self, at: usize) -> Option<Class> {
        self.text[at..].chars().next().map(|c| self.classes.of(c))
    }

    /// End of the run of characters from `at` for which `test` holds.
    fn run(&self, at: usize, mut test: impl FnMut(char) -> bool) -> usize {
        self.text[at..].find(|c| !test(c)).map_or(self.text.len(), |length| at + length)
    }

    fn run_of(&self, at: usize, class: Class) -> usize {
        self.run(at, |c| self.classes.of(c) == class)
    }

    fn gpt2(&self) -> usize {
        if let Some(end) = self.contraction(|a, b| a == b) {
            return end;
        }
        let start = usize::from(self.text.starts_with(' '));
        match self.class_at(start) {
            Some(class) if class != Class::Space => self.run_of(start, class),
            _ => self.spaces(),
        }
    }

    fn llama(&self, digits: usize) -> usize {
        // Under case folding the long s (U+017F) equals s; no other character folds to a letter
        // of the contractions.
        if let Some(end) =
            self.contraction(|a, b| a.eq_ignore_ascii_case(&b) || (a == '\u{17f}' && b == 's'))
        {
            return end;
        }
        // The text is not empty, so there is a first character; the default is never used.
        let first = self.text.chars().next().unwrap_or_default();
        let class = self.classes.of(first);
        let second = first.len_utf8();
        if class == Class::Letter {
            return self.run_of(0, Class::Letter);
        }
        let line_end = |c| matches!(c, '\r' | '\n');
        if class != Class::Number
            && !line_end(first)
            && self.class_at(second) == Some(Class::Letter)
        {
            return self.run_of(second, Class::Letter);
        }
        if class == Class::Number {
            let mut taken = 0;
            return self.run(0, |c| {
                taken += 1;
                taken <= digits && self.classes.of(c) == Class::Number
            });
        }
        let start = usize::from(first == ' ');
        if self.class_at(start) == Some(Class::Other) {
            return self.run(self.run_of(start, Class::Other), line_end);
        }
        // White space up to its last line end, if it has one.
        let end = self.run_of(0, Class::Space);
        match self.text[..end].rfind(line_end) {
            Some(at) => at + 1,
            None => self.spaces(),
        }
    }

    /// `'s|'t|'re|'ve|'m|'ll|'d` at the start.
    fn contraction(&self, equal: impl Fn(char, char) -> bool) -> Option<usize> {
        let rest = self.text.strip_prefix('\'')?;
        ["s", "t", "re", "ve", "m", "ll", "d"].into_iter().find_map(|ending| {
            let mut given = rest.chars();
            let mut length = 1;
            for wanted in ending.chars() {
                let found = given.next()?;
                if !equal(found, wanted) {
                    return None;
                }
                length += found.len_utf8();
            }
            Some(length)
        })
    }

    /// `\s+(?!\S)|\s+` at the start: a run before something else leaves its last character to
    /// that, if it has more than one.
    fn spaces(&self) -> usize {
        let end = self.run_of(0, Class::Space);
        if end == self.text.len() {
            return end;
        }
        match self.text[..end].char_indices().next_back() {
            Some((at, _)) if at > 0 => at,
            // A run of one, or (never: every character has a class) no match at all.
            _ => end.max(self.text.chars().next().map_or(0, char::len_utf8)),
        }
    }
}
