//! Scripts and the letters of each that other characters look like, by the data of UTS 39.

use std::collections::HashMap;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;
use unicode_script::{Script, UnicodeScript};
use unicode_security::general_security_profile::IdentifierType;
use unicode_security::{GeneralSecurityProfile, skeleton};

/// Alphabets lie below this code point; above it are syllabaries, ideographs and symbols, which
/// nothing is mended toward.
const END_OF_ALPHABETS: u32 = 0x2000;

/// The letters of every script in everyday use (those that UTS 39 allows in identifiers), by their
/// skeleton. Derived from constants only, once, when a text first holds two scripts.
static LETTERS: LazyLock<HashMap<(Script, String), Vec<char>>> = LazyLock::new(|| {
    let mut letters: HashMap<_, Vec<char>> = HashMap::new();
    for letter in (0..END_OF_ALPHABETS).filter_map(char::from_u32) {
        if let Some(script) = script_of(letter)
            && letter.identifier_allowed()
            && (script != Script::Latin || is_basic_latin(letter))
        {
            letters.entry((script, skeleton_of(letter))).or_default().push(letter);
        }
    }
    letters
});

/// Whether `letter` is one of A to Z, with or without accents. Others of the Latin script (`ŋ`, `ß`)
/// are too rare to be what a look-alike stands for.
fn is_basic_latin(letter: char) -> bool {
    std::iter::once(letter).nfd().next().is_some_and(|base| base.is_ascii())
}

fn skeleton_of(character: char) -> String {
    skeleton(character.encode_utf8(&mut [0; 4])).collect()
}

/// The script of a letter; nothing for what is no letter or belongs to no script. The scripts that
/// Chinese, Japanese and Korean mix count as one.
pub(super) fn script_of(character: char) -> Option<Script> {
    if character.is_ascii() {
        return character.is_ascii_alphabetic().then_some(Script::Latin);
    }
    if !character.is_alphabetic() {
        return None;
    }
    match character.script() {
        Script::Common | Script::Inherited | Script::Unknown => None,
        Script::Hiragana | Script::Katakana | Script::Bopomofo | Script::Hangul => {
            Some(Script::Han)
        }
        script => Some(script),
    }
}

/// The letter of `script` that `letter` looks like, of the same case; nothing when it looks like
/// none or is itself a letter of `script`, unless as one of the phonetic alphabet (`ɡ`).
pub(super) fn look_alike(letter: char, script: Script) -> Option<char> {
    if script_of(letter) == Some(script)
        && (letter.is_ascii() || letter.identifier_type() != Some(IdentifierType::Technical))
    {
        return None;
    }
    let fits = |candidate: &&char| {
        candidate.is_uppercase() == letter.is_uppercase()
            && (candidate.is_lowercase() || !letter.is_lowercase())
    };
    LETTERS.get(&(script, skeleton_of(letter)))?.iter().find(fits).copied()
}

/// The plain character of a form that only styles it: full-width, mathematical, circled, squared,
/// Roman numerals, and the letter-like symbols that fill the gaps of the mathematical alphabets.
pub(super) fn plain_form(character: char) -> Option<char> {
    let letters_only = match character {
        '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}' => false,
        '\u{2100}'..='\u{214f}'
        | '\u{2160}'..='\u{217f}'
        | '\u{24b6}'..='\u{24e9}'
        | '\u{1f130}'..='\u{1f149}' => true,
        _ => return None,
    };
    let mut plain = std::iter::once(character).nfkc();
    match (plain.next(), plain.next()) {
        (Some(plain), None) if !letters_only || plain.is_ascii_alphabetic() => Some(plain),
        _ => None,
    }
}

/// Whether `character` is a full-width form, which is at home in Chinese, Japanese and Korean.
pub(super) fn is_full_width(character: char) -> bool {
    matches!(character, '\u{ff01}'..='\u{ff5e}' | '\u{3000}')
}

/// Whether `character` is a letter-like symbol or a Roman numeral, which alone is a name (the set
/// ℝ) and in a word a disguise.
pub(super) fn is_letterlike(character: char) -> bool {
    matches!(character, '\u{2100}'..='\u{214f}' | '\u{2160}'..='\u{217f}')
}

/// Whether `character` is a space that is not U+0020 and looks like one.
pub(super) fn is_odd_space(character: char) -> bool {
    matches!(
        character,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}
