//! The draw: the exponential race over the candidates, with noise that belongs to a token.
//!
//! Every candidate t has an exponential variate `E_t` computed from 64 bits of a key stream at the
//! token's own place, and the candidate with the largest logit - ln `E_t` wins. Token t wins with
//! its softmax probability (`docs/sampling.md` bounds the distance), and because the bits depend
//! only on seed, sample index, step and token, the result does not depend on batch, slot, thread
//! count, device, or on which other tokens were computed.

use crate::prf::{ChaCha8Stream, ChaCha8Sweep, ln, neg_ln_uniform};
use crate::sample::candidates::Candidates;
use crate::sample::math::{self, MASS_ONE};
use crate::scheme::Uniforms;
use crate::token::{TokenId, TokenSet};

/// What the noise of a draw depends on, beside the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Draw {
    /// The request's seed.
    pub seed: u64,
    /// Index of the sample among several of one request.
    pub sample: u32,
    /// Zero-based index of the generated token.
    pub step: u64,
}

/// Random bits by token, asked for in ascending order of ids.
pub(crate) enum Bits {
    /// One block at a time, for few tokens.
    Sparse(ChaCha8Stream),
    /// Several blocks at once, for most of a vocabulary.
    Dense(Box<ChaCha8Sweep>),
}

/// With fewer candidates than one in so many ids, single blocks are cheaper than a sweep.
const SPARSE_BELOW: usize = 32;

impl Bits {
    pub(crate) fn new(stream: ChaCha8Stream, candidates: &Candidates) -> Self {
        if candidates.span() / SPARSE_BELOW > candidates.live() {
            Self::Sparse(stream)
        } else {
            Self::Dense(Box::new(stream.sweep()))
        }
    }

    fn pair(&mut self, token: TokenId) -> u64 {
        match self {
            Self::Sparse(stream) => stream.word_pair(u64::from(token)),
            Self::Dense(sweep) => sweep.word_pair(u64::from(token)),
        }
    }
}

/// Whose bits decide.
pub(crate) struct Noise<'a> {
    /// The draw's own.
    pub(crate) own: Bits,
    /// A scheme's, and the tokens whose noise stays the draw's own.
    pub(crate) keyed: Option<(Bits, &'a TokenSet)>,
}

impl Noise<'_> {
    /// The bits of a token; tokens must ascend from call to call.
    fn of(&mut self, token: TokenId) -> u64 {
        match &mut self.keyed {
            Some((keyed, never_marked)) if !never_marked.contains(token) => keyed.pair(token),
            _ => self.own.pair(token),
        }
    }
}

/// The stream behind a scheme's uniforms.
pub(crate) fn keyed_bits(uniforms: Uniforms, candidates: &Candidates) -> Bits {
    match uniforms {
        Uniforms::ChaCha8 { stream } => Bits::new(stream, candidates),
    }
}

/// Beyond this logit the rounding of scores in f64 is no longer small beside the slack below.
const LARGEST_FOR_SHORTCUT: f32 = 16_777_216.0;

/// The winner of the race and its logit. There is at least one candidate.
///
/// The logarithms are computed only where they can matter. A candidate wins only if
/// E <= exp(logit - best score so far) = w * c with its weight w = exp(logit - max) and
/// c = exp(max - best), and E > 1 - u. Its mass bounds w from above (plus one unit for rounding),
/// so `!bits` at or above the mass times a power of two that is at least c means that it cannot
/// win. About ln n of n candidates remain, and the winner is that of the full computation.
pub(crate) fn race(candidates: &mut Candidates, mut noise: Noise<'_>) -> (TokenId, f32) {
    let (ids, logits, masses, normalizer) = candidates.weighted();
    let shortcut = normalizer.max.abs() <= LARGEST_FOR_SHORTCUT;
    let mut best: Option<(TokenId, f32)> = None;
    let mut best_score = f64::NEG_INFINITY;
    let mut bound = Bound::Unknown;
    for ((&id, &logit), &mass) in ids.iter().zip(logits).zip(masses) {
        if logit == f32::NEG_INFINITY {
            continue;
        }
        let bits = noise.of(id);
        if bound.excludes(mass, bits) {
            continue;
        }
        let score = f64::from(logit) - ln(neg_ln_uniform(bits));
        if score > best_score || best.is_none() {
            best = Some((id, logit));
            best_score = score;
            if shortcut {
                bound = Bound::new(math::exp(f64::from(normalizer.max) - best_score));
            }
        }
    }
    // The caller has checked that a candidate is live.
    best.unwrap_or((0, f32::NEG_INFINITY))
}

/// An upper bound of 1 - u, in units of 2^-64, for a candidate of given mass that can still win.
#[derive(Clone, Copy)]
enum Bound {
    /// Nothing can be excluded.
    Unknown,
    /// (mass + 1) * 2^shift.
    Left(u32),
    /// (mass + 1) / 2^shift, rounded up.
    Right(u32),
}

impl Bound {
    /// The bound for c = exp(max - best).
    fn new(c: f64) -> Self {
        // The slack covers the rounding of l - max in f32 (at most 31 * 2^-24 relative to w) and
        // of scores in f64. In units of 2^-64 the bound is (mass + 1) * c * 2^64 / MASS_ONE.
        let scale = c * 1.000_01 * (1u64 << (64 - MASS_ONE.trailing_zeros())) as f64;
        // 2^shift >= scale: one above the exponent of the number. c is positive and at most
        // e^45, or it is infinite or NaN, which gives a large exponent.
        let shift = (scale.to_bits() >> 52).cast_signed() - 1022;
        match u32::try_from(shift.unsigned_abs()) {
            // (2^43 + 1) * 2^20 still fits u64.
            Ok(left) if shift >= 0 && left <= 20 => Self::Left(left),
            Ok(right) if shift < 0 && right < 64 => Self::Right(right),
            Ok(_) if shift < 0 => Self::Right(63),
            _ => Self::Unknown,
        }
    }

    #[inline]
    fn excludes(self, mass: u64, bits: u64) -> bool {
        match self {
            Self::Unknown => false,
            Self::Left(shift) => !bits >= (mass + 1) << shift,
            Self::Right(shift) => !bits > (mass + 1) >> shift,
        }
    }
}

/// The best candidate by logit, the smaller id on a tie, and its logit.
pub(crate) fn argmax(candidates: &Candidates) -> (TokenId, f32) {
    // The caller has checked that a candidate is live.
    candidates
        .entries()
        .fold((0, f32::NEG_INFINITY), |best, entry| if entry.1 > best.1 { entry } else { best })
}
