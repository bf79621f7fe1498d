//! What a request may do to sampling where every text is marked: the table `[generation.enforce]`.
//!
//! A list of what is allowed, not of what is refused: a sampling option that has no bound here is
//! refused unless the operator allows it by name.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::sample::MirostatMode;
use crate::sample::SamplingOptions;

/// The bounds of sampling under [`Policy::Enforce`](super::Policy::Enforce).
///
/// A mark lives in the choice that sampling leaves. A request that leaves none, or that reads the
/// unmarked distribution off to draw from it elsewhere, gets unmarked text however strong the
/// mark is. `docs/serve.md` derives the defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnforceBounds {
    /// Least temperature; 0, greedy decoding, stays allowed where the scheme marks it.
    pub min_temperature: f64,
    /// Least `top_k` that is not off.
    pub min_top_k: i64,
    /// Least `top_p`.
    pub min_top_p: f64,
    /// Largest `min_p`.
    pub max_min_p: f64,
    /// Largest `repetition_penalty`; the least is 1. It counts the prompt as well.
    pub max_repetition_penalty: f64,
    /// Largest size of an entry of `logit_bias`, in logits.
    pub max_abs_logit_bias: f64,
    /// Alternatives that a request may ask for at each token; 0: no log-probabilities at all, not
    /// even those of the tokens drawn.
    pub max_logprobs: usize,
    /// Further sampling fields that requests may use without a bound, by name.
    pub allow: Vec<String>,
}

impl Default for EnforceBounds {
    fn default() -> Self {
        Self {
            min_temperature: 0.8,
            min_top_k: 40,
            min_top_p: 0.95,
            max_min_p: 0.05,
            max_repetition_penalty: 1.1,
            max_abs_logit_bias: 1.0,
            max_logprobs: 0,
            allow: Vec::new(),
        }
    }
}

impl EnforceBounds {
    /// Checks every range.
    pub(super) fn check(&self) -> Result<()> {
        let at_least_0 = |name, value: f64| {
            if value.is_finite() && value >= 0.0 {
                return Ok(());
            }
            Err(Error::parameter(name, value, "a finite number of at least 0"))
        };
        at_least_0("generation.enforce.min_temperature", self.min_temperature)?;
        at_least_0("generation.enforce.min_top_p", self.min_top_p)?;
        at_least_0("generation.enforce.max_min_p", self.max_min_p)?;
        at_least_0("generation.enforce.max_repetition_penalty", self.max_repetition_penalty)?;
        at_least_0("generation.enforce.max_abs_logit_bias", self.max_abs_logit_bias)?;
        let names = unbounded(&SamplingOptions::default()).map(|(name, _)| name);
        match self.allow.iter().find(|name| !names.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(Error::parameter(
                "generation.enforce.allow",
                name,
                format!("names out of {}", names.join(", ")),
            )),
        }
    }
}

/// The options without a bound, and whether each is given with a value that acts.
pub(super) fn unbounded(options: &SamplingOptions) -> [(&'static str, bool); 12] {
    // Names every option, so that one that is added does not compile before it is judged.
    let SamplingOptions {
        // With a bound of their own.
        temperature: _,
        top_k: _,
        top_p: _,
        min_p: _,
        repetition_penalty: _,
        presence_penalty: _,
        frequency_penalty: _,
        logit_bias: _,
        // Only ends a text later; end tokens are never marked.
        min_tokens: _,
        // Only leaves more to choose from.
        min_tokens_to_keep: _,
        typical_p,
        epsilon_cutoff,
        eta_cutoff,
        top_n_sigma,
        penalty_last_n,
        no_repeat_ngram_size,
        dry,
        xtc,
        mirostat,
        bad_words,
        allowed_tokens,
        order,
    } = options;
    let differs = |value: &Option<f64>, off: f64| value.is_some_and(|value| value != off);
    [
        ("typical_p", differs(typical_p, 1.0)),
        ("epsilon_cutoff", differs(epsilon_cutoff, 0.0)),
        ("eta_cutoff", differs(eta_cutoff, 0.0)),
        ("top_n_sigma", differs(top_n_sigma, 0.0)),
        // It makes penalties of the output count the prompt.
        ("penalty_last_n", penalty_last_n.is_some()),
        // Of size 1 it makes the prompt a list of bans.
        ("no_repeat_ngram_size", no_repeat_ngram_size.is_some_and(|size| size != 0)),
        ("dry", dry.as_ref().is_some_and(|dry| dry.multiplier != 0.0)),
        ("xtc", xtc.is_some_and(|xtc| xtc.probability != 0.0)),
        ("mirostat", mirostat.is_some_and(|given| given.mode != MirostatMode::Off)),
        ("bad_words", bad_words.as_ref().is_some_and(|words| !words.is_empty())),
        ("allowed_tokens", allowed_tokens.is_some()),
        ("order", order.is_some()),
    ]
}
