//! `confusables`: characters that look like letters of the text's own script become those letters.
//!
//! The look-alikes are those of UTS 39. They are mended in one direction only, toward the script
//! that a word belongs to:
//!
//! 1. The *script of the text* is the one to which the words belong, each counted with its
//!    letters; a word that would be whole in a script after mending counts for it. So a text stays
//!    English when most of its letters were exchanged for Cyrillic ones.
//! 2. A word that *mixes* scripts is mended toward the script of the text, or else toward another
//!    of its own, when that makes all its letters one script; otherwise it is left. Small Greek
//!    letters beside Latin capitals only are symbols (`TNFα`) and stay.
//! 3. A word *wholly of look-alikes* from another script may be a real word (`сахар`). It is mended
//!    toward the script of the text when the text also holds a mixed word, which no honest spelling
//!    explains, and when no word of its run of foreign words holds a letter without a look-alike,
//!    which would make it a quotation. Only Latin, Greek and Cyrillic share so many letters. A
//!    single Greek letter is a symbol and stays.
//! 4. Full-width, mathematical and circled forms become plain, and spaces of other widths become
//!    U+0020, except full-width ones in a text of Chinese, Japanese or Korean.
//!
//! Not here: digits and punctuation that look alike, which honest text is full of.

use std::ops::Range;

use unicode_script::Script;

use super::Edit;
use super::alphabet::{
    is_full_width, is_letterlike, is_odd_space, look_alike, plain_form, script_of,
};
use super::selectors::is_selector;
use super::zero_width::is_invisible;

/// A maximal run of letters, with the marks and invisible characters between them.
struct Word {
    range: Range<usize>,
    /// (script, letters of it) in the order of appearance.
    scripts: Vec<(Script, usize)>,
}

/// What becomes of a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Its letters are mended toward a script.
    Toward(Script),
    /// It is whole in the script of the text after mending, unless it stands in a quotation.
    Undecided(Script),
    /// It holds letters that cannot be mended.
    Foreign,
}

/// Every character that looks like another one and stands where that one belongs.
pub(super) fn edits(text: &str, edit: Edit<'_>) {
    if text.is_ascii() {
        return;
    }
    let words = words(text);
    let scripts = weigh(text, &words);
    let main = scripts.first().copied();
    let mut fates: Vec<Fate> =
        words.iter().map(|word| fate(&text[word.range.clone()], word, &scripts)).collect();
    let exchanged = words.iter().zip(&fates).any(|(word, fate)| {
        word.scripts.len() > 1 && main.is_some_and(|main| *fate == Fate::Toward(main))
    });
    settle(&mut fates, main, exchanged);

    let keeps_full_width = main == Some(Script::Han);
    let mut words = words.iter().zip(&fates).peekable();
    for (at, character) in text.char_indices() {
        while words.next_if(|(word, _)| word.range.end <= at).is_some() {}
        let word = words.peek().filter(|(word, _)| word.range.start <= at);
        let toward = word.and_then(|(_, fate)| match fate {
            Fate::Toward(script) => Some(*script),
            Fate::Undecided(_) | Fate::Foreign => None,
        });
        let stays = if character.is_ascii() {
            // ASCII is plain, and what Latin letters are mended toward.
            toward.is_none_or(|script| script == Script::Latin)
        } else {
            keeps_full_width && is_full_width(character)
                || is_letterlike(character) && word.is_some_and(|(word, _)| word.letters() == 1)
        };
        if stays {
            continue;
        }
        let plain = if is_odd_space(character) { ' ' } else { plain(character) };
        let mended = toward.and_then(|script| look_alike(plain, script)).unwrap_or(plain);
        if mended != character {
            edit(at..at + character.len_utf8(), mended.encode_utf8(&mut [0; 4]));
        }
    }
}

impl Word {
    fn letters(&self) -> usize {
        self.scripts.iter().map(|(_, letters)| letters).sum()
    }

    fn count(&mut self, script: Script) {
        match self.scripts.iter_mut().find(|(known, _)| *known == script) {
            Some((_, letters)) => *letters += 1,
            None => self.scripts.push((script, 1)),
        }
    }
}

/// The letters of a word, in their plain form.
fn letters(word: &str) -> impl Iterator<Item = char> {
    word.chars().map(plain).filter(|&letter| script_of(letter).is_some())
}

