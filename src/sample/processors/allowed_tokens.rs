//! Allowed tokens: everything outside a list is banned.
//!
//! Source: `allowed_token_ids` of vLLM.
//! Parameters: `allowed_tokens`, a list of ids, not empty.
//! Edges: it does not make a token allowed that another member bans.

use super::{Active, Kind, Member, Processor, Setup, StepContext};
use crate::error::{Error, Result};
use crate::sample::candidates::Candidates;
use crate::sample::kernel::Form;
use crate::token::TokenSet;

pub(super) const MEMBER: Member =
    Member { name: "allowed_tokens", options: &["allowed_tokens"], kind: Kind::Edit, build };

#[derive(Debug)]
struct AllowedTokens(TokenSet);

fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let Some(given) = &setup.options.allowed_tokens else { return Ok(None) };
    if given.is_empty() {
        return Err(Error::parameter("allowed_tokens", "an empty list", "at least one id"));
    }
    let set = TokenSet::from_ids(setup.vocab, given.iter().copied())?;
    Ok(Some(Box::new(AllowedTokens(set))))
}

impl Processor for AllowedTokens {
    fn apply(&self, candidates: &mut Candidates, _context: &StepContext<'_>) {
        candidates.allow_only(|id| self.0.contains(id));
    }

    fn form(&self, _context: &StepContext<'_>) -> Form<'_> {
        Form::Allow(&self.0)
    }
}
