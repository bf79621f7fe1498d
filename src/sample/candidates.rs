//! The tokens that are still in play at a step, with their logits and probability masses.
//!
//! Ids ascend, so "ties to the smaller id" is the order of the arrays. A banned token keeps its
//! place with a logit of negative infinity until the next truncation drops it; as long as no
//! token was dropped, an id is its own index.

use crate::error::{Error, Result};
use crate::sample::kernel::Entry;
use crate::sample::math::{self, MASS_ONE};
use crate::sample::select::{Cut, Histogram, cut};
use crate::token::TokenId;

/// The tolerance of the truncation members, in probability.
pub(crate) const TOLERANCE: f64 = 1e-7;

/// The tokens in play.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidates {
    ids: Vec<TokenId>,
    logits: Vec<f32>,
    /// Aligned with `logits` when `normalizer` is known.
    masses: Vec<u64>,
    normalizer: Option<Normalizer>,
    /// Number of logits above negative infinity.
    live: usize,
    /// The logits as they were before the last [`Self::add`].
    before_add: Vec<f32>,
    keys: Vec<u32>,
    histogram: Histogram,
}

/// What turns logits into probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Normalizer {
    /// The largest logit.
    pub(crate) max: f32,
    /// The sum of the masses.
    pub(crate) total: u64,
}

impl Normalizer {
    /// The log-probability of a logit, in nats.
    pub(crate) fn ln_probability(self, logit: f32) -> f64 {
        // Adding 0 turns -0, which depends on the signs of zero logits, into 0.
        f64::from(logit - self.max) - math::ln_mass(self.total) + 0.0
    }
}

impl Candidates {
    /// Takes the logits of a step.
    ///
    /// # Errors
    /// [`Error::NonFiniteLogits`] when one is NaN or positive infinity.
    pub(crate) fn load(&mut self, logits: &[f32], step: u64) -> Result<()> {
        let (mut nan, mut infinite, mut banned) = (0usize, 0usize, 0usize);
        for &logit in logits {
            nan += usize::from(logit.is_nan());
            infinite += usize::from(logit == f32::INFINITY);
            banned += usize::from(logit == f32::NEG_INFINITY);
        }
        if nan + infinite > 0 {
            return Err(Error::NonFiniteLogits { step, nan, infinite, total: logits.len() });
        }
        self.logits.clear();
        self.logits.extend_from_slice(logits);
        // Ids ascend, so the right number of them with the right last one is all of them.
        let complete = self.ids.len() == logits.len()
            && self.ids.last().is_none_or(|&last| last as usize + 1 == logits.len());
        if !complete {
            self.ids.clear();
            self.ids.extend((0..).take(logits.len()));
        }
        self.live = logits.len() - banned;
        self.normalizer = None;
        Ok(())
    }