fn plain(character: char) -> char {
    if character.is_ascii() { character } else { plain_form(character).unwrap_or(character) }
}

fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut open = false;
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        if let Some(script) = script_of(plain(character)) {
            if !open {
                words.push(Word { range: at..end, scripts: Vec::new() });
                open = true;
            }
            // A word is open.
            if let Some(word) = words.last_mut() {
                word.range.end = end;
                word.count(script);
            }
        } else {
            open &= belongs_inside(character);
        }
    }
    words
}

/// Whether `character` does not end a word: combining marks and what no reader sees.
fn belongs_inside(character: char) -> bool {
    !character.is_ascii()
        && (unicode_normalization::char::is_combining_mark(character)
            || is_invisible(character)
            || is_selector(character))
}

/// The scripts of the text, the one to which most letters belong first.
fn weigh(text: &str, words: &[Word]) -> Vec<Script> {
    /// Scripts, by their own letters, toward which words are tried: bounds the time of a text that
    /// holds a word of every script.
    const TRIED: usize = 4;
    let mut weights: Vec<(Script, usize)> = Vec::new();
    for &(script, letters) in words.iter().flat_map(|word| &word.scripts) {
        match weights.iter_mut().find(|(known, _)| *known == script) {
            Some((_, weight)) => *weight += letters,
            None => weights.push((script, letters)),
        }
    }
    // Stable: of equals the one that appears first.
    weights.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    // Of a text in one script there is nothing to compare.
    if weights.len() > 1 {
        for (script, weight) in weights.iter_mut().take(TRIED) {
            for word in words {
                let own = word.scripts.iter().find(|(known, _)| known == script);
                let others = word.letters() - own.map_or(0, |(_, letters)| *letters);
                if others > 0 && is_whole(&text[word.range.clone()], *script) {
                    *weight += others;
                }
            }
        }
        weights.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    }
    weights.into_iter().map(|(script, _)| script).collect()
}

/// Whether all letters of `word` are of `script` or look like letters of it.
fn is_whole(word: &str, script: Script) -> bool {
    letters(word)
        .all(|letter| script_of(letter) == Some(script) || look_alike(letter, script).is_some())
}

/// What becomes of a word, before its neighbours are asked. `scripts` are those of the text, the
/// main one first.
fn fate(text: &str, word: &Word, scripts: &[Script]) -> Fate {
    let Some(&main) = scripts.first() else { return Fate::Foreign };
    if let [(only, count)] = word.scripts[..] {
        let symbol = only == Script::Greek && count == 1;
        return if only == main {
            Fate::Toward(main)
        } else if shares_letters(only) && shares_letters(main) && !symbol && is_whole(text, main) {
            Fate::Undecided(main)
        } else {
            Fate::Foreign
        };
    }
    let holds = |script: Script| word.scripts.iter().any(|(known, _)| *known == script);
    let symbols = letters(text).all(|letter| match script_of(letter) {
        Some(Script::Latin) => letter.is_uppercase(),
        script => script == Some(Script::Greek) && letter.is_lowercase(),
    });
    scripts
        .iter()
        .find(|&&script| !symbols && holds(script) && is_whole(text, script))
        .map_or(Fate::Foreign, |&script| Fate::Toward(script))
}

fn shares_letters(script: Script) -> bool {
    matches!(script, Script::Latin | Script::Greek | Script::Cyrillic)
}

/// Decides the undecided words: they stay unless letters were `exchanged` elsewhere, and in each run
/// of words that do not belong to the `main` script when one of the run is foreign.
fn settle(fates: &mut [Fate], main: Option<Script>, exchanged: bool) {
    for run in fates.chunk_by_mut(|left, right| is_native(*left, main) == is_native(*right, main)) {
        let mend = exchanged && run.iter().all(|fate| matches!(fate, Fate::Undecided(_)));
        for fate in run {
            if let Fate::Undecided(script) = *fate {
                *fate = if mend { Fate::Toward(script) } else { Fate::Foreign };
            }
        }
    }
}

fn is_native(fate: Fate, main: Option<Script>) -> bool {
    matches!(fate, Fate::Toward(script) if Some(script) == main)
}
