//! Edits of a text and the way back from the edited text to the one before.

use std::ops::Range;

/// One edit: what stands after it, and what stood there before.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stretch {
    after: Range<usize>,
    before: Range<usize>,
}

/// Byte offsets after the edits of one normaliser to byte offsets before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OffsetMap {
    /// In ascending order; between two stretches both texts run in step.
    stretches: Vec<Stretch>,
}

impl OffsetMap {
    /// The place before the edits of an offset after them: see
    /// [`Normalized::original`](super::Normalized::original) for the rule.
    pub(super) fn before(&self, offset: usize) -> usize {
        // Also when the text begins with something removed, its first token begins at its start.
        if offset == 0 {
            return 0;
        }
        let passed = self.stretches.partition_point(|stretch| stretch.after.end <= offset);
        match self.stretches.get(passed) {
            Some(around) if around.after.start < offset => around.before.end,
            _ => passed.checked_sub(1).map_or(offset, |last| {
                let last = &self.stretches[last];
                last.before.end + (offset - last.after.end)
            }),
        }
    }
}

/// Copies a text with edits and keeps the map back.
pub(super) struct Rewriter<'a> {
    source: &'a str,
    /// Up to where the source has been copied.
    copied: usize,
    text: String,
    stretches: Vec<Stretch>,
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self { source, copied: 0, text: String::new(), stretches: Vec::new() }
    }

    /// Puts `with` in the place of `range`, which lies behind all earlier ranges.
    pub(super) fn replace(&mut self, range: Range<usize>, with: &str) {
        self.text.push_str(&self.source[self.copied..range.start]);
        let start = self.text.len();
        self.text.push_str(with);
        self.copied = range.end;
        self.stretches.push(Stretch { after: start..self.text.len(), before: range });
    }

    /// The edited text and its map; nothing when no edit came.
    pub(super) fn finish(mut self) -> Option<(String, OffsetMap)> {
        if self.stretches.is_empty() {
            return None;
        }
        self.text.push_str(&self.source[self.copied..]);
        Some((self.text, OffsetMap { stretches: self.stretches }))
    }
}
