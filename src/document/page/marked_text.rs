//! The text with every token coloured.
//!
//! Colour is never alone: what speaks for the mark is underlined, what was not scored is dotted,
//! and the table of tokens says the same in words.

use super::html::{Escaped, escape, put};
use super::numbers::counted;
use super::summary::deciding;
use super::{LIMITS, Page};
use crate::detect::{Report, TokenDetail};
use crate::document::marked::{Mark, Stretch, merged, stretches};
use crate::document::visible::{Part, label, parts};

pub(super) fn section(html: &mut String, page: &Page<'_>) {
    let Some(text) = page.text else { return };
    html.push_str(
        "<section id=\"text\" aria-labelledby=\"text-title\">\n<h2 id=\"text-title\">The text</h2>\n",
    );
    let details = page.report.token_details.as_deref().unwrap_or_default();
    let mut shown = stretches(text, details);
    let joined = details.len() > LIMITS.tokens;
    if joined {
        shown = merged(&shown);
    }
    other_look(html, page.report);
    legend(html, page.report, &shown, joined);
    let code = if looks_indented(text) { " code" } else { "" };
    put!(html, "<div class=\"text{code}\" lang=\"\" dir=\"auto\">");
    let mut openings = Openings::new(page);
    for stretch in &shown {
        openings.before(html, stretch);
        put_stretch(html, text, details, stretch, joined);
    }
    openings.finish(html);
    html.push_str("</div>\n</section>\n");
}

/// Says so when the figures are not those of the text as it stands here.
fn other_look(html: &mut String, report: &Report) {
    if let Some(test) = deciding(report).filter(|test| test.normalization != "none") {
        put!(
            html,
            "<p>The deciding test read the text after these changes: {}. Colours, course and \
             sentences are those of the text as given.</p>\n",
            Escaped(&test.normalization)
        );
    }
}

fn legend(html: &mut String, report: &Report, shown: &[Stretch], joined: bool) {
    let words = Words::of(report);
    html.push_str("<p class=\"legend\">");
    for (mark, name) in [
        (Mark::For, words.for_mark),
        (Mark::Against, words.against),
        (Mark::Mixed, "both in one character"),
        (Mark::Unscored, "not scored"),
    ] {
        if shown.iter().any(|stretch| stretch.mark == mark) {
            put!(html, "<span class=\"{}\">{name}</span> ", class(mark));
        }
    }
    html.push_str("</p>\n<p class=\"aside\">");
    html.push_str(words.explanation);
    if joined {
        html.push_str(
            " The text is long: neighbours of one colour are shown as one, and tokens are not \
             listed. <code>wm detect --json --details</code> lists them.",
        );
    } else if report.token_details.is_some() {
        html.push_str(
            " Point at a token to see it alone; <a href=\"#tokens\">the list of tokens</a> says \
             the same in words.",
        );
    }
    html.push_str(
        " Grey boxes such as <span class=\"hidden\">U+200B</span> stand for characters that would \
         not show.</p>\n",
    );
}

/// The words of a scheme for its two sides.
pub(super) struct Words {
    pub(super) for_mark: &'static str,
    pub(super) against: &'static str,
    explanation: &'static str,
}

impl Words {
    pub(super) fn of(report: &Report) -> Self {
        if report.gamma.is_some() {
            Self {
                for_mark: "green",
                against: "red",
                explanation: "The key makes every token green or red, by the tokens before it. \
                              Unmarked text has as many green ones as chance gives; marked text \
                              has more.",
            }
        } else {
            Self {
                for_mark: "high score",
                against: "low score",
                explanation: "The key gives every token a score, by the tokens before it. In \
                              unmarked text half of the scores are above ln 2; in marked text \
                              more are.",
            }
        }
    }

    pub(super) fn name(&self, detail: &TokenDetail) -> &'static str {
        match (Mark::of(detail), detail.skipped) {
            (Mark::For, _) => self.for_mark,
            (Mark::Against, _) => self.against,
            (_, Some(skip)) => skip.words(),
            (_, None) => "not scored",
        }
    }
}

fn class(mark: Mark) -> &'static str {
    match mark {
        Mark::For => "g",
        Mark::Against => "r",
        Mark::Mixed => "m",
        Mark::Unscored => "u",
    }
}

