//! Counters and histograms of the service, for Prometheus.

use std::time::Duration;

use crate::detect::Verdict;

/// All figures of one service.
#[derive(Debug, Default)]
pub struct Metrics {}

impl Metrics {
    /// A text was judged.
    pub fn judged(&self, _verdict: Verdict, _tokens: u64, _duration: Duration) {}

    /// A text was generated.
    pub fn generated(&self, _tokens: u64, _duration: Duration) {}
}
