//! Which stretch of a text speaks for the mark, for highlighting.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::detect::TokenDetail;

/// What the tokens of a stretch say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// Green; a score above its median under chance for a scheme that sums scores.
    For,
    /// Red; a score not above the median.
    Against,
    /// Some tokens of one visible character speak for the mark and others do not.
    Mixed,
    /// Nothing here was scored.
    Unscored,
}

impl Mark {
    /// The mark of one token.
    #[must_use]
    pub fn of(detail: &TokenDetail) -> Self {
        // The median of Exp(1).
        let above = |score: f64| score > std::f64::consts::LN_2;
        match (detail.colour, detail.score) {
            ("green", _) => Self::For,
            ("scored", Some(score)) if above(score) => Self::For,
            ("red", _) | ("scored", Some(_)) => Self::Against,
            _ => Self::Unscored,
        }
    }

    /// The mark of tokens that are shown together. Tokens that were not scored change nothing.
    fn of_all(details: &[TokenDetail]) -> Self {
        let scored = details.iter().map(Self::of).filter(|mark| *mark != Self::Unscored);
        scored.reduce(|a, b| if a == b { a } else { Self::Mixed }).unwrap_or(Self::Unscored)
    }
}

/// A stretch of a text that is shown in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Byte range; cuts no visible character.
    pub bytes: Range<usize>,
    /// The tokens in it, as a range of the details.
    pub tokens: Range<usize>,
    /// What they say.
    pub mark: Mark,
}

/// The stretches of `text`, one a token, which together are the text.
///
/// A cut lies between two grapheme clusters: tokens that share a visible character, such as the
/// four of an emoji, share a stretch. Details without offsets give one unscored stretch.
#[must_use]
pub fn stretches(text: &str, details: &[TokenDetail]) -> Vec<Stretch> {
    let mut found: Vec<Stretch> = Vec::new();
    let mut clusters = text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).peekable();
    let mut is_boundary = |at: usize| {
        while clusters.next_if(|&boundary| boundary < at).is_some() {}
        clusters.peek() == Some(&at)
    };
    let (mut from, mut first) = (0, 0);
    for (index, detail) in details.iter().enumerate() {
        let Some([start, end]) = detail.bytes else { continue };
        // What no token holds, such as a byte-order mark, stands alone.
        if first == index && start > from && is_boundary(start) {
            found.push(Stretch { bytes: from..start, tokens: first..first, mark: Mark::Unscored });
            from = start;
        }
        if end > from && is_boundary(end) {
            let tokens = first..index + 1;
            let mark = Mark::of_all(&details[tokens.clone()]);
            found.push(Stretch { bytes: from..end, tokens, mark });
            (from, first) = (end, index + 1);
        }
    }
    if from < text.len() {
        let tokens = first..details.len();
        let mark = Mark::of_all(&details[tokens.clone()]);
        found.push(Stretch { bytes: from..text.len(), tokens, mark });
    }
    found
}

/// Joins neighbours of one mark.
#[must_use]
pub fn merged(stretches: &[Stretch]) -> Vec<Stretch> {
    let mut found: Vec<Stretch> = Vec::new();
    for next in stretches {
        match found.last_mut() {
            Some(last) if last.mark == next.mark => {
                last.bytes.end = next.bytes.end;
                last.tokens.end = next.tokens.end;
            }
            _ => found.push(next.clone()),
        }
    }
    found
}
