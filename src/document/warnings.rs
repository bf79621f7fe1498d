//! Warnings about a text: what makes a mark harder to find or was left out, with counts.
//!
//! They stand in the report whether or not a normaliser was asked for. None repeats a part of the
//! text.

use crate::detect::Warning;
use crate::text::{Normalizer, Survey, survey};

/// The warning of a byte-order mark at the start of a text.
pub(super) fn byte_order_mark() -> Warning {
    Warning { code: "bom", text: "a leading byte-order mark was left out".to_owned() }
}

/// The warnings of a text that is looked at again after `normalizers`.
pub(super) fn text_warnings(text: &str, normalizers: &[Normalizer]) -> Vec<Warning> {
    let Survey {
        carriage_returns,
        zero_width,
        confusables,
        unusual_spaces,
        variation_selectors,
        c2pa_manifests,
        not_nfc,
        control_characters,
    } = survey(text);
    let undone = |by: Normalizer| {
        if normalizers.contains(&by) {
            "; the second look is without them".to_owned()
        } else {
            format!("; `--normalize {}` takes a second look without them", by.name())
        }
    };
    let manifests = match c2pa_manifests {
        0 => String::new(),
        1 => " (a C2PA text manifest)".to_owned(),
        several => format!(" ({several} C2PA text manifests)"),
    };
    let kept = format!(" in runs that carry data{manifests}; they are kept");
    [
        (
            carriage_returns,
            "crlf",
            ["line end with a carriage return", "line ends with a carriage return"],
            undone(Normalizer::Newlines),
        ),
        (
            zero_width,
            "zero_width",
            ["invisible character inside the text", "invisible characters inside the text"],
            undone(Normalizer::ZeroWidth),
        ),
        (
            confusables,
            "confusables",
            ["character that looks like another one", "characters that look like others"],
            undone(Normalizer::Confusables),
        ),
        (
            unusual_spaces,
            "unusual_spaces",
            ["space that is not the plain one", "spaces that are not the plain one"],
            undone(Normalizer::Confusables),
        ),
        (
            variation_selectors,
            "variation_selectors",
            ["variation selector", "variation selectors"],
            kept,
        ),
        (
            not_nfc,
            "not_nfc",
            ["sequence not in normal form C", "sequences not in normal form C"],
            undone(Normalizer::Nfc),
        ),
        (
            control_characters,
            "control_characters",
            ["control character", "control characters"],
            "; they are kept".to_owned(),
        ),
    ]
    .into_iter()
    .filter(|(count, ..)| *count > 0)
    .map(|(count, code, [one, many], remedy)| {
        let what = if count == 1 { one } else { many };
        Warning { code, text: format!("{count} {what}{remedy}") }
    })
    .collect()
}
