//! A report in words.

use std::fmt::Write;
use std::path::Path;

use greenmark::detect::{Report, TestReport, Verdict};

use super::regions;

/// The whole report for a terminal.
pub(super) fn text(name: Option<&Path>, report: &Report) -> String {
    let mut text = String::new();
    if let Some(name) = name {
        // A String takes every write.
        let _ = write!(text, "{}: ", name.display());
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
        // The deciding test is the one whose count and p stand at the top.
        let decides = |test: &&TestReport| {
            test.scored == report.scored && test.log10_p.total_cmp(&report.log10_p).is_eq()
        };
        let sum = report.tests.iter().find(decides).map_or(0.0, |test| test.statistic);
        format!("score {sum:.1} of {} tokens", report.scored)
    };
    format!("z {z}  p {p}  log10 p {:.2}  {share}  {}", report.log10_p, verdict(report.verdict))
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Watermarked => "watermarked",
        Verdict::NotDetected => "not detected",
        Verdict::Insufficient => "insufficient",
    }
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
        Verdict::Insufficient => format!(
            "{} scored tokens are too few to conclude anything (alpha {:.2e}, --min-scored)",
            report.scored, report.alpha
        ),
    });
    let skipped = &report.skipped;
    let left_out: Vec<String> = [
        (skipped.prefix, "without context"),
        (skipped.repeated, "repeated"),
        (skipped.special, "special"),
        (skipped.low_entropy, "of low entropy"),
        (skipped.unaligned, "unaligned"),
    ]
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
    lines.extend(super::entropy::lines(report));
    lines.extend(report.warnings.iter().map(|warning| format!("note: {}", warning.text)));
    lines
}
