//! One verdict for a text that was held against several profiles.

use crate::detect::{Report, Verdict};

/// What the reports of all profiles conclude together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Joined {
    /// The conclusion: `watermarked` when any profile is found.
    pub verdict: Verdict,
    /// The place of the report that decides.
    pub deciding: usize,
    /// Its decimal logarithm of p after paying for every test under every profile.
    pub corrected_log10_p: f64,
    /// Number of tests that it pays for.
    pub hypotheses: u64,
    /// The accepted rate of false accusations, for all profiles together.
    pub alpha: f64,
}

/// Joins the reports of one text under several profiles: the smallest corrected p decides among
/// those that can conclude anything, or among all when none can; of equals the first.
///
/// The rate of false accusations holds when each report was made with
/// [`DetectOptions::profiles`](crate::detect::DetectOptions::profiles) set to their number and with
/// the same alpha. `None` for no report.
#[must_use]
pub fn join(reports: &[Report]) -> Option<Joined> {
    let rank =
        |report: &Report| (report.verdict == Verdict::Insufficient, report.corrected_log10_p);
    let (deciding, report) = reports
        .iter()
        .enumerate()
        .reduce(|best, next| if rank(next.1) < rank(best.1) { next } else { best })?;
    Some(Joined {
        verdict: report.verdict,
        deciding,
        corrected_log10_p: report.corrected_log10_p,
        hypotheses: report.hypotheses,
        alpha: report.alpha,
    })
}
