//! Many tests at once.

use super::LogProbability;

/// Benjamini-Hochberg q-values in the order of the input: the tests with q at most `level` have
/// a false discovery rate of at most `level` (Y. Benjamini and Y. Hochberg, Journal of the Royal
/// Statistical Society B 57, 1995).
///
/// Valid for independent tests and under positive dependence.
#[must_use]
pub fn benjamini_hochberg(p: &[LogProbability]) -> Vec<LogProbability> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].ln().total_cmp(&p[b].ln()));
    let tests = p.len() as f64;
    let mut q = vec![LogProbability::ONE; p.len()];
    let mut smallest = 0.0f64;
    for (index, &place) in order.iter().enumerate().rev() {
        smallest = smallest.min(p[place].ln() + (tests / (index + 1) as f64).ln());
        q[place] = LogProbability::from_ln(smallest);
    }
    q
}
