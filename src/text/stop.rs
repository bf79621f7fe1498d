//! Stop strings in a stream of text.

use crate::error::{Error, Result};

/// Finds the end of a text at one of several stop strings, and holds back only what may still
/// become one.
///
/// The stop that is complete first ends the text; of two that are complete at the same place,
/// the one that starts first. So the result does not depend on how the text was cut into parts.
/// The stop itself is not part of the text.
#[derive(Clone, Debug)]
pub struct StopMatcher {
    stops: Vec<String>,
    held: String,
    matched: Option<usize>,
}

/// What a [`StopMatcher`] gives for a part of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopOutput {
    /// Text that is certain.
    pub text: String,
    /// Index of the stop string that ended the text, once one did.
    pub stop: Option<usize>,
}

impl StopMatcher {
    /// A matcher for the given stop strings; none is allowed and never stops.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an empty stop string.
    pub fn new<S: Into<String>>(stops: impl IntoIterator<Item = S>) -> Result<Self> {
        let stops: Vec<String> = stops.into_iter().map(Into::into).collect();
        if stops.iter().any(String::is_empty) {
            return Err(Error::parameter("stop", "\"\"", "strings of at least one character"));
        }
        Ok(Self { stops, held: String::new(), matched: None })
    }

    /// Takes a part of the text. After a stop matched, everything else is swallowed.
    pub fn push(&mut self, part: &str) -> StopOutput {
        if let Some(stop) = self.matched {
            return StopOutput { text: String::new(), stop: Some(stop) };
        }
        self.held.push_str(part);
        let first = self
            .stops
            .iter()
            .enumerate()
            .filter_map(|(index, stop)| {
                let start = self.held.find(stop.as_str())?;
                Some((start + stop.len(), start, index))
            })
            .min();
        if let Some((_, start, index)) = first {
            self.matched = Some(index);
            let mut text = std::mem::take(&mut self.held);
            text.truncate(start);
            return StopOutput { text, stop: self.matched };
        }
        let keep = self.first_possible_start();
        let held = self.held.split_off(keep);
        StopOutput { text: std::mem::replace(&mut self.held, held), stop: None }
    }

    /// Ends the text and gives what was held back.
    #[must_use]
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Where the longest end of the held text begins that a stop string begins with.
    fn first_possible_start(&self) -> usize {
        let longest = self.stops.iter().map(String::len).max().unwrap_or(0);
        let from = self.held.ceil_char_boundary(self.held.len().saturating_sub(longest));
        self.held[from..]
            .char_indices()
            .map(|(at, _)| from + at)
            .find(|&at| self.stops.iter().any(|stop| stop.starts_with(&self.held[at..])))
            .unwrap_or(self.held.len())
    }
}
