//! Normalisers that a detection may ask for, with a way back to the original text.
//!
//! They undo cheap changes that hide a watermark: other line ends, invisible characters,
//! characters that look like others, other forms of composition. Nothing is normalised unless
//! asked, since a text is evidence as it stands; a report of both results is the caller's part.
//!
//! Each normaliser is one file that names its edits; [`survey`] counts the same edits, so that a
//! warning never says other than what a normaliser would do.

mod alphabet;
mod confusables;
mod newlines;
mod nfc;
mod offsets;
mod selectors;
mod survey;
mod zero_width;

use std::ops::Range;

pub use survey::{Survey, survey};

use crate::error::{Error, Result};
use offsets::{OffsetMap, Rewriter};

/// Takes one edit: a byte range of the text and what stands in its place. Ranges ascend and do not
/// overlap.
type Edit<'a> = &'a mut dyn FnMut(Range<usize>, &str);

/// A normaliser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Normalizer {
    /// CR LF and lone CR become LF.
    Newlines,
    /// Invisible characters are removed: zero-width spaces, soft hyphens, byte-order marks inside
    /// the text, tag characters, single variation selectors on letters. Joiners, direction marks
    /// and tags stay where a script or an emoji needs them; runs of variation selectors, which
    /// carry data such as a C2PA manifest, stay.
    ZeroWidth,
    /// Characters that look like letters of the text's own script become those letters (UTS 39);
    /// full-width and mathematical forms become plain; spaces of other widths become U+0020. Real
    /// words of another script stay.
    Confusables,
    /// Unicode normalisation form C.
    Nfc,
}

impl Normalizer {
    /// All of them, in the order in which they are applied.
    pub const ALL: [Self; 4] = [Self::Newlines, Self::ZeroWidth, Self::Confusables, Self::Nfc];

    /// The name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Newlines => "newlines",
            Self::ZeroWidth => "zero-width",
            Self::Confusables => "confusables",
            Self::Nfc => "nfc",
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

    fn edits(self, text: &str, edit: Edit<'_>) {
        match self {
            Self::Newlines => newlines::edits(text, edit),
            Self::ZeroWidth => zero_width::edits(text, edit),
            Self::Confusables => confusables::edits(text, edit),
            Self::Nfc => nfc::edits(text, edit),
        }
    }
}

/// A normalised text that remembers where its bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Normalized {
    text: String,
    /// One map for each normaliser that changed something, in the order of application.
    maps: Vec<OffsetMap>,
}

impl Normalized {
    /// The normalised text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place in the original of a byte offset in the normalised text.
    ///
    /// The map never falls; it takes 0 to 0 and the end of a text that is not empty to the end, and
    /// runs in step where nothing was changed. What was removed lies before the place of the
    /// offset where it was; an offset inside a replacement lies at the end of what was replaced. So
    /// the ranges of touching tokens touch in the original and together cover it.
    #[must_use]
    pub fn original(&self, offset: usize) -> usize {
        self.maps.iter().rev().fold(offset, |offset, map| map.before(offset))
    }

    /// The stretch of the original that a byte range of the normalised text comes from.
    #[must_use]
    pub fn original_range(&self, range: Range<usize>) -> Range<usize> {
        self.original(range.start)..self.original(range.end)
    }

    /// Whether anything was changed.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        !self.maps.is_empty()
    }
}

/// Applies the `wanted` normalisers, in the order of [`Normalizer::ALL`] however they are listed.
#[must_use]
pub fn normalize(text: &str, wanted: &[Normalizer]) -> Normalized {
    let mut result = Normalized { text: text.to_owned(), maps: Vec::new() };
    for normalizer in Normalizer::ALL.into_iter().filter(|known| wanted.contains(known)) {
        let mut rewriter = Rewriter::new(&result.text);
        normalizer.edits(&result.text, &mut |range, with| rewriter.replace(range, with));
        if let Some((text, map)) = rewriter.finish() {
            result.text = text;
            result.maps.push(map);
        }
    }
    result
}