    /// Number of tokens in play.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// The entries, ids ascending; banned ones have a logit of negative infinity.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (TokenId, f32)> + '_ {
        self.ids.iter().copied().zip(self.logits.iter().copied())
    }

    /// Ids, logits and masses of the entries; the masses belong to the normalizer returned.
    pub(crate) fn weighted(&mut self) -> (&[TokenId], &[f32], &[u64], Normalizer) {
        let normalizer = self.normalizer();
        (&self.ids, &self.logits, &self.masses, normalizer)
    }

    /// The entry of `id`.
    fn position(&self, id: TokenId) -> Option<usize> {
        // Ids ascend, so the id at its own index means that none before it was dropped.
        if self.ids.get(id as usize) == Some(&id) {
            return Some(id as usize);
        }
        self.ids.binary_search(&id).ok()
    }

    /// Replaces the logit of `id` by `change` of it, kept finite. Tokens that are not in play
    /// stay so; ids outside the vocabulary are ignored.
    pub(crate) fn edit(&mut self, id: TokenId, change: impl FnOnce(f32) -> f32) {
        if let Some(index) = self.position(id)
            && self.logits[index] > f32::NEG_INFINITY
        {
            self.logits[index] = finite(change(self.logits[index]));
            self.normalizer = None;
        }
    }

    /// Takes `id` out of play.
    pub(crate) fn ban(&mut self, id: TokenId) {
        if let Some(index) = self.position(id)
            && self.logits[index] > f32::NEG_INFINITY
        {
            self.logits[index] = f32::NEG_INFINITY;
            self.live -= 1;
            self.normalizer = None;
        }
    }

    /// Changes or bans single tokens.
    pub(crate) fn change(&mut self, entries: &[Entry]) {
        for &entry in entries {
            match entry.addition() {
                Some(addition) => self.edit(entry.id, |logit| logit + addition),
                None => self.ban(entry.id),
            }
        }
    }

    /// Takes every token out of play that `allowed` does not hold.
    pub(crate) fn allow_only(&mut self, allowed: impl Fn(TokenId) -> bool) {
        for (&id, logit) in self.ids.iter().zip(&mut self.logits) {
            if *logit > f32::NEG_INFINITY && !allowed(id) {
                *logit = f32::NEG_INFINITY;
                self.live -= 1;
                self.normalizer = None;
            }
        }
    }

    /// Divides every logit by `temperature` > 0.
    pub(crate) fn divide(&mut self, temperature: f32) {
        for logit in &mut self.logits {
            // Negative infinity must pass, so only finite results that overflowed are bounded.
            let scaled = *logit / temperature;
            *logit = if *logit > f32::NEG_INFINITY { finite(scaled) } else { *logit };
        }
        self.normalizer = None;
    }

    /// Adds `delta` to the tokens that `member` names, in ascending order of ids, and returns
    /// the mass they had before, relative to the normalizer of that time.
    pub(crate) fn add(&mut self, delta: f32, mut member: impl FnMut(TokenId) -> bool) -> u64 {
        self.normalizer();
        self.before_add.clone_from(&self.logits);
        let mut added = 0;
        for ((&id, logit), &mass) in self.ids.iter().zip(&mut self.logits).zip(&self.masses) {
            // Membership is a coin flip that no processor predicts, so it is arithmetic and not a
            // branch: a factor of 0 or 1. A banned token has mass 0.
            let is_member = u8::from(member(id));
            added += mass * u64::from(is_member);
            if *logit > f32::NEG_INFINITY {
                *logit = finite(*logit + delta * f32::from(is_member));
            }
        }
        if delta != 0.0 {
            self.normalizer = None;
        }
        added
    }

    /// The logit of `id`; negative infinity when it is not in play.
    pub(crate) fn logit(&self, id: TokenId) -> f32 {
        self.position(id).map_or(f32::NEG_INFINITY, |index| self.logits[index])
    }

    /// The logit that `id` had before the last [`Self::add`].
    pub(crate) fn before_add(&self, id: TokenId) -> f32 {
        self.position(id).map_or(f32::NEG_INFINITY, |index| self.before_add[index])
    }

    /// The largest logit and the sum of masses, computed when the logits changed.
    pub(crate) fn normalizer(&mut self) -> Normalizer {
        if let Some(known) = self.normalizer {
            return known;
        }
        let max = maximum(&self.logits);
        self.masses.clear();
        self.masses.extend(self.logits.iter().map(|&logit| math::mass(logit - max)));
        let normalizer = Normalizer { max, total: self.masses.iter().sum() };
        self.normalizer = Some(normalizer);
        normalizer
    }

    /// Shannon entropy in nats.
    pub(crate) fn entropy(&mut self) -> f64 {
        let Normalizer { max, total } = self.normalizer();
        let surprisal: u64 = self
            .logits
            .iter()
            .zip(&self.masses)
            .map(|(&logit, &mass)| math::surprisal_mass(logit - max, mass))
            .sum();
        math::entropy(total, surprisal)
    }

    /// The smallest mass that stands for at least the probability `p`; 0 for a negative one.
    pub(crate) fn mass_of_probability(&mut self, p: f64) -> u64 {
        let total = self.normalizer().total;
        // The cast saturates: below 0 to 0. Above, p is at most 1 and the total at most 2^63.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturation is meant"
        )]
        let mass = (p * total as f64).ceil() as u64;
        mass
    }

    /// Keeps the `count` best, ties to the smaller id.
    pub(crate) fn keep_count(&mut self, count: usize) {
        if count >= self.live {
            return;
        }
        let mut best = self.cut_count(count);
        self.retain_by_key(|key, _| best.admits(key, 1));
    }

    /// Keeps the shortest prefix, best first, whose mass reaches `limit`, and at least
    /// `at_least` tokens.
    pub(crate) fn keep_mass(&mut self, limit: u64, at_least: usize) {
        self.rank_by_logit();
        self.keep_ranked_mass(limit, at_least);
    }

    /// As [`Self::keep_mass`], the order being that of `rank` (larger first), a function of
    /// logit and normalizer.
    pub(crate) fn keep_mass_ranked_by(
        &mut self,
        rank: impl Fn(f32, Normalizer) -> u32,
        limit: u64,
        at_least: usize,
    ) {
        let normalizer = self.normalizer();
        self.keys.clear();
        self.keys.extend(self.logits.iter().map(|&logit| {
            // A banned token is behind all others.
            if logit > f32::NEG_INFINITY { rank(logit, normalizer).max(1) } else { 0 }
        }));
        self.keep_ranked_mass(limit, at_least);
    }

    fn keep_ranked_mass(&mut self, limit: u64, at_least: usize) {
        self.normalizer();
        let masses = &self.masses;
        let mut by_mass = cut(&self.keys, |index| masses[index], limit.max(1), &mut self.histogram);
        if at_least <= 1 {
            self.retain_by_key(|key, mass| by_mass.admits(key, mass));
        } else {
            let mut by_count =
                cut(&self.keys, |_| 1, at_least.min(self.live) as u64, &mut self.histogram);
            // Both have to see every candidate, since they count those at their own key.
            self.retain_by_key(|key, mass| by_mass.admits(key, mass) | by_count.admits(key, 1));
        }
    }

    /// Keeps the tokens of mass `limit` or more, the best one, and at least `at_least`.
    pub(crate) fn keep_heavy(&mut self, limit: u64, at_least: usize) {
        self.normalizer();
        let limit = limit.min(MASS_ONE);
        if at_least <= 1 {
            self.retain(|_, _, mass| mass >= limit);
        } else {
            let mut best = self.cut_count(at_least.min(self.live));
            self.retain_by_key(|key, mass| best.admits(key, 1) || mass >= limit);
        }
    }

    /// Keeps the tokens whose logit is at least `lowest`, the best one, and at least `at_least`.
    pub(crate) fn keep_logits_from(&mut self, lowest: f32, at_least: usize) {
        let lowest = lowest.min(self.normalizer().max);
        if at_least <= 1 {
            self.retain(|_, logit, _| logit >= lowest);
        } else {
            let mut best = self.cut_count(at_least.min(self.live));
            let from = math::rank_key(lowest);
            self.retain_by_key(|key, _| best.admits(key, 1) || key >= from);
        }
    }

    /// Keeps what `keep` says of id, logit and mass, in ascending order of ids.
    pub(crate) fn keep(&mut self, keep: impl FnMut(TokenId, f32, u64) -> bool) {
        self.normalizer();
        self.retain(keep);
    }

    /// The ids of the `count` best, ascending, ties to the smaller id.
    pub(crate) fn best_ids(&mut self, count: usize) -> Vec<TokenId> {
        self.best_entries(count).map(|(id, _)| id).collect()
    }

    /// The logits of the `count` best, descending.
    pub(crate) fn best(&mut self, count: usize) -> Vec<f32> {
        let mut best: Vec<f32> = self.best_entries(count).map(|(_, logit)| logit).collect();
        best.sort_unstable_by(|a, b| b.total_cmp(a));
        best
    }

    fn best_entries(&mut self, count: usize) -> impl Iterator<Item = (TokenId, f32)> + '_ {
        let mut best = self.cut_count(count.min(self.live));
        self.entries().filter(move |&(_, logit)| {
            best.admits(math::rank_key(logit), 1) && logit > f32::NEG_INFINITY
        })
    }

    /// One past the largest id that has an entry.
    pub(crate) fn span(&self) -> usize {
        self.ids.last().map_or(0, |&last| last as usize + 1)
    }

    /// The end of the `count` best, over the keys of the logits.
    fn cut_count(&mut self, count: usize) -> Cut {
        self.rank_by_logit();
        cut(&self.keys, |_| 1, count as u64, &mut self.histogram)
    }

    fn rank_by_logit(&mut self) {
        self.keys.clear();
        self.keys.extend(self.logits.iter().map(|&logit| math::rank_key(logit)));
    }

    fn retain_by_key(&mut self, mut keep: impl FnMut(u32, u64) -> bool) {
        let keys = std::mem::take(&mut self.keys);
        self.retain_indexed(|entry, _, _, mass| keep(keys[entry], mass));
        self.keys = keys;
    }

    fn retain(&mut self, mut keep: impl FnMut(TokenId, f32, u64) -> bool) {
        self.retain_indexed(|_, id, logit, mass| keep(id, logit, mass));
    }

    /// Drops banned entries and those that `keep` refuses. `keep` is called in ascending order.
    fn retain_indexed(&mut self, mut keep: impl FnMut(usize, TokenId, f32, u64) -> bool) {
        let has_masses = self.normalizer.is_some();
        let (mut kept, mut total, mut max) = (0, 0, f32::NEG_INFINITY);
        for entry in 0..self.logits.len() {
            let (id, logit) = (self.ids[entry], self.logits[entry]);
            let mass = if has_masses { self.masses[entry] } else { 0 };
            if logit > f32::NEG_INFINITY && keep(entry, id, logit, mass) {
                self.ids[kept] = id;
                self.logits[kept] = logit;
                if has_masses {
                    self.masses[kept] = mass;
                }
                total += mass;
                max = if logit > max { logit } else { max };
                kept += 1;
            }
        }
        self.ids.truncate(kept);
        self.logits.truncate(kept);
        self.masses.truncate(kept);
        self.live = kept;
        // Masses are relative to the largest logit; without it they would lose their digits.
        self.normalizer = match self.normalizer {
            Some(known) if known.max.to_bits() == max.to_bits() => Some(Normalizer { max, total }),
            _ => None,
        };
    }
}

/// The value, bounded to the finite numbers.
fn finite(value: f32) -> f32 {
    value.clamp(f32::MIN, f32::MAX)
}

/// The largest value, in eight lanes so that it compiles to vector code; the order does not
/// matter for a maximum.
fn maximum(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 8];
    let chunks = values.chunks_exact(8);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = if value > *lane { value } else { *lane };
        }
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a })
}
