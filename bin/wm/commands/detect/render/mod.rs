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

    /// Shows one report; `name` is that of its input when there may be several.
    pub(super) fn show(&self, name: Option<&Path>, input: &Path, judged: Judged) -> Result<()> {
        let Judged { mut report, text } = judged;
        let text = text.as_deref();
        let page = match &self.pages {
            Some(pages) => pages.render(input, &report, text).map(Some)?,
            None => None,
        };
        let details = report.token_details.take();
        if !self.sentences {
            report.sentences = None;
        }
        if self.json {
            if self.details {
                report.token_details = details;
            }
            match name {
                None => output::json(&report)?,
                Some(name) => {
                    let name = name.display().to_string();
                    output::line(&json!({"path": name, "report": report}).to_string())?;
                }
            }
        } else {
            let mut shown = text::text(name, &report);
            if let Some(all) = &report.sentences {
                shown.push_str(&sentences::table(all, text));
            }
            if let (Some(style), Some(text), Some(details)) = (self.highlight, text, details) {
                shown.push_str(&highlight::text(style, &report, text, &details));
            }
            output::write(&shown)?;
        }
        // A page that cannot be written takes no verdict away.
        match (&self.pages, page) {
            (Some(pages), Some(page)) => Ok(pages.write(input, &report, &page)?),
            _ => Ok(()),
        }
    }
}
