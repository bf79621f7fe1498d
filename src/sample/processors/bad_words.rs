//! Bad words: token sequences that must not appear.
//!
//! Source: `bad_words_ids` of transformers, `bad_words` of vLLM.
//! Parameters: `bad_words`, a list of id sequences, none empty.
//! Definition: when prompt and output end with all of a sequence but its last token, that last
//! token is banned; a sequence of one token is always banned. The start of a sequence may lie in
//! the prompt.

use super::{Active, Kind, Member, Processor, Setup, StepContext};
use crate::error::{Error, Result};
use crate::sample::candidates::Candidates;
use crate::sample::kernel::{Entry, Form};
use crate::token::TokenId;

pub(super) const MEMBER: Member =
    Member { name: "bad_words", options: &["bad_words"], kind: Kind::Edit, build };

#[derive(Debug)]
struct BadWords(Vec<(Vec<TokenId>, TokenId)>);

fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let mut words = Vec::new();
    for sequence in setup.options.bad_words.iter().flatten() {
        setup.check(sequence)?;
        let Some((&last, start)) = sequence.split_last() else {
            return Err(Error::parameter("bad_words", "an empty sequence", "sequences of ids"));
        };
        words.push((start.to_vec(), last));
    }
    Ok((!words.is_empty()).then(|| Box::new(BadWords(words)) as _))
}

impl Processor for BadWords {
    fn apply(&self, candidates: &mut Candidates, context: &StepContext<'_>) {
        candidates.change(&self.bans(context));
    }

    fn form(&self, context: &StepContext<'_>) -> Form<'_> {
        Form::Entries(self.bans(context))
    }
}

impl BadWords {
    fn bans(&self, context: &StepContext<'_>) -> Vec<Entry> {
        let tokens = context.history.tokens();
        let ready = self.0.iter().filter(|(start, _)| tokens.ends_with(start));
        ready.map(|&(_, last)| Entry::ban(last)).collect()
    }
}
