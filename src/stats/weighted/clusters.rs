//! Nearly equal weights: their sums fall into clusters, one for each number of successes, with
//! wide gaps between. The gaps cost work and hold nothing, so they are narrowed.

use super::tilt::{Sum, accurate_sum};

/// A sum with the same probability of reaching its value as `sum`, whose clusters stand closer
/// together; `None` when the weights form no clusters.
///
/// With weights d + e_i and E the sum of the e_i of the successes, clusters that do not overlap
/// mean that a sum reaches x = d n + y exactly when there are more than n successes, or n and
/// E >= y. That does not depend on d as long as the clusters stay apart.
pub(super) fn narrowed(sum: &Sum) -> Option<Sum> {
    let gap = sum.total() / sum.len() as f64;
    let parts = || sum.trials().iter().map(|trial| trial.weight - gap);
    let above = accurate_sum(parts().map(|part| part.max(0.0)));
    let below = accurate_sum(parts().map(|part| (-part).max(0.0)));
    let apart = (above + below) * (1.0 + 1e-6);
    if apart * 2.0 > gap || apart == 0.0 {
        return None;
    }
    let successes = ((sum.reach() - above) / gap).ceil().max(0.0);
    let rest = (sum.reach() - gap * successes).max(-below);
    let weights: Vec<f64> = parts().map(|part| apart + part).collect();
    Some(sum.with_weights(&weights, apart * successes + rest))
}
