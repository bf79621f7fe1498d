//! The list of several pages, written row by row so that any number of them fits.

use super::html::{Escaped, put};
use super::numbers::{count, effect, probability};
use crate::detect::Report;

/// Everything before the first row.
#[must_use]
pub fn index_head() -> String {
    let mut html = String::new();
    super::head(&mut html, "Watermark reports");
    html.push_str(
        "<header>\n<p class=\"kind\">Watermark reports</p>\n<h1>Index</h1>\n</header>\n<main>\n\
         <p>“No watermark found” is not evidence that a person wrote a text. Each report says what \
         its figures mean.</p>\n\
         <div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Reports\">\n<table>\n\
         <thead><tr><th scope=\"col\">Text</th><th scope=\"col\">Verdict</th>\
         <th scope=\"col\">Scored</th><th scope=\"col\">z</th><th scope=\"col\">Corrected p</th>\
         </tr></thead>\n<tbody>\n",
    );
    html
}

/// The row of one report, whose page is the file `href` beside the index.
#[must_use]
pub fn index_row(name: &str, href: &str, report: &Report) -> String {
    let mut html = String::new();
    put!(
        &mut html,
        "<tr><th scope=\"row\"><a href=\"{}\">{}</a></th><td>{}</td><td>{}</td><td>{}</td>\
         <td>{}</td></tr>\n",
        Escaped(href),
        Escaped(name),
        report.verdict.words(),
        count(report.scored),
        effect(report.z),
        probability(report.corrected_log10_p)
    );
    html
}

/// Everything behind the last row.
pub const INDEX_FOOT: &str = "</tbody>\n</table>\n</div>\n</main>\n</body>\n</html>\n";
