//! The verdict in words, what to know before relying on it, and the figures.

use super::html::{Escaped, entry, put};
use super::numbers::{count, counted, effect, probability, rarity};
use crate::detect::{EvidenceSummary, Report, TestReport, Verdict};

pub(super) fn verdict(html: &mut String, report: &Report) {
    let (class, sign) = match report.verdict {
        Verdict::Watermarked => ("watermarked", "◆"),
        Verdict::NotDetected => ("not-detected", "○"),
        Verdict::Insufficient => ("insufficient", "…"),
    };
    let key = Escaped(&report.key_id);
    put!(
        html,
        "<section id=\"verdict\" class=\"verdict {class}\" aria-labelledby=\"verdict-words\">\n\
         <h2 id=\"verdict-words\"><span class=\"sign\" aria-hidden=\"true\">{sign}</span> {}</h2>\n",
        headline(report.verdict)
    );
    let rarity_of_this = rarity(report.corrected_log10_p);
    let accepted = rarity(report.alpha.log10());
    let corrected = match report.hypotheses {
        0 | 1 => String::new(),
        looks => format!(" The figure pays for all {} tests that were in play.", count(looks)),
    };
    let needed = report.needed.map_or_else(String::new, |needed| {
        format!(
            " A conclusion takes at least {}, even if all of them are green; a real marked text \
             takes many times that.",
            count(needed)
        )
    });
    match report.verdict {
        Verdict::Watermarked => put!(
            html,
            "<p class=\"lead\">The text carries the watermark of the key <b>{key}</b>. Among texts \
             written without this key, evidence as strong as this appears in \
             <b>{rarity_of_this}</b>.{corrected}</p>\n<p>The report says “found” when that figure \
             is at or below the accepted rate of false accusations, here {accepted}. It does not \
             say who wrote the text, who used the model, or what was changed afterwards.</p>\n"
        ),
        Verdict::NotDetected => put!(
            html,
            "<p class=\"lead\">No watermark of the key <b>{key}</b> was found. This is <b>not \
             evidence that a person wrote the text</b>.</p>\n<p>Among texts written without this \
             key, evidence as strong as this appears in {rarity_of_this}; the report says “found” \
             only at {accepted} or less.{corrected} The text may come from a model that does not \
             mark, carry the mark of another key, have been rewritten, or be too predictable to \
             hold a mark.</p>\n"
        ),
        Verdict::Insufficient => put!(
            html,
            "<p class=\"lead\">There is <b>too little text to conclude anything</b>, in either \
             direction.</p>\n<p>{} could be tested for the mark of the key <b>{key}</b>. That is \
             below the asked minimum, or so few that even a fully marked text would not reach the \
             accepted rate of false accusations, here {accepted}.{needed}</p>\n",
            // The figures at the top may be those of a window.
            counted(report.tests.first().map_or(report.scored, |whole| whole.scored), "token")
        ),
    }
    html.push_str("</section>\n");
}

fn headline(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Watermarked => "Watermark found",
        Verdict::NotDetected => "No watermark found",
        Verdict::Insufficient => "Too little text",
    }
}

pub(super) fn warnings(html: &mut String, report: &Report) {
    if report.warnings.is_empty() {
        return;
    }
    html.push_str(
        "<section id=\"warnings\" class=\"warnings\" aria-labelledby=\"warnings-title\">\n\
         <h2 id=\"warnings-title\">Before you rely on this</h2>\n<ul>\n",
    );
    for warning in &report.warnings {
        put!(html, "<li>{} <code>{}</code></li>\n", Escaped(&warning.text), Escaped(warning.code));
    }
    html.push_str("</ul>\n</section>\n");
}

pub(super) fn figures(html: &mut String, report: &Report) {
    html.push_str(
        "<section id=\"figures\" aria-labelledby=\"figures-title\">\n<h2 id=\"figures-title\">\
         Figures</h2>\n<dl class=\"cards\">\n",
    );
    let evidence = deciding(report).map(|test| test.evidence);
    match (report.green, evidence) {
        (Some(green), evidence) => {
            let rate = match evidence {
                Some(EvidenceSummary::Count { expected_rate, .. }) => expected_rate,
                _ => report.gamma.unwrap_or_default(),
            };
            let share = report.green_fraction.map_or_else(String::new, |share| {
                format!("{:.1}%; chance alone gives {:.1}%", 100.0 * share, 100.0 * rate)
            });
            card(
                html,
                "Green tokens",
                &format!("{} of {}", count(green), count(report.scored)),
                &share,
            );
        }
        (None, Some(EvidenceSummary::Sum { sum, mean, .. })) => card(
            html,
            "Sum of scores",
            &format!("{sum:.1}"),
            &format!("of {}; chance alone gives {mean:.1}", counted(report.scored, "token")),
        ),
        (None, _) => {}
    }
    card(html, "z", &effect(report.z), "effect size, in standard deviations of chance");
    let alone = match (report.green, evidence) {
        // Weighted greens: the tail of their sum is known up to certified bounds.
        (Some(_), Some(EvidenceSummary::Sum { .. })) => {
            "an upper bound, for the deciding test alone"
        }
        _ => "exact, for the deciding test alone",
    };
    card(html, "p", &probability(report.log10_p), alone);
    let tests = match report.hypotheses {
        0 | 1 => "one test was made, nothing to correct".to_owned(),
        looks => format!("after paying for {} tests", count(looks)),
    };
    card(html, "Corrected p", &probability(report.corrected_log10_p), &tests);
    card(html, "Alpha", &probability(report.alpha.log10()), "accepted rate of false accusations");
    card(
        html,
        "Tokens",
        &count(report.tokens),
        &format!("of which {} count in the deciding test", count(report.scored)),
    );
    html.push_str("</dl>\n");
    if let Some(test) = deciding(report).filter(|_| report.tests.len() > 1) {
        put!(
            html,
            "<p class=\"aside\">The figures are those of the test that decides: {}.</p>\n",
            Escaped(&test.name)
        );
    }
    let left_out: Vec<String> = report
        .skipped
        .by_reason()
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, reason)| format!("{} {reason}", count(number)))
        .collect();
    if !left_out.is_empty() {
        put!(html, "<p class=\"aside\">Not scored: {}.</p>\n", left_out.join(", "));
    }
    html.push_str("</section>\n");
}

fn card(html: &mut String, term: &str, value: &str, note: &str) {
    entry(html, term, format_args!("<span class=\"value\">{value}</span> <small>{note}</small>"));
}

/// The test whose figures stand at the top.
pub(super) fn deciding(report: &Report) -> Option<&TestReport> {
    report.tests.iter().find(|test| test.decides(report))
}
