//! From tokens to a report: which tokens count, how surprising they are, and the verdict.
//!
//! This is the only place where a verdict is made. It reads token ids, never text, and needs no
//! model.

pub mod calibration;
pub mod entropy;
mod evidence;
mod join;
mod judge;
mod options;
mod report;
mod sentences;
mod test;
pub mod windows;

pub use evidence::{Evidence, Outcome, Scorable, Skip, Skipped, gather};
pub use join::{Joined, join};
pub use judge::ReportContext;
pub use options::{Alpha, DetectOptions, Sentences, TokenDetails, WindowSearch};
pub use report::{
    EvidenceSummary, Region, Report, SCHEMA, TestReport, TokenDetail, Verdict, Warning,
};
pub use sentences::{SentenceRange, SentenceReport, test_sentences};
pub use test::{Look, Test};
pub use windows::Correction;
