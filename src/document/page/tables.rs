//! Tables: regions, sentences, tests and tokens.

use super::html::{Escaped, put, table};
use super::marked_text::{Words, put_visible};
use super::numbers::{count, effect, probability};
use super::{LIMITS, Page};
use crate::detect::{EvidenceSummary, Region, Report};

/// The beginning of a stretch of the text, as one line of markup.
fn excerpt(text: Option<&str>, bytes: [usize; 2]) -> String {
    /// Characters shown.
    const LENGTH: usize = 44;
    let Some(stretch) = text.and_then(|text| text.get(bytes[0]..bytes[1])) else {
        return String::new();
    };
    let end = stretch.char_indices().nth(LENGTH).map_or(stretch.len(), |(at, _)| at);
    let mut html = String::from("<bdi>");
    put_visible(&mut html, &stretch[..end].replace(['\n', '\t'], " "));
    html.push_str(if end < stretch.len() { "…</bdi>" } else { "</bdi>" });
    html
}

/// A note under a table that does not show everything.
fn more(html: &mut String, all: usize, remedy: &str) {
    if all > LIMITS.rows {
        put!(
            html,
            "<p class=\"aside\">The first {} of {} are shown; {remedy}.</p>\n",
            count(LIMITS.rows as u64),
            count(all as u64)
        );
    }
}

/// A range, or nothing for ids without a text.
fn range(range: Option<[usize; 2]>) -> String {
    range.map_or_else(String::new, |[start, end]| format!("{start}–{end}"))
}

/// What a region says of a look at a changed text.
fn look(region: &Region) -> String {
    match region.normalization.as_str() {
        "none" => String::new(),
        normalization => format!(" (after {})", Escaped(normalization)),
    }
}

pub(super) fn regions(html: &mut String, page: &Page<'_>) {
    let report = page.report;
    if report.windows.is_empty() && report.spans.is_empty() {
        return;
    }
    html.push_str(
        "<section id=\"regions\" aria-labelledby=\"regions-title\">\n<h2 id=\"regions-title\">Where \
         in the text</h2>\n",
    );
    let heads = ["", "Tokens", "Bytes", "Characters", "Scored", "z", "Corrected p", "Begins"];
    let mut rows = String::new();
    let mut row = |name: String, region: &Region| {
        put!(
            &mut rows,
            "<tr><th scope=\"row\">{name}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td><td class=\"excerpt\">{}</td></tr>\n",
            range(Some(region.tokens)),
            range(region.bytes),
            range(region.chars),
            count(region.scored),
            effect(Some(region.z)),
            probability(region.corrected_log10_p),
            region.bytes.map_or_else(String::new, |bytes| excerpt(page.text, bytes))
        );
    };
    for region in report.windows.iter().take(LIMITS.rows) {
        row(format!("best window{}", look(region)), region);
    }
    for (index, region) in report.spans.iter().take(LIMITS.rows).enumerate() {
        let number = index + 1;
        let name = if page.text.is_some() {
            format!("<a href=\"#region{number}\">region {number}</a>")
        } else {
            format!("region {number}")
        };
        row(name + &look(region), region);
    }
    table(html, "The strongest stretches", &heads, &rows);
    html.push_str(if report.spans.is_empty() {
        "<p class=\"aside\">No stretch is significant by itself."
    } else {
        "<p class=\"aside\">Regions are significant by themselves and labelled in the text. Their \
         ends are where the evidence fits best; the mark may start and end elsewhere nearby."
    });
    html.push_str(" The corrected p pays for every stretch that could have been chosen.</p>\n");
    more(html, report.spans.len(), "<code>wm detect --windows --json</code> lists all");
    html.push_str("</section>\n");
}

pub(super) fn sentences(html: &mut String, page: &Page<'_>) {
    let Some(sentences) = page.report.sentences.as_deref().filter(|all| !all.is_empty()) else {
        return;
    };
    html.push_str(
        "<section id=\"sentences\" aria-labelledby=\"sentences-title\">\n\
         <h2 id=\"sentences-title\">Sentences</h2>\n<p class=\"aside\">A reading aid: no row of this \
         table decides anything.",
    );
    if let Some(first) = sentences.first() {
        put!(
            html,
            " The corrected p is the p of the sentence alone times {}: once for each sentence with \
             scored tokens, under every profile that the text was held against (Bonferroni).",
            count(first.hypotheses)
        );
    }
    html.push_str("</p>\n");
    let statistic = if page.report.gamma.is_some() { "Green" } else { "Score" };
    let heads = ["", statistic, "Scored", "z", "p alone", "Corrected p", "Begins"];
    let numbered = page.text.is_some() && sentences.len() <= LIMITS.rows;
    let mut rows = String::new();
    for sentence in sentences.iter().take(LIMITS.rows) {
        let number = sentence.index + 1;
        let name = if numbered {
            format!("<a href=\"#s{number}\">{number}</a>")
        } else {
            number.to_string()
        };
        let statistic = sentence.green.map_or_else(|| format!("{:.1}", sentence.statistic), count);
        put!(
            &mut rows,
            "<tr id=\"row{number}\"><th scope=\"row\">{name}</th><td>{statistic}</td><td>{}</td>\
             <td>{}</td><td>{}</td><td>{}</td><td class=\"excerpt\">{}</td></tr>\n",
            count(sentence.scored),
            effect(sentence.z),
            probability(sentence.log10_p),
            probability(sentence.corrected_log10_p),
            excerpt(page.text, sentence.bytes)
        );
    }
    table(html, "Evidence in each sentence", &heads, &rows);
    more(html, sentences.len(), "<code>wm detect --sentences --json</code> lists all");
    html.push_str("</section>\n");
}

