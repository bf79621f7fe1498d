//! The result for a terminal.

use std::fmt::Write;

use greenmark::detect::calibration::{FixedKeys, Validity};

use super::Outcome;

/// Both tables and the list.
pub(super) fn text(outcome: &Outcome<'_>) -> String {
    let summary = outcome.summary;
    let mut text = format!(
        "{} passages of {} documents\n\nValidity of the test: {} pairs of a passage and a fresh key\n",
        summary.passages, summary.documents, outcome.pairs
    );
    text.push_str(
        "tokens  scored     pairs   alpha  attainable  measured    count  99.9% at attainable\n",
    );
    // A String takes every write.
    for row in &summary.validity {
        validity(&mut text, row);
    }
    for row in &summary.validity {
        let _ = writeln!(
            text,
            "{:6} tokens: Kolmogorov-Smirnov distance of the randomised p {:.5}, p {:.3}",
            row.tokens, row.ks_statistic, row.ks_p_value
        );
    }
    if let Some(first) = summary.fixed_keys.first() {
        let of = if first.keys == 1 { "the key" } else { "each key" };
        let _ = writeln!(
            text,
            "\nFixed keys: {} (every passage under {of}; 95% intervals resample documents{})",
            first.keys,
            if first.keys == 1 { "" } else { " and keys" },
        );
        text.push_str(
            "tokens  passages   alpha  attainable      rate  95% interval             keys: \
             smallest   largest  deviation  if independent\n",
        );
    }
    for row in &summary.fixed_keys {
        fixed(&mut text, row);
    }
    if !outcome.most_firing.is_empty() {
        text.push_str(
            "\nPassages that fire under most of the keys they met, at the largest alpha\n",
        );
    }
    for listed in &outcome.most_firing {
        let passage = &listed.passage;
        let _ = writeln!(
            text,
            "{} byte {}: {} of {} keys, smallest log10 p {:.2}",
            passage.document, passage.offset, passage.fired, passage.keys, passage.log10_p
        );
        for line in listed.text.iter().flat_map(|text| text.lines()) {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}

fn validity(text: &mut String, row: &Validity) {
    for rate in &row.rates {
        let _ = writeln!(
            text,
            "{:6}  {:6.1}  {:8}  {:6}  {:10}  {:8}  {:7}  {} to {}{}",
            row.tokens,
            row.mean_scored,
            row.pairs,
            share(rate.alpha),
            share(rate.attainable),
            share(rate.measured),
            rate.count,
            rate.expected_count.0,
            rate.expected_count.1,
            if rate.within { "" } else { "  OUTSIDE" },
        );
    }
}

fn fixed(text: &mut String, row: &FixedKeys) {
    for rate in &row.rates {
        let rates = || rate.keys.iter().map(|key| key.rate);
        let (low, high) = rate.interval;
        let interval = format!("{} to {}", share(low), share(high));
        let _ = write!(
            text,
            "{:6}  {:8}  {:6}  {:10}  {:8}  {interval:22}",
            row.tokens,
            row.passages,
            share(rate.alpha),
            share(rate.attainable),
            share(rate.rate),
        );
        if let Some(deviation) = rate.key_deviation {
            let _ = write!(
                text,
                "        {:8}  {:8}  {:9}  {:14}",
                share(rates().fold(1.0, f64::min)),
                share(rates().fold(0.0, f64::max)),
                share(deviation),
                share(rate.independent_deviation),
            );
        }
        let end = text.trim_end().len();
        text.truncate(end);
        text.push('\n');
    }
}

/// Three digits in few letters.
fn share(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format!("{value:.2e}") }
}
