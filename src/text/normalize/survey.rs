//! Counts of what hides a watermark or carries other data, for warnings.

use super::selectors::{SHORTEST_RUN, is_c2pa, is_selector, run_length};
use super::{Normalizer, newlines};

/// Counts of characters that a reader does not see or does not tell from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// CR LF line ends and lone CR.
    pub carriage_returns: usize,
    /// Invisible characters that no script or emoji needs where they stand.
    pub zero_width: usize,
    /// Look-alikes of letters, and full-width, mathematical or circled forms.
    pub confusables: usize,
    /// Spaces that are not U+0020, such as no-break spaces.
    pub unusual_spaces: usize,
    /// Variation selectors in runs, which carry data.
    pub variation_selectors: usize,
    /// Runs of variation selectors that begin as a C2PA text manifest does.
    pub c2pa_manifests: usize,
    /// Stretches that are not in normalisation form C.
    pub not_nfc: usize,
    /// Control characters other than tab and line ends.
    pub control_characters: usize,
}

impl Survey {
    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Counts what [`normalize`](super::normalize) would edit, and what it keeps although no reader
/// sees it.
#[must_use]
pub fn survey(text: &str) -> Survey {
    let mut found = Survey::default();
    newlines::edits(text, &mut |_, _| found.carriage_returns += 1);
    let control = |character: &char| character.is_control() && !"\t\n\r".contains(*character);
    found.control_characters = text.chars().filter(control).count();
    if text.is_ascii() {
        return found;
    }
    Normalizer::ZeroWidth.edits(text, &mut |_, _| found.zero_width += 1);
    Normalizer::Confusables.edits(text, &mut |_, with| match with {
        " " => found.unusual_spaces += 1,
        _ => found.confusables += 1,
    });
    Normalizer::Nfc.edits(text, &mut |_, _| found.not_nfc += 1);
    let mut rest = text;
    while let Some(at) = rest.find(is_selector) {
        rest = &rest[at..];
        let run = run_length(rest);
        if run >= SHORTEST_RUN {
            found.variation_selectors += run;
            found.c2pa_manifests += usize::from(is_c2pa(rest));
        }
        rest = rest.trim_start_matches(is_selector);
    }
    found
}
