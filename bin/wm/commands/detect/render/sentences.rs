//! `--sentences`: a table for a terminal.

use std::fmt::Write;

use greenmark::detect::SentenceReport;
use greenmark::document::visible::one_line;

/// Characters of a sentence that are shown.
const EXCERPT: usize = 40;

pub(super) fn table(sentences: &[SentenceReport], text: Option<&str>) -> String {
    let mut table = String::new();
    let tested = sentences.first().map_or(0, |sentence| sentence.hypotheses);
    // A String takes every write.
    let _ = writeln!(
        table,
        "  {} sentences, {tested} with scored tokens; p corrected for {tested} (Bonferroni). A \
         reading aid: it decides nothing.",
        sentences.len()
    );
    if sentences.is_empty() {
        return table;
    }
    let count = if sentences[0].green.is_some() { "green" } else { "score" };
    let _ = writeln!(
        table,
        "  {:>4}  {:>15}  {:>9}  {:>6}  {:>9}  {:>9}  begins",
        "",
        "bytes",
        format!("{count} of"),
        "z",
        "log10 p",
        "corrected"
    );
    for sentence in sentences {
        let [start, end] = sentence.bytes;
        let statistic = sentence
            .green
            .map_or_else(|| format!("{:.1}", sentence.statistic), |green| green.to_string());
        let z = sentence.z.map_or_else(|| "none".to_owned(), |z| format!("{z:.2}"));
        let begins = text.and_then(|text| text.get(start..end)).map(excerpt).unwrap_or_default();
        let line = format!(
            "  {:>4}  {:>15}  {statistic:>4} {:>4}  {z:>6}  {:>9.2}  {:>9.2}  {begins}",
            sentence.index + 1,
            format!("{start}-{end}"),
            sentence.scored,
            sentence.log10_p,
            sentence.corrected_log10_p,
        );
        let _ = writeln!(table, "{}", line.trim_end());
    }
    table
}

fn excerpt(sentence: &str) -> String {
    let end = sentence.char_indices().nth(EXCERPT).map_or(sentence.len(), |(at, _)| at);
    let dots = if end < sentence.len() { "..." } else { "" };
    format!("{}{dots}", one_line(&sentence[..end]))
}
