//! No-repeat n-gram: no sequence of n tokens appears twice.
//!
//! Source: `no_repeat_ngram_size` of transformers (Paulus et al. 2017, arXiv:1705.04304).
//! Parameters: `no_repeat_ngram_size` n; 0 is off, 1 bans every token that has appeared.
//! Definition: a token is banned when it and the n - 1 tokens before it stand somewhere in prompt
//! and output already.

use super::{Active, Kind, Member, Processor, Setup, StepContext};
use crate::error::Result;
use crate::sample::candidates::Candidates;
use crate::sample::kernel::{Entry, Form};

pub(super) const MEMBER: Member =
    Member { name: "no_repeat_ngram", options: &["no_repeat_ngram_size"], kind: Kind::Edit, build };

#[derive(Debug)]
struct NoRepeatNgram {
    size: usize,
}

#[expect(clippy::unnecessary_wraps, reason = "the registry's signature")]
fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let size = setup.options.no_repeat_ngram_size.unwrap_or(0);
    Ok((size > 0).then(|| Box::new(NoRepeatNgram { size }) as _))
}

impl Processor for NoRepeatNgram {
    fn apply(&self, candidates: &mut Candidates, context: &StepContext<'_>) {
        candidates.change(&self.bans(context));
    }

    fn form(&self, context: &StepContext<'_>) -> Form<'_> {
        Form::Entries(self.bans(context))
    }
}

impl NoRepeatNgram {
    fn bans(&self, context: &StepContext<'_>) -> Vec<Entry> {
        let tokens = context.history.tokens();
        if tokens.len() < self.size {
            return Vec::new();
        }
        let suffix = &tokens[tokens.len() - (self.size - 1)..];
        let repeated = tokens.windows(self.size).filter(|window| window.starts_with(suffix));
        repeated.map(|window| Entry::ban(window[self.size - 1])).collect()
    }
}