pub(super) fn tests(html: &mut String, report: &Report) {
    html.push_str(
        "<section id=\"tests\" aria-labelledby=\"tests-title\">\n<h2 id=\"tests-title\">Every test \
         that was made</h2>\n",
    );
    let heads = ["Test", "Found", "By chance", "Scored", "With repeats", "z", "p", "Corrected p"];
    let mut rows = String::new();
    let mut decided = false;
    for test in &report.tests {
        let decides = !decided && test.decides(report);
        decided |= decides;
        let (statistic, chance) = match test.evidence {
            EvidenceSummary::Count { green, expected_rate } => (
                format!("{} green", count(green)),
                format!("{:.1}", test.scored as f64 * expected_rate),
            ),
            EvidenceSummary::Sum { sum, mean, .. } => (format!("{sum:.1}"), format!("{mean:.1}")),
        };
        put!(
            &mut rows,
            "<tr{}><th scope=\"row\">{}{}</th><td>{statistic}</td><td>{chance}</td>\
             <td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            if decides { " class=\"decides\"" } else { "" },
            Escaped(&test.name),
            if decides { " <small>(decides)</small>" } else { "" },
            count(test.scored),
            count(test.raw),
            effect(test.z),
            probability(test.log10_p),
            probability(test.corrected_log10_p)
        );
    }
    table(html, "Tests", &heads, &rows);
    html.push_str("</section>\n");
}

/// The equivalent of the tooltips.
pub(super) fn tokens(html: &mut String, page: &Page<'_>) {
    let Some(details) = page.report.token_details.as_deref() else { return };
    if details.is_empty() || details.len() > LIMITS.tokens {
        return;
    }
    put!(
        html,
        "<section id=\"tokens\" aria-labelledby=\"tokens-title\">\n\
         <h2 id=\"tokens-title\">Tokens</h2>\n<details><summary>All {} tokens of the text as \
         given</summary>\n",
        count(details.len() as u64)
    );
    let words = Words::of(page.report);
    let sums = page.report.gamma.is_none();
    let measured = page.report.entropy.is_some();
    let mut heads = vec!["Token", "Id", "Text", "Bytes", "Outcome"];
    if sums {
        heads.push("Score");
    }
    if measured {
        heads.extend(["Entropy", "Probability", "Weight"]);
    }
    let mut rows = String::new();
    for detail in details {
        put!(&mut rows, "<tr><th scope=\"row\">{}</th><td>{}</td>", detail.index, detail.id);
        match detail.bytes {
            Some([start, end]) => {
                rows.push_str("<td class=\"piece\"><bdi>");
                match page.text.and_then(|text| text.get(start..end)) {
                    Some(piece) => put_visible(&mut rows, &spelled(piece)),
                    None if page.text.is_some() => rows.push_str("<i>part of a character</i>"),
                    None => {}
                }
                put!(&mut rows, "</bdi></td><td>{start}–{end}</td>");
            }
            None => rows.push_str("<td></td><td></td>"),
        }
        put!(&mut rows, "<td>{}</td>", words.name(detail));
        if sums {
            match detail.score {
                Some(score) => put!(&mut rows, "<td>{score:.3}</td>"),
                None => rows.push_str("<td></td>"),
            }
        }
        if measured {
            for value in [detail.entropy, detail.probability, detail.weight] {
                match value {
                    Some(value) => put!(&mut rows, "<td>{value:.3}</td>"),
                    None => rows.push_str("<td></td>"),
                }
            }
        }
        rows.push_str("</tr>\n");
    }
    table(html, "Tokens", &heads, &rows);
    html.push_str("</details>\n</section>\n");
}

/// A token's text with its white space spelled out.
fn spelled(piece: &str) -> String {
    piece.replace('\n', "⏎").replace('\t', "⇥").replace(' ', "␣")
}
