//! From tokens to a report: which tokens count, how surprising they are, and the verdict.
//!
//! This is the only place where a verdict is made. It reads token ids, never text, and needs no
//! model.

mod evidence;
mod options;
mod report;
mod test;

pub use evidence::{Evidence, Outcome, Skip, Skipped, gather};
pub use options::{Alpha, DetectOptions, TokenDetails};
pub use report::{
    EvidenceSummary, Region, Report, ReportContext, SCHEMA, TestReport, TokenDetail, Verdict,
    Warning,
};
pub use test::{Look, Test};
