//! Minimum length: the end tokens are banned until enough tokens were generated.
//!
//! Source: `min_new_tokens` of transformers, `min_tokens` of vLLM.
//! Parameters: `min_tokens`, a number of generated tokens; 0 is off.
//! Edges: nothing for a model without end tokens.

use super::{Active, Kind, Member, Processor, Setup, StepContext};
use crate::error::Result;
use crate::sample::candidates::Candidates;
use crate::sample::kernel::{Entry, Form};
use crate::token::TokenId;

pub(super) const MEMBER: Member =
    Member { name: "min_tokens", options: &["min_tokens"], kind: Kind::Edit, build };

#[derive(Debug)]
struct MinTokens {
    tokens: usize,
    end_ids: Vec<TokenId>,
}

#[expect(clippy::unnecessary_wraps, reason = "the registry's signature")]
fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let tokens = setup.options.min_tokens.unwrap_or(0);
    Ok((tokens > 0).then(|| Box::new(MinTokens { tokens, end_ids: setup.end_ids.to_vec() }) as _))
}

impl Processor for MinTokens {
    fn apply(&self, candidates: &mut Candidates, context: &StepContext<'_>) {
        candidates.change(&self.bans(context));
    }

    fn form(&self, context: &StepContext<'_>) -> Form<'_> {
        Form::Entries(self.bans(context))
    }
}

impl MinTokens {
    fn bans(&self, context: &StepContext<'_>) -> Vec<Entry> {
        if context.history.generated().len() >= self.tokens {
            return Vec::new();
        }
        self.end_ids.iter().map(|&id| Entry::ban(id)).collect()
    }
}
