//! Where to cut an ordered set without ordering it.
//!
//! Candidates are ordered by a u32 key, larger first, ties in the order of their ids. Each has a
//! measure (1 for a count, its probability mass for top-p). The question is always the same: the
//! shortest prefix whose measure reaches a limit. Three passes of a radix histogram (11, 11 and
//! 10 bits) find the key at which the prefix ends; nothing is sorted. Measures are integers, so
//! the answer does not depend on the order in which they are added, and a device kernel can use
//! the same passes.

/// Buckets of a pass.
const BUCKETS_U32: u32 = 1 << 11;
const BUCKETS: usize = BUCKETS_U32 as usize;

/// Histograms that are kept between calls.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    sums: Vec<u64>,
    /// Members of the bucket in which the prefix ends: key and measure.
    inside: Vec<(u32, u64)>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { sums: vec![0; BUCKETS], inside: Vec::new() }
    }
}

/// Where a prefix ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Candidates with a larger key are in the prefix, those with a smaller one are not.
    key: u32,
    /// How much measure the candidates at the key itself still have to give, in order of ids.
    rest: u64,
}

impl Cut {
    /// Everything is in the prefix.
    const ALL: Self = Self { key: 0, rest: u64::MAX };

    /// Whether the next candidate, in ascending order of ids, is in the prefix.
    pub(crate) fn admits(&mut self, key: u32, measure: u64) -> bool {
        if key == self.key && self.rest > 0 {
            self.rest = self.rest.saturating_sub(measure);
            return true;
        }
        key > self.key
    }
}

/// The end of the shortest prefix whose measure reaches `limit`; everything when the whole does
/// not reach it. A candidate is in the prefix exactly when the measure before it is below
/// `limit`.
///
/// The sum of all measures must fit u64.
pub(crate) fn cut(
    keys: &[u32],
    measure: impl Fn(usize) -> u64,
    limit: u64,
    histogram: &mut Histogram,
) -> Cut {
    let Histogram { sums, inside } = histogram;
    sums.fill(0);
    for (index, &key) in keys.iter().enumerate() {
        sums[(key >> 21) as usize] += measure(index);
    }
    let Some((high, before)) = locate(sums, 0, limit) else { return Cut::ALL };

    inside.clear();
    inside.extend(
        keys.iter()
            .enumerate()
            .filter(|&(_, &key)| key >> 21 == high)
            .map(|(index, &key)| (key, measure(index))),
    );
    sums.fill(0);
    for &(key, measure) in &*inside {
        sums[(key >> 10) as usize & (BUCKETS - 1)] += measure;
    }
    let Some((middle, before)) = locate(sums, before, limit) else { return Cut::ALL };

    let prefix = high << 11 | middle;
    sums.fill(0);
    for &(key, measure) in &*inside {
        if key >> 10 == prefix {
            sums[key as usize & (BUCKETS / 2 - 1)] += measure;
        }
    }
    let Some((low, before)) = locate(sums, before, limit) else { return Cut::ALL };
    Cut { key: prefix << 10 | low, rest: limit - before }
}

/// The bucket, from the highest down, in which the running sum reaches `limit`, and the sum
/// before it.
fn locate(sums: &[u64], mut before: u64, limit: u64) -> Option<(u32, u64)> {
    for (bucket, &sum) in (0..BUCKETS_U32).rev().zip(sums.iter().rev()) {
        if before + sum >= limit {
            return Some((bucket, before));
        }
        before += sum;
    }
    None
}
