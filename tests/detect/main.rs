//! Scoring, deduplication, verdicts and the report.

mod profile;
mod report;
mod scoring;
