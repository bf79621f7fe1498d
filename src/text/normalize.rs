//! Normalisers that a detection may ask for, with a way back to the original text.
//!
//! They undo cheap changes that hide a watermark: other line ends, invisible characters,
//! characters that look like Latin letters. Nothing is normalised unless asked, since a text is
//! evidence as it stands; a report of both results is the caller's part.

use std::ops::Range;

use crate::error::{Error, Result};

/// A normaliser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Normalizer {
    /// CR LF and lone CR become LF.
    Newlines,
    /// Invisible format characters are removed: zero-width spaces and joiners, soft hyphens,
    /// byte-order marks, direction marks, tag characters.
    ZeroWidth,
    /// Characters that look like ASCII become ASCII: Cyrillic and Greek look-alikes, full-width
    /// and mathematical forms, spaces of other widths. Real Cyrillic and Greek text is destroyed.
    Confusables,
}

impl Normalizer {
    /// All of them, in the order in which they are applied.
    pub const ALL: [Self; 3] = [Self::Newlines, Self::ZeroWidth, Self::Confusables];

    /// The name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Newlines => "newlines",
            Self::ZeroWidth => "zero-width",
            Self::Confusables => "confusables",
        }
    }

    /// The normaliser of a name.
    ///
    /// # Errors
    /// [`Error::Parameter`] naming the known ones.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name).ok_or_else(|| {
            Error::parameter("normalize", name, Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// A normalised text that remembers where its bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Normalized {
    text: String,
    /// (byte in the text, byte in the original) at the end of each replaced or removed stretch;
    /// between two entries both run in step.
    steps: Vec<(usize, usize)>,
    original_len: usize,
}

impl Normalized {
    /// The normalised text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place in the original of a byte offset in the normalised text. What was removed
    /// before the offset lies before the place.
    #[must_use]
    pub fn original(&self, offset: usize) -> usize {
        let index = self.steps.partition_point(|&(normalized, _)| normalized <= offset);
        let (normalized, original) = index.checked_sub(1).map_or((0, 0), |index| self.steps[index]);
        // Inside a replacement the offset must not pass the next step.
        let limit = self.steps.get(index).map_or(self.original_len, |&(_, original)| original);
        (original + (offset - normalized)).min(limit)
    }

    /// The stretch of the original that a byte range of the normalised text comes from.
    #[must_use]
    pub fn original_range(&self, range: Range<usize>) -> Range<usize> {
        self.original(range.start)..self.original(range.end)
    }

    /// Whether anything was changed.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        !self.steps.is_empty()
    }
}

/// What becomes of a character.
enum Fate {
    Keep,
    Remove,
    Replace(char),
}

/// Applies normalisers to a text.
#[must_use]
pub fn normalize(text: &str, wanted: &[Normalizer]) -> Normalized {
    let newlines = wanted.contains(&Normalizer::Newlines);
    let zero_width = wanted.contains(&Normalizer::ZeroWidth);
    let confusables = wanted.contains(&Normalizer::Confusables);
    let mut out = String::with_capacity(text.len());
    let mut steps = Vec::new();
    for (at, character) in text.char_indices() {
        let after = at + character.len_utf8();
        let fate = if newlines && character == '\r' {
            // Of CR LF the LF stays.
            if text[after..].starts_with('\n') { Fate::Remove } else { Fate::Replace('\n') }
        } else if zero_width && is_invisible(character) {
            Fate::Remove
        } else if confusables && let Some(plain) = look_alike(character) {
            Fate::Replace(plain)
        } else {
            Fate::Keep
        };
        match fate {
            Fate::Keep => {
                out.push(character);
                continue;
            }
            Fate::Remove => {}
            Fate::Replace(plain) => out.push(plain),
        }
        steps.push((out.len(), after));
    }
    Normalized { text: out, steps, original_len: text.len() }
}

/// Counts of characters that hide a watermark, for a warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Invisible characters after a letter of a script that never needs them.
    pub zero_width: usize,
    /// Look-alikes in words that also hold ASCII letters, and full-width or mathematical forms.
    pub confusables: usize,
    /// CR LF line ends and lone CR.
    pub carriage_returns: usize,
}

