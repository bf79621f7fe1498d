//! A report as one HTML page that a reviewer can read, print and file.
//!
//! The page holds everything it needs: no script, no font, no image and no address is fetched, and
//! a content security policy says so to the browser. All text from outside is escaped, and its
//! hidden characters are shown. The same report and text give the same bytes.
//!
//! The page shows a verdict; it makes none.

mod chart;
mod entropy;
mod html;
mod index;
mod marked_text;
mod notes;
mod numbers;
mod settings;
mod summary;
mod tables;

use html::{Escaped, put};

use crate::detect::Report;
use crate::document::sha256_hex;
use crate::error::{Error, Result};

pub use index::{INDEX_FOOT, index_head, index_row};

/// What one page lists at most, so that it stays usable for texts of any length.
struct Limits {
    /// Tokens that are listed one by one. Of longer texts neighbours of one colour are joined.
    tokens: usize,
    /// Rows of any other table, and sentence numbers in the text.
    rows: usize,
}

const LIMITS: Limits = Limits { tokens: 10_000, rows: 1_000 };

const STYLE: &str = include_str!("style.css");

/// What a page is made of.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The report. Its token details colour the text, its sentences number it; both may be absent.
    pub report: &'a Report,
    /// The text that was judged; absent for token ids.
    pub text: Option<&'a str>,
    /// The name of the input, as a heading.
    pub name: &'a str,
}

/// Renders a page.
///
/// # Errors
/// [`Error::Mismatch`] when `text` is not the text of the report: colours would lie.
pub fn render(page: &Page<'_>) -> Result<String> {
    if let Some(text) = page.text {
        let found = sha256_hex(text.as_bytes());
        if found != page.report.input_sha256 {
            return Err(Error::Mismatch {
                field: "text SHA-256",
                left_name: "the report".to_owned(),
                left: page.report.input_sha256.clone(),
                right_name: "the text of its page".to_owned(),
                right: found,
                remedy: "give the text that was judged".to_owned(),
            });
        }
    }
    let mut html = String::new();
    let title = format!("{}: {}", page.report.verdict.words(), page.name);
    head(&mut html, &title);
    put!(
        &mut html,
        "<header>\n<p class=\"kind\">Watermark report</p>\n<h1>{}</h1>\n</header>\n<main>\n",
        Escaped(page.name)
    );
    summary::verdict(&mut html, page.report);
    summary::warnings(&mut html, page.report);
    let report = page.report;
    let sections = [
        ("figures", "Figures", written(|html| summary::figures(html, report))),
        ("course", "Course", written(|html| chart::walk(html, report))),
        ("regions", "Where in the text", written(|html| tables::regions(html, page))),
        ("text", "The text", written(|html| marked_text::section(html, page))),
        ("sentences", "Sentences", written(|html| tables::sentences(html, page))),
        ("tests", "Tests", written(|html| tables::tests(html, report))),
        ("entropy", "How much could be marked", written(|html| entropy::section(html, report))),
        ("settings", "Settings", written(|html| settings::section(html, report))),
        ("notes", "How to read this", written(|html| notes::section(html, report))),
        ("tokens", "Tokens", written(|html| tables::tokens(html, page))),
    ];
    html.push_str("<nav aria-label=\"Sections\">\n");
    for (id, title, section) in &sections {
        if !section.is_empty() {
            put!(&mut html, "<a href=\"#{id}\">{title}</a>\n");
        }
    }
    html.push_str("</nav>\n");
    for (_, _, section) in &sections {
        html.push_str(section);
    }
    put!(
        &mut html,
        "</main>\n<footer>\n<p>Input SHA-256 <code>{}</code></p>\n<p>greenmark {}, report form \
         <code>{}</code></p>\n</footer>\n",
        Escaped(&page.report.input_sha256),
        Escaped(page.report.version),
        Escaped(page.report.schema)
    );
    html.push_str(FOOT);
    Ok(html)
}

fn written(section: impl FnOnce(&mut String)) -> String {
    let mut html = String::new();
    section(&mut html);
    html
}

const FOOT: &str = "</body>\n</html>\n";

/// Everything before the content of a page's body.
fn head(html: &mut String, title: &str) {
    put!(
        html,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"robots\" content=\"noindex\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        Escaped(title)
    );
}