fn put_stretch(
    html: &mut String,
    text: &str,
    details: &[TokenDetail],
    stretch: &Stretch,
    joined: bool,
) {
    put!(html, "<span class=\"{}\"", class(stretch.mark));
    if !joined && !stretch.tokens.is_empty() {
        html.push_str(" data-t=\"");
        tooltip(html, details, stretch);
        html.push('"');
    }
    html.push('>');
    put_visible(html, &text[stretch.bytes.clone()]);
    html.push_str("</span>");
}

/// What a pointer shows: place, id and outcome of each token of the stretch.
fn tooltip(html: &mut String, details: &[TokenDetail], stretch: &Stretch) {
    /// More tokens in one visible character are counted only.
    const NAMED: usize = 6;
    let tokens = &details[stretch.tokens.clone()];
    for (index, detail) in tokens.iter().take(NAMED).enumerate() {
        if index > 0 {
            html.push_str("&#10;");
        }
        put!(html, "token {}, id {}: ", detail.index, detail.id);
        outcome(html, detail);
        if let Some(entropy) = detail.entropy {
            put!(html, "; entropy {entropy:.2} nats");
        }
        if let Some(weight) = detail.weight {
            put!(html, ", weight {weight:.2}");
        }
    }
    if tokens.len() > NAMED {
        put!(html, "&#10;and {}", counted((tokens.len() - NAMED) as u64, "more token"));
    }
}

fn outcome(html: &mut String, detail: &TokenDetail) {
    match (detail.colour, detail.score, detail.skipped) {
        ("scored", Some(score), _) => put!(html, "score {score:.3}"),
        (_, _, Some(skip)) => html.push_str(skip.words()),
        (colour, ..) => html.push_str(colour),
    }
}

/// Text with its markup escaped and its hidden characters in boxes.
pub(super) fn put_visible(html: &mut String, text: &str) {
    for part in parts(text) {
        match part {
            // A String takes every write.
            Part::Shown(shown) => {
                let _ = escape(html, shown);
            }
            Part::Hidden(run) => {
                put!(html, "<span class=\"hidden\">{}</span>", Escaped(&label(run)));
            }
        }
    }
}

/// A number or a bound that stands between two stretches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    RegionEnd,
    RegionStart(usize),
    Sentence(usize),
}

/// The numbers of the sentences and the bounds of the significant regions, in order.
struct Openings {
    events: std::iter::Peekable<std::vec::IntoIter<(usize, Event)>>,
    open: Option<usize>,
}

impl Openings {
    fn new(page: &Page<'_>) -> Self {
        let mut events: Vec<(usize, Event)> = Vec::new();
        let sentences = page.report.sentences.as_deref().unwrap_or_default();
        if sentences.len() <= LIMITS.rows {
            events
                .extend(sentences.iter().map(|one| (one.bytes[0], Event::Sentence(one.index + 1))));
        }
        for (index, span) in page.report.spans.iter().take(LIMITS.rows).enumerate() {
            if let Some([start, end]) = span.bytes {
                events.push((start, Event::RegionStart(index + 1)));
                events.push((end, Event::RegionEnd));
            }
        }
        events.sort_unstable();
        Self { events: events.into_iter().peekable(), open: None }
    }

    /// What belongs before `stretch`. A sentence that starts inside a stretch, after the space of
    /// its first token, gets its number before it.
    fn before(&mut self, html: &mut String, stretch: &Stretch) {
        while let Some((at, event)) = self.events.peek().copied() {
            let inside = matches!(event, Event::Sentence(_)) && at < stretch.bytes.end;
            if at > stretch.bytes.start && !inside {
                break;
            }
            self.events.next();
            match event {
                Event::Sentence(number) => put!(
                    html,
                    "<a class=\"n\" id=\"s{number}\" href=\"#row{number}\" aria-label=\"sentence \
                     {number}\">{number}</a>"
                ),
                Event::RegionStart(number) => {
                    self.finish(html);
                    put!(
                        html,
                        "<span class=\"edge\" id=\"region{number}\">region {number} starts</span>\
                         <span class=\"region\">"
                    );
                    self.open = Some(number);
                }
                Event::RegionEnd => self.finish(html),
            }
        }
    }

    /// Closes an open region.
    fn finish(&mut self, html: &mut String) {
        if let Some(number) = self.open.take() {
            put!(html, "</span><span class=\"edge\">region {number} ends</span>");
        }
    }
}

/// Whether lines start with white space as those of code do.
fn looks_indented(text: &str) -> bool {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let indented = lines().filter(|line| line.starts_with(['\t', ' '])).count();
    indented * 5 >= lines().count().max(1) && indented >= 2
}
