//! A report in words.

use std::fmt::Write;
use std::path::Path;

use greenmark::detect::{Report, Verdict};
use greenmark::document::visible::one_line;

use super::super::entropy;
use super::regions;

/// The whole report for a terminal.
pub(super) fn text(name: Option<&Path>, report: &Report) -> String {
    let mut text = String::new();
    if let Some(name) = name {
        // A String takes every write.
        let _ = write!(text, "{}: ", one_line(&name.display().to_string()));
    }
    text.push_str(&first_line(report));
    text.push('\n');
    for line in detail_lines(report) {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// z, p, log10 p, green of scored, verdict.
pub(crate) fn first_line(report: &Report) -> String {
    let z = report.z.map_or_else(|| "none".to_owned(), |z| format!("{z:.2}"));
    let p =
        report.p_value.value().map_or_else(|| "below 1e-300".to_owned(), |p| format!("{p:.3e}"));
    let share = if let Some(green) = report.green {
        format!("green {green} of {}", report.scored)
    } else {
        let sum = report.tests.iter().find(|test| test.decides(report));
        let sum = sum.map_or(0.0, |test| test.statistic);
        format!("score {sum:.1} of {} tokens", report.scored)
    };
    format!("z {z}  p {p}  log10 p {:.2}  {share}  {}", report.log10_p, report.verdict.words())
}

fn detail_lines(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    let key = format!("key {} ({})", report.key_id, report.key_fingerprint);
    lines.push(match report.verdict {
        Verdict::Watermarked => format!(
            "a text written without {key} would be this surprising in at most {:.2e} of cases",
            report.alpha
        ),
        Verdict::NotDetected => format!(
            "no mark of {key} at alpha {:.2e}; this does not say who or what wrote the text",
            report.alpha
        ),
        Verdict::Insufficient => {
            // The figures at the top may be those of a window.
            let scored = report.tests.first().map_or(report.scored, |whole| whole.scored);
            let needed = report.needed.map_or_else(String::new, |needed| {
                format!(": a count of green tokens needs at least {needed}")
            });
            format!(
                "{scored} scored tokens are too few to conclude anything{needed} (alpha {:.2e}, \
                 --min-scored)",
                report.alpha
            )
        }
    });
    let left_out: Vec<String> = report
        .skipped
        .by_reason()
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, reason)| format!("{count} {reason}"))
        .collect();
    if !left_out.is_empty() {
        lines.push(format!("not scored of {} tokens: {}", report.tokens, left_out.join(", ")));
    }
    if report.hypotheses > 1 {
        lines.push(format!(
            "{} tests are paid for; corrected log10 p {:.2}",
            report.hypotheses, report.corrected_log10_p
        ));
    }
    lines.extend(regions::lines(report));
    lines.extend(entropy::lines(report));
    lines.extend(report.warnings.iter().map(|warning| format!("note: {}", warning.text)));
    lines
}