impl Survey {
    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Counts what [`normalize`] would undo and honest text seldom has. Real Cyrillic or Greek words
/// and joiners in scripts and emoji that need them do not count.
#[must_use]
pub fn survey(text: &str) -> Survey {
    let mut found = Survey::default();
    let mut previous = ' ';
    // Of the current word: look-alikes from other alphabets, and whether it holds ASCII letters.
    let (mut foreign, mut ascii) = (0, false);
    for character in text.chars() {
        if is_invisible(character) {
            if needs_no_joiner(previous) {
                found.zero_width += 1;
            }
            continue;
        }
        previous = character;
        if character == '\r' {
            found.carriage_returns += 1;
        }
        if character.is_alphabetic() {
            ascii |= character.is_ascii();
            if look_alike(character).is_some() {
                if is_styled(character) {
                    found.confusables += 1;
                } else {
                    foreign += 1;
                }
            }
        } else {
            if ascii {
                found.confusables += foreign;
            }
            (foreign, ascii) = (0, false);
        }
    }
    if ascii {
        found.confusables += foreign;
    }
    found
}

/// Letters and digits of scripts that need no joiners: Latin, Greek, Cyrillic.
fn needs_no_joiner(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(character, '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{52f}')
}

/// Format characters without width. Variation selectors are left: emoji need them.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

/// Full-width and mathematical forms of ASCII.
fn is_styled(character: char) -> bool {
    matches!(character, '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}')
}

/// (other, ASCII) letters that most fonts draw alike: Cyrillic, then Greek, then others.
const LETTERS: &[(char, char)] = &[
    ('а', 'a'),
    ('е', 'e'),
    ('о', 'o'),
    ('р', 'p'),
    ('с', 'c'),
    ('у', 'y'),
    ('х', 'x'),
    ('ѕ', 's'),
    ('і', 'i'),
    ('ј', 'j'),
    ('һ', 'h'),
    ('ԁ', 'd'),
    ('ԛ', 'q'),
    ('ԝ', 'w'),
    ('ӏ', 'l'),
    ('ѵ', 'v'),
    ('А', 'A'),
    ('В', 'B'),
    ('Е', 'E'),
    ('К', 'K'),
    ('М', 'M'),
    ('Н', 'H'),
    ('О', 'O'),
    ('Р', 'P'),
    ('С', 'C'),
    ('Т', 'T'),
    ('У', 'Y'),
    ('Х', 'X'),
    ('Ѕ', 'S'),
    ('І', 'I'),
    ('Ј', 'J'),
    ('Ԛ', 'Q'),
    ('Ԝ', 'W'),
    ('Ѵ', 'V'),
    ('ο', 'o'),
    ('ν', 'v'),
    ('α', 'a'),
    ('ρ', 'p'),
    ('ι', 'i'),
    ('Α', 'A'),
    ('Β', 'B'),
    ('Ε', 'E'),
    ('Ζ', 'Z'),
    ('Η', 'H'),
    ('Ι', 'I'),
    ('Κ', 'K'),
    ('Μ', 'M'),
    ('Ν', 'N'),
    ('Ο', 'O'),
    ('Ρ', 'P'),
    ('Τ', 'T'),
    ('Υ', 'Y'),
    ('Χ', 'X'),
    ('ı', 'i'),
    ('ɡ', 'g'),
    ('ɑ', 'a'),
    ('օ', 'o'),
    ('ց', 'g'),
    ('ո', 'n'),
    ('ս', 'u'),
];

/// The ASCII character that a character looks like.
fn look_alike(character: char) -> Option<char> {
    let code = character as u32;
    let letter = |index: u32| {
        let base = if index < 26 { b'A' } else { b'a' - 26 };
        // The index is below 52.
        char::from_u32(u32::from(base) + index)
    };
    match character {
        '\u{0}'..='\u{7f}' => None,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
            Some(' ')
        }
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(code - 0xff01 + 0x21),
        // Thirteen alphabets of 52 letters, then five rows of digits; between them Greek.
        '\u{1d400}'..='\u{1d6a3}' => letter((code - 0x1_d400) % 52),
        '\u{1d7ce}'..='\u{1d7ff}' => char::from_u32(u32::from(b'0') + (code - 0x1_d7ce) % 10),
        _ => LETTERS.iter().find(|(other, _)| *other == character).map(|(_, plain)| *plain),
    }
}
