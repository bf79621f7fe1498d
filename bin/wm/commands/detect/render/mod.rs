//! A report for readers: lines, JSON, highlighted text, pages.

mod highlight;
mod pages;
mod regions;
mod sentences;
mod text;

use std::path::Path;

use anyhow::Result;
use greenmark::Error;
use greenmark::detect::Report;
use serde_json::json;

use super::inputs::Label;
use crate::args::DetectArgs;
use crate::output;
use highlight::Style;
use pages::Pages;

#[cfg(feature = "engine")]
pub(crate) use text::first_line;

/// A report, and the text when a reader asked for more than figures.
pub(super) struct Judged {
    pub(super) report: Report,
    pub(super) text: Option<String>,
}

/// How the reports of a run are shown.
pub(super) struct Renderer {
    json: bool,
    details: bool,
    sentences: bool,
    highlight: Option<Style>,
    pages: Option<Pages>,
}

impl Renderer {
    /// `several` says whether the run may give more than one report.
    pub(super) fn new(args: &DetectArgs, several: bool) -> Result<Self, Error> {
        Ok(Self {
            json: args.json,
            details: args.details,
            sentences: args.sentences,
            highlight: args.highlight.then(|| Style::of(args.color)),
            pages: Pages::open(args, several)?,
        })
    }

    /// Shows the one report of a run.
    pub(super) fn show(&self, input: &Path, judged: Judged) -> Result<()> {
        let shown = self.render(None, input, judged)?;
        self.emit(input, &shown)
    }

    /// Makes what is shown of one report; `label` is that of its input when there may be several.
    pub(super) fn render(
        &self,
        label: Option<&Label>,
        input: &Path,
        judged: Judged,
    ) -> Result<Shown> {
        let Judged { mut report, text } = judged;
        let text = text.as_deref();
        let page = match &self.pages {
            Some(_) => Some(pages::render(input, &report, text)?),
            None => None,
        };
        let details = report.token_details.take();
        if !self.sentences {
            report.sentences = None;
        }
        let mut head;
        let mut tail = String::new();
        if self.json {
            if self.details {
                report.token_details = details;
            }
            if let Some(label) = label {
                head = fields(label);
                tail = format!(",\"report\":{}}}\n", serde_json::to_string(&report)?);
            } else {
                head = String::from_utf8(report.document()?)?;
            }
        } else {
            head = text::text(label.map(|_| input), &report);
            if let Some(all) = &report.sentences {
                head.push_str(&sentences::table(all, text));
            }
            if let (Some(style), Some(text), Some(details)) = (self.highlight, text, details) {
                head.push_str(&highlight::text(style, &report, text, &details));
            }
        }
        let page = page.map(|page| (page, report));
        Ok(Shown { head, tail, page })
    }

    /// Writes what [`Renderer::render`] made.
    pub(super) fn emit(&self, input: &Path, shown: &Shown) -> Result<()> {
        output::write(&format!("{}{}", shown.head, shown.tail))?;
        self.emit_page(input, shown)
    }

    /// Writes the page only.
    pub(super) fn emit_page(&self, input: &Path, shown: &Shown) -> Result<()> {
        // A page that cannot be written takes no verdict away.
        match (&self.pages, &shown.page) {
            (Some(pages), Some((page, report))) => Ok(pages.write(input, report, page)?),
            _ => Ok(()),
        }
    }
}

/// What is shown of one text.
pub(super) struct Shown {
    /// The record, or the part of a JSON record before the report: further fields may follow it.
    pub(super) head: String,
    /// The rest of the record.
    pub(super) tail: String,
    /// The page, and the report for its row in the index.
    page: Option<(String, Report)>,
}

/// The open object of a record with the fields that say which text it is of.
fn fields(label: &Label) -> String {
    let path = json!(label.path.display().to_string());
    let line = label.line.map_or_else(String::new, |line| format!(",\"line\":{line}"));
    let id = label.id.as_ref().map_or_else(String::new, |id| format!(",\"id\":{id}"));
    format!("{{\"path\":{path}{line}{id}")
}

/// The record of an input that gave no verdict.
pub(super) fn error_record(label: &Label, error: &anyhow::Error, message: &str) -> String {
    let offset = match error.downcast_ref() {
        Some(Error::File { offset: Some(offset), .. }) => format!(",\"byte_offset\":{offset}"),
        _ => String::new(),
    };
    format!("{}{offset},\"error\":{}}}", fields(label), json!(message))
}
