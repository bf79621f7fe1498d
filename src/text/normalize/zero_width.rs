//! `zero-width`: invisible characters are deleted, not replaced.
//!
//! What a script or an emoji needs stays: joiners and zero-width spaces behind letters of scripts
//! that join or do not write spaces, direction marks in a text that holds right-to-left letters,
//! the joiners and tags of emoji, Hangul fillers beside Hangul. Runs of variation selectors stay
//! with the U+FEFF before them: they carry data, such as a C2PA manifest, that is not ours to
//! destroy.

use unicode_script::{Script, UnicodeScript};

use super::Edit;
use super::selectors::{SHORTEST_RUN, is_selector, run_length};

/// How far behind a joiner the emoji may stand that it joins, with other invisible characters
/// between: bounds the time of a long run of joiners.
const JOINER_REACH: usize = 8;

/// The characters without width that nothing needs where they stand.
pub(super) fn edits(text: &str, edit: Edit<'_>) {
    if text.is_ascii() {
        return;
    }
    let right_to_left = text.chars().any(is_right_to_left);
    let mut before = Before::default();
    let mut run_ends = 0;
    for (at, character) in text.char_indices() {
        if at < run_ends {
            continue;
        }
        let rest = &text[at + character.len_utf8()..];
        if is_selector(character) {
            let run = run_length(&text[at..]);
            if run >= SHORTEST_RUN {
                let length: usize = text[at..].chars().take(run).map(char::len_utf8).sum();
                run_ends = at + length;
                before.tags = false;
            } else if before.cased {
                edit(at..at + character.len_utf8(), "");
            }
        } else if !is_invisible(character) {
            before.see(character);
        } else if before.needs(character, rest, right_to_left) {
            before.tags &= is_tag(character);
        } else {
            edit(at..at + character.len_utf8(), "");
        }
    }
}

/// What stands before a character.
#[derive(Default)]
struct Before {
    visible: Option<char>,
    /// The last script that is not that of a combining mark.
    script: Option<Script>,
    /// Whether the last visible character is a letter of a script for which no variation sequence
    /// is defined.
    cased: bool,
    /// Whether an emoji tag sequence is open.
    tags: bool,
}

impl Before {
    fn see(&mut self, character: char) {
        self.visible = Some(character);
        self.tags = character == '\u{1f3f4}';
        let script =
            if character.is_ascii_alphabetic() { Script::Latin } else { character.script() };
        if script != Script::Inherited {
            self.script = Some(script);
            self.cased = matches!(
                script,
                Script::Latin
                    | Script::Greek
                    | Script::Cyrillic
                    | Script::Armenian
                    | Script::Georgian
                    | Script::Hebrew
            ) && character.is_alphabetic();
        }
    }

    /// Whether the invisible `character`, with `rest` behind it, has a duty here.
    fn needs(&self, character: char, rest: &str, right_to_left: bool) -> bool {
        match character {
            '\u{200d}' if self.visible.is_some_and(is_pictograph) => {
                let mut ahead = rest.chars().take(JOINER_REACH);
                ahead.find(|&next| !is_invisible(next)).is_some_and(is_pictograph)
            }
            '\u{200b}'..='\u{200d}' | '\u{180e}' | '\u{17b4}' | '\u{17b5}' => {
                self.script.is_some_and(needs_joiners)
            }
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => right_to_left,
            '\u{feff}' => run_length(rest) >= SHORTEST_RUN,
            '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => {
                self.script == Some(Script::Hangul)
                    || rest.chars().next().is_some_and(|next| next.script() == Script::Hangul)
            }
            _ => self.tags && is_tag(character),
        }
    }
}

/// Characters without width. Variation selectors are not among them.
pub(super) fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
    ) || is_tag(character)
}

fn is_tag(character: char) -> bool {
    matches!(character, '\u{e0001}' | '\u{e0020}'..='\u{e007f}')
}

/// Scripts whose letters join, stack or run without spaces, so that joiners and zero-width spaces
/// are part of their spelling: all but the ones listed.
fn needs_joiners(script: Script) -> bool {
    !matches!(
        script,
        Script::Common
            | Script::Inherited
            | Script::Unknown
            | Script::Latin
            | Script::Greek
            | Script::Cyrillic
            | Script::Armenian
            | Script::Georgian
            | Script::Hebrew
            | Script::Cherokee
            | Script::Ethiopic
            | Script::Han
            | Script::Hiragana
            | Script::Katakana
            | Script::Bopomofo
            | Script::Hangul
    )
}

/// Letters that are written from right to left.
fn is_right_to_left(character: char) -> bool {
    let block = matches!(character,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}'
    );
    block && character.is_alphabetic()
}

/// Characters that emoji sequences are made of (wider than the property
/// `Extended_Pictographic`).
fn is_pictograph(character: char) -> bool {
    matches!(character,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2190}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}'
    )
}
