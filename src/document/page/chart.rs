//! The course of the evidence along the text, as a drawing without script.

use super::html::put;
use super::numbers::count;
use crate::detect::{EvidenceSummary, Report};

/// The drawing's size in its own units.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 200.0;
/// Room for the labels of the vertical axis.
const LEFT: f64 = 52.0;
const BOTTOM: f64 = 22.0;
const TOP: f64 = 8.0;

/// More points than this are not told apart at this size.
const POINTS: usize = 600;

/// 95 of 100 unmarked texts end within so many standard deviations of chance.
const BAND: f64 = 1.96;

/// Draws the running sum of the scores above their mean under chance. Needs the token details.
pub(super) fn walk(html: &mut String, report: &Report) {
    let (Some(details), Some(test)) = (&report.token_details, report.tests.first()) else { return };
    let scores: Vec<f64> = details.iter().filter_map(|detail| detail.score).collect();
    if scores.len() < 2 {
        return;
    }
    let (mean, deviation) = match test.evidence {
        EvidenceSummary::Count { expected_rate, .. } => {
            (expected_rate, (expected_rate * (1.0 - expected_rate)).sqrt())
        }
        EvidenceSummary::Sum { .. } => (1.0, 1.0),
    };
    let mut sum = 0.0;
    let course: Vec<f64> = std::iter::once(0.0)
        .chain(scores.iter().map(|score| {
            sum += score - mean;
            sum
        }))
        .collect();
    let band = |n: usize| BAND * deviation * (n as f64).sqrt();
    let last = scores.len();
    let high = course.iter().copied().fold(band(last), f64::max);
    let low = course.iter().copied().fold(-band(last), f64::min);
    let x = |n: usize| LEFT + (WIDTH - LEFT - 4.0) * n as f64 / last as f64;
    let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low);
    let places: Vec<usize> = (0..=POINTS.min(last)).map(|i| i * last / POINTS.min(last)).collect();
    let line = |value: &dyn Fn(usize) -> f64, places: &mut dyn Iterator<Item = usize>| {
        let mut points = String::new();
        for n in places {
            put!(&mut points, "{:.1},{:.1} ", x(n), y(value(n)));
        }
        points
    };
    let upper = line(&band, &mut places.iter().copied());
    let lower = line(&|n| -band(n), &mut places.iter().rev().copied());
    let walked = line(&|n| course[n], &mut places.iter().copied());
    let what = if report.gamma.is_some() { "green tokens" } else { "score" };
    let end = course[last];
    put!(
        html,
        "<section id=\"course\" aria-labelledby=\"course-title\">\n<h2 id=\"course-title\">Course of \
         the evidence</h2>\n<figure>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"Running {what} above chance: {end:.1} after {} scored tokens; chance alone \
         ends between {:.1} and {:.1} in 95 of 100 texts\">\n\
         <polygon class=\"band\" points=\"{upper}{lower}\"/>\n{}\
         <line class=\"zero\" x1=\"{LEFT}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>\n\
         <polyline class=\"walk\" points=\"{walked}\"/>\n",
        count(last as u64),
        -band(last),
        band(last),
        spans(report, &x),
        y(0.0),
        x(last),
        y(0.0)
    );
    let label = |html: &mut String, x: f64, y: f64, anchor: &str, text: &str| {
        put!(html, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n");
    };
    label(html, LEFT - 6.0, y(0.0) + 4.0, "end", "0");
    for value in [high, low] {
        // Two labels on top of each other are worse than one.
        if (y(value) - y(0.0)).abs() > 18.0 {
            let text = format!("{value:+.0}").replace('-', "−");
            label(html, LEFT - 6.0, y(value) + if value > 0.0 { 10.0 } else { 0.0 }, "end", &text);
        }
    }
    label(html, LEFT, HEIGHT - 5.0, "start", "first scored token");
    let after = format!("{} scored tokens", count(last as u64));
    label(html, WIDTH - 4.0, HEIGHT - 5.0, "end", &after);
    put!(
        html,
        "</svg>\n<figcaption>Running {what} above what chance gives, over the scored tokens of the \
         text as given. A mark makes the line climb; without one it wanders around 0 and ends \
         inside the grey band in about 95 of 100 texts.{}</figcaption>\n</figure>\n</section>\n",
        if report.spans.is_empty() { "" } else { " The framed stretches are the marked regions." }
    );
}

/// The significant regions of the text as given, as stretches of the horizontal axis.
fn spans(report: &Report, x: &dyn Fn(usize) -> f64) -> String {
    let details = report.token_details.as_deref().unwrap_or_default();
    // Scored tokens before each token.
    let mut scored = vec![0];
    let mut sum = 0;
    scored.extend(details.iter().map(|detail| {
        sum += usize::from(detail.score.is_some());
        sum
    }));
    let mut drawn = String::new();
    for span in report.spans.iter().filter(|span| span.normalization == "none") {
        let [from, to] = span.tokens;
        if let (Some(&from), Some(&to)) = (scored.get(from), scored.get(to)) {
            put!(
                &mut drawn,
                "<rect class=\"span\" x=\"{:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{}\"/>\n",
                x(from),
                (x(to) - x(from)).max(1.0),
                HEIGHT - TOP - BOTTOM
            );
        }
    }
    drawn
}
