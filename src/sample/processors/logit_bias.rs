//! Logit bias: a number added to the logits of given tokens; negative infinity bans one.
//!
//! Source: the `logit_bias` of chat-completion interfaces, `sequence_bias` of transformers for single
//! tokens.
//! Parameters: `logit_bias`, a map from id to a finite number or `"-inf"`.
//! Edges: a finite bias is no ban, however low; a token at negative infinity stays there.

use super::{Active, Kind, Member, Processor, Setup, StepContext};
use crate::error::{Error, Result};
use crate::sample::candidates::Candidates;
use crate::sample::kernel::{Entry, Form};
use crate::sample::options::Bias;
use crate::token::TokenId;

pub(super) const MEMBER: Member =
    Member { name: "logit_bias", options: &["logit_bias"], kind: Kind::Edit, build };

#[derive(Debug)]
struct LogitBias(Vec<Entry>);

fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let Some(given) = setup.options.logit_bias.as_ref().filter(|map| !map.is_empty()) else {
        return Ok(None);
    };
    let ids: Vec<TokenId> = given.keys().copied().collect();
    setup.check(&ids)?;
    for bias in given.values() {
        if bias.0.is_nan() || bias.0 == f32::INFINITY {
            return Err(Error::parameter("logit_bias", bias.0, "a finite number or -inf"));
        }
    }
    let entry = |(&id, bias): (&TokenId, &Bias)| match bias.0 {
        f32::NEG_INFINITY => Entry::ban(id),
        addition => Entry::add(id, addition),
    };
    Ok(Some(Box::new(LogitBias(given.iter().map(entry).collect()))))
}

impl Processor for LogitBias {
    fn apply(&self, candidates: &mut Candidates, _context: &StepContext<'_>) {
        candidates.change(&self.0);
    }

    fn form(&self, _context: &StepContext<'_>) -> Form<'_> {
        Form::Entries(self.0.clone())
    }
}
