//! DRY: a token that would continue a repetition of earlier text is penalised, the more the
//! longer the repetition.
//!
//! Source: "Don't repeat yourself" sampling of text-generation-webui, also in llama.cpp.
//! Parameters: `dry.multiplier` >= 0 (0 is off), `dry.base` >= 1 (1.75), `dry.allowed_length` >= 1
//! (2), `dry.sequence_breakers` (id sequences that a repetition never crosses).
//! Definition: let n be the length of the longest suffix of prompt and output that occurs
//! earlier and is followed there by token t. If n >= allowed length, t loses
//! multiplier * base^(n - allowed length).
//! Edges: the penalty is bounded to finite numbers. A suffix reaches back to the end of the last
//! breaker at most.

use std::collections::HashMap;

use super::{Active, Kind, Member, Processor, Setup, StepContext};
use crate::error::{Error, Result};
use crate::sample::candidates::Candidates;
use crate::sample::kernel::{Entry, Form};
use crate::sample::math;
use crate::token::TokenId;

pub(super) const MEMBER: Member =
    Member { name: "dry", options: &["dry"], kind: Kind::Edit, build };

#[derive(Debug)]
struct Dry {
    multiplier: f64,
    base: f64,
    allowed_length: usize,
    breakers: Vec<Vec<TokenId>>,
}

fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let Some(given) = &setup.options.dry else { return Ok(None) };
    if !(given.multiplier.is_finite() && given.multiplier >= 0.0) {
        return Err(Error::parameter("dry.multiplier", given.multiplier, "0 (off) or above"));
    }
    if !(given.base.is_finite() && given.base >= 1.0) {
        return Err(Error::parameter("dry.base", given.base, "1 or above"));
    }
    if given.allowed_length == 0 {
        return Err(Error::parameter("dry.allowed_length", 0, "1 or above"));
    }
    for breaker in &given.sequence_breakers {
        setup.check(breaker)?;
        if breaker.is_empty() {
            return Err(Error::parameter(
                "dry.sequence_breakers",
                "an empty sequence",
                "sequences of ids",
            ));
        }
    }
    Ok((given.multiplier > 0.0).then(|| {
        Box::new(Dry {
            multiplier: given.multiplier,
            base: given.base,
            allowed_length: given.allowed_length,
            breakers: given.sequence_breakers.clone(),
        }) as _
    }))
}

impl Processor for Dry {
    fn apply(&self, candidates: &mut Candidates, context: &StepContext<'_>) {
        candidates.change(&self.penalties(context));
    }

    fn form(&self, context: &StepContext<'_>) -> Form<'_> {
        Form::Entries(self.penalties(context))
    }
}

impl Dry {
    fn penalties(&self, context: &StepContext<'_>) -> Vec<Entry> {
        let tokens = context.history.tokens();
        let reach = self.reach(tokens);
        if reach < self.allowed_length {
            return Vec::new();
        }
        let mut longest: HashMap<TokenId, usize> = HashMap::new();
        for (next, length) in repetitions(tokens) {
            let length = length.min(reach);
            if length >= self.allowed_length {
                let entry = longest.entry(next).or_default();
                *entry = length.max(*entry);
            }
        }
        let entry = |(id, length): (TokenId, usize)| {
            let excess = u32::try_from(length - self.allowed_length).unwrap_or(u32::MAX);
            let penalty = self.multiplier * math::powi(self.base, excess);
            // Beyond f32 the penalty is infinite here and bounded by the edit.
            #[expect(clippy::cast_possible_truncation, reason = "bounded by the edit")]
            let penalty = penalty as f32;
            Entry::add(id, -penalty)
        };
        longest.into_iter().map(entry).collect()
    }

    /// Number of tokens after the last breaker: how far back a repetition may reach.
    fn reach(&self, tokens: &[TokenId]) -> usize {
        let after = |breaker: &Vec<TokenId>| {
            let found = tokens.windows(breaker.len()).rposition(|window| window == breaker);
            found.map_or(tokens.len(), |start| tokens.len() - start - breaker.len())
        };
        self.breakers.iter().map(after).min().unwrap_or(tokens.len())
    }
}

/// For every earlier position, the token that followed it and the length of the longest common
/// suffix of the text up to there and the whole text (the Z function of the reversed text,
/// Gusfield 1997; linear time).
fn repetitions(tokens: &[TokenId]) -> impl Iterator<Item = (TokenId, usize)> + '_ {
    let count = tokens.len();
    let at = |index: usize| tokens[count - 1 - index];
    let mut lengths = vec![0; count];
    let (mut left, mut right) = (0, 0);
    for start in 1..count {
        let mut length: usize =
            if start < right { lengths[start - left].min(right - start) } else { 0 };
        while start + length < count && at(length) == at(start + length) {
            length += 1;
        }
        if start + length > right {
            (left, right) = (start, start + length);
        }
        lengths[start] = length;
    }
    (1..count).map(move |start| (tokens[count - start], lengths[start]))
}
