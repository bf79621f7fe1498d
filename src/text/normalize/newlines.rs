//! `newlines`: every line end becomes LF.
//!
//! Not the Unicode line and paragraph separators, which no editor writes by accident.

use super::Edit;

/// CR LF and lone CR, each as a whole.
pub(super) fn edits(text: &str, edit: Edit<'_>) {
    for (at, _) in text.match_indices('\r') {
        let length = if text[at + 1..].starts_with('\n') { 2 } else { 1 };
        edit(at..at + length, "\n");
    }
}
