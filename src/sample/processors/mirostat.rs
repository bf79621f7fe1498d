//! Mirostat: adapts the truncation so that the surprisal of the output stays near a target.
//!
//! Source: Basu et al. 2020, arXiv:2007.14966; version 2 as in llama.cpp.
//! Parameters: `mirostat.mode` 0 (off), 1 or 2; `mirostat.tau`, the target in bits (5);
//! `mirostat.eta`, the learning rate (0.1). It replaces every other truncation member.
//! Definition: a request's state is mu, 2 tau at first. Version 1 estimates Zipf's exponent s from
//! the 100 best tokens and keeps the k best, k = (e 2^mu / (1 - N^-e))^(1/s) rounded, e = s - 1,
//! N the number of candidates. Version 2 keeps the tokens whose surprisal -log2 p is at most mu
//! (p >= 2^-mu - 1e-7). Both keep the best. After the draw mu loses eta * (S - tau), S being the
//! token's surprisal in bits under the truncated distribution before the mark, so that the mark
//! does not feed back into the truncation.
//! Randomness: none of its own; the draw is the chain's.

use super::{Active, Kind, Member, Processor, Setup, StepContext};
use crate::error::{Error, Result};
use crate::sample::candidates::{Candidates, TOLERANCE};
use crate::sample::kernel::Form;
use crate::sample::math;
use crate::sample::options::{MirostatMode, MirostatOptions};

use std::f64::consts::LN_2;

pub(crate) const MEMBER: Member =
    Member { name: "mirostat", options: &["mirostat"], kind: Kind::Truncation, build };

/// How many of the best tokens estimate Zipf's exponent.
const ESTIMATE_FROM: usize = 100;

#[derive(Debug)]
struct Mirostat(MirostatOptions);

fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let Some(given) = setup.options.mirostat else { return Ok(None) };
    for (name, value) in [("mirostat.tau", given.tau), ("mirostat.eta", given.eta)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(Error::parameter(name, value, "a finite number above 0"));
        }
    }
    Ok((given.mode != MirostatMode::Off).then(|| Box::new(Mirostat(given)) as _))
}

impl Processor for Mirostat {
    fn apply(&self, candidates: &mut Candidates, context: &StepContext<'_>) {
        let mu = context.history.mirostat_mu.unwrap_or(2.0 * self.0.tau);
        if self.0.mode == MirostatMode::V1 {
            let k = zipf_k(candidates, mu);
            candidates.keep_count(k);
        } else {
            let limit = candidates.mass_of_probability(math::exp(-mu * LN_2) - TOLERANCE);
            candidates.keep_heavy(limit, 1);
        }
    }

    fn form(&self, _context: &StepContext<'_>) -> Form<'_> {
        Form::Absent
    }
}

/// mu after a token of `surprisal` nats.
pub(crate) fn next_mu(options: MirostatOptions, mu: Option<f64>, surprisal: f64) -> f64 {
    let mu = mu.unwrap_or(2.0 * options.tau);
    mu - options.eta * (surprisal / LN_2 - options.tau)
}

/// The k of version 1.
fn zipf_k(candidates: &mut Candidates, mu: f64) -> usize {
    let best = candidates.best(ESTIMATE_FROM);
    let (mut products, mut squares) = (0.0, 0.0);
    for (rank, pair) in (1u32..).zip(best.windows(2)) {
        let t = math::ln(f64::from(rank + 1) / f64::from(rank));
        // ln(p_i / p_(i+1)) is the difference of the logits.
        let b = f64::from(pair[0]) - f64::from(pair[1]);
        products += t * b;
        squares += t * t;
    }
    let live = candidates.live();
    let s = products / squares;
    // One candidate, or all of them equal: there is no slope to follow.
    if !(s.is_finite() && s > 0.0) {
        return live;
    }
    let e = s - 1.0;
    let spread = e * math::ln(live as f64);
    // (1 - N^-e) / e, with its limit ln N where e vanishes.
    let denominator =
        if spread.abs() < 1e-9 { math::ln(live as f64) } else { (1.0 - math::exp(-spread)) / e };
    let k = math::exp((mu * LN_2 - math::ln(denominator)) / s).round();
    // The cast saturates; NaN becomes 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturation is meant"
    )]
    let k = k as usize;
    k.clamp(1, live)
}
