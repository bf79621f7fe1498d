//! Where the sentences of a text are, for readers.
//!
//! The bounds are those of Unicode's UAX #29, with three additions for real files: a line break
//! that only wraps a paragraph does not end a sentence, every line of code and every item of a list
//! stands for itself, and a marker, or signs without a letter or digit, belong to
//! what follows. There is no list of abbreviations: "Dr. Who" is cut after "Dr.", as the annex says.
//!
//! This is a reading aid. No verdict depends on it.

use std::borrow::Cow;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// A line narrower than this (in columns) ends where its writer wanted, so its break is kept.
const NARROW: usize = 40;

/// One bracket, operator or underscore in so many characters makes a line look like code.
const CODE_DENSITY: usize = 14;

/// Byte ranges of the sentences of `text`, in order, without the white space around them.
///
/// White space between two sentences is in neither. A text of white space has no sentence.
#[must_use]
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for block in blocks(text) {
        split_block(text, block, &mut found);
    }
    found
}

/// Stretches of whole lines of which each is one paragraph, one line of code or one item.
fn blocks(text: &str) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let mut above: Option<&str> = None;
    let mut fenced = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        let content = line.trim_start();
        let fence = content.starts_with("```") || content.starts_with("~~~");
        match (above, blocks.last_mut()) {
            (Some(above), Some(block)) if !fenced && !fence && wraps(above, line) => {
                block.end = end;
            }
            _ => blocks.push(at..end),
        }
        fenced ^= fence;
        above = (!fence).then_some(line);
        at = end;
    }
    blocks
}

/// Whether the break between two lines only wraps a paragraph.
fn wraps(above: &str, below: &str) -> bool {
    let indentation = indentation(below);
    columns(above.trim_end()) >= NARROW
        && indentation < 8
        && (indentation == self::indentation(above) && indentation < 4
            || indentation == text_column(above))
        && starts_prose(below)
        && !above.trim_start().starts_with(['#', '|', '>'])
        && !looks_like_code(above)
        && !looks_like_code(below)
}

fn indentation(line: &str) -> usize {
    line.chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .map(|c| if c == '\t' { 8 } else { 1 })
        .sum()
}

/// The column at which the words of an item start; that of the indentation for other lines.
fn text_column(line: &str) -> usize {
    let content = line.trim_start();
    let marker = list_marker(content).unwrap_or(0);
    let gap = content[marker..].chars().take_while(|c| *c == ' ').count();
    indentation(line) + if marker > 0 { content[..marker].chars().count() + gap } else { 0 }
}

/// The length in bytes of the marker that starts `content`: a bullet, or a number or letter with
/// a dot or bracket.
fn list_marker(content: &str) -> Option<usize> {
    let word = content.split_whitespace().next()?;
    (content.starts_with(word) && is_marker(word)).then_some(word.len())
}

fn is_marker(word: &str) -> bool {
    if matches!(word, "-" | "*" | "+" | "•" | "–" | "—" | "◦" | "·") {
        return true;
    }
    let inner = word.strip_prefix('(').unwrap_or(word);
    let Some(label) = inner.strip_suffix(['.', ')']) else { return false };
    let number = label.len() <= 3 && label.bytes().all(|byte| byte.is_ascii_digit());
    let letter = label.len() == 1 && label.bytes().all(|byte| byte.is_ascii_alphabetic());
    let roman = label.len() <= 5 && label.bytes().all(|byte| b"ivxIVX".contains(&byte));
    !label.is_empty() && (number || letter || roman)
}

fn starts_prose(line: &str) -> bool {
    let content = line.trim_start();
    let starts = |c: char| c.is_alphanumeric() || "\"'“‘«„([".contains(c);
    content.starts_with(starts) && list_marker(content).is_none()
}

fn looks_like_code(line: &str) -> bool {
    let line = line.trim();
    let symbols = line.chars().filter(|c| "(){}[]=;<>_\\|".contains(*c)).count();
    line.ends_with(['{', '}', ';', '\\']) || symbols * CODE_DENSITY > line.chars().count()
}

/// Columns on a terminal, roughly: East Asian characters take two.
fn columns(line: &str) -> usize {
    line.chars().map(|c| if c >= '\u{2e80}' { 2 } else { 1 }).sum()
}

fn split_block(text: &str, block: Range<usize>, found: &mut Vec<Range<usize>>) {
    let content = text[block.clone()].trim_end();
    let first = found.len();
    let lines = content.trim_start().contains('\n');
    if !lines && looks_like_code(content) {
        push_trimmed(text, block, found);
        return;
    }
    // A break that only wraps is a space to the rules; byte offsets stay.
    let content =
        if lines { Cow::Owned(content.replace(['\n', '\r'], " ")) } else { Cow::Borrowed(content) };
    // A marker, and signs without a letter or digit, belong to what follows.
    let mut pending: Option<usize> = None;
    for (at, sentence) in content.split_sentence_bound_indices() {
        let start = block.start + at;
        let words = sentence.trim();
        let opens = found.len() == first && is_marker(words);
        if words.is_empty() {
            continue;
        }
        if opens || !words.contains(char::is_alphanumeric) {
            pending.get_or_insert(start);
        } else {
            let start = pending.take().unwrap_or(start);
            push_trimmed(text, start..block.start + at + sentence.len(), found);
        }
    }
    if let Some(start) = pending {
        match found.get_mut(first..).and_then(<[_]>::last_mut) {
            Some(last) => last.end = block.start + content.len(),
            None => push_trimmed(text, start..block.end, found),
        }
    }
}

fn push_trimmed(text: &str, bytes: Range<usize>, found: &mut Vec<Range<usize>>) {
    let content = &text[bytes.clone()];
    let start = bytes.end - content.trim_start().len();
    if start < bytes.end {
        found.push(start..bytes.start + content.trim_end().len());
    }
}
