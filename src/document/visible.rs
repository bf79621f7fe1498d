//! Characters that a page or a terminal would hide or obey, made visible.
//!
//! A text under examination is not trusted: escape sequences must not reach a terminal, direction
//! marks must not reorder a report, and a reader should see what is invisible. This changes what
//! is shown, never what is tested.

use std::fmt::Write;

/// A stretch of a text as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Characters that show themselves; among the controls only tab and line feed.
    Shown(&'a str),
    /// A run of characters that do not; [`label`] names them.
    Hidden(&'a str),
}

/// Cuts `text` into parts. Together they are the text, but for the carriage return of a CR LF
/// line end, which is left out.
#[must_use]
pub fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut from, mut hidden) = (0, false);
    let mut flush = |from: usize, to: usize, hidden: bool| {
        if from < to {
            let part = &text[from..to];
            parts.push(if hidden { Part::Hidden(part) } else { Part::Shown(part) });
        }
    };
    let mut before = Before::default();
    for (at, character) in text.char_indices() {
        if character == '\r' && text[at + 1..].starts_with('\n') {
            flush(from, at, hidden);
            (from, hidden) = (at + 1, false);
            continue;
        }
        let hides = before.hides(character);
        if hides != hidden {
            flush(from, at, hidden);
            (from, hidden) = (at, hides);
        }
    }
    flush(from, text.len(), hidden);
    parts
}

/// Names a run of hidden characters: `U+200B`, `U+200B ×3`, `U+200B U+200C`, and a count for long
/// mixed runs.
#[must_use]
pub fn label(run: &str) -> String {
    /// Longer mixed runs are counted only.
    const NAMED: usize = 4;
    let mut label = String::new();
    let Some(first) = run.chars().next() else { return label };
    let count = run.chars().count();
    // A String takes every write.
    let _ = if run.chars().all(|character| character == first) {
        match count {
            1 => write!(label, "U+{:04X}", u32::from(first)),
            _ => write!(label, "U+{:04X} ×{count}", u32::from(first)),
        }
    } else if count <= NAMED {
        run.chars().enumerate().try_for_each(|(index, character)| {
            let gap = if index > 0 { " " } else { "" };
            write!(label, "{gap}U+{:04X}", u32::from(character))
        })
    } else {
        write!(label, "U+{:04X} and {} more hidden", u32::from(first), count - 1)
    };
    label
}

/// `text` with every hidden run as its label in angle brackets, and line ends and tabs as spaces:
/// one safe line.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for part in parts(text) {
        match part {
            Part::Shown(shown) => {
                line.extend(shown.chars().map(|c| if matches!(c, '\n' | '\t') { ' ' } else { c }));
            }
            Part::Hidden(run) => {
                let _ = write!(line, "<{}>", label(run));
            }
        }
    }
    line
}

/// What stands before a character, as far as it matters to joiners and variation selectors.
#[derive(Default)]
struct Before {
    /// The last character that is neither a joiner nor a selector nor a tag.
    base: char,
    /// Whether the last character was a joiner or a selector.
    extended: bool,
}

impl Before {
    /// Whether `character` shows nothing, or does something else than show itself, at this place.
    fn hides(&mut self, character: char) -> bool {
        let base = self.base;
        let after_first = self.extended;
        self.extended = matches!(
            character,
            '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'
        );
        match character {
            '\n' | '\t' => {
                self.base = character;
                false
            }
            // Joiners shape Arabic and Indic words and emoji; Latin, Greek and Cyrillic have no
            // use for them.
            '\u{200c}' | '\u{200d}' => !matches!(base, '\u{590}'..='\u{1fff}' | '\u{2190}'..),
            // One selector chooses a form of a symbol or an ideograph; runs of them carry data.
            '\u{fe00}'..='\u{fe0f}' => {
                let chooses = matches!(base, '0'..='9' | '#' | '*' | '©' | '®' | '\u{1800}'..);
                after_first || !chooses
            }
            '\u{e0100}'..='\u{e01ef}' => after_first || !matches!(base, '\u{2e80}'..),
            // Tags spell the flags of regions after a black flag.
            '\u{e0020}'..='\u{e007f}' => base != '\u{1f3f4}',
            _ => {
                let hides = character.is_control() || is_invisible(character);
                if !hides {
                    self.base = character;
                }
                hides
            }
        }
    }
}

/// Format characters without width, direction marks, separators that break lines, and code points
/// that are no characters.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' | '\u{fdd0}'..='\u{fdef}'
    ) || u32::from(character) & 0xfffe == 0xfffe
}
