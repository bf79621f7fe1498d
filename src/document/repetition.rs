//! How much a text repeats itself.

use std::collections::HashSet;

use crate::token::TokenId;

/// The share of distinct n-grams among all n-grams of `ids`, in (0, 1]: distinct-n (J. Li et al.,
/// "A diversity-promoting objective function for neural conversation models", 2016). One minus it
/// is the share of repeated n-grams, seq-rep-n (S. Welleck et al., "Neural text generation with
/// unlikelihood training", 2020).
///
/// `None` when `n` is 0 or there are fewer ids than that.
#[must_use]
pub fn distinct_ngrams(ids: &[TokenId], n: usize) -> Option<f64> {
    if n == 0 || ids.len() < n {
        return None;
    }
    let distinct: HashSet<&[TokenId]> = ids.windows(n).collect();
    Some(distinct.len() as f64 / (ids.len() - n + 1) as f64)
}
