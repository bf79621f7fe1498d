//! Top-k: keeps exactly the k best tokens.
//!
//! Source: Fan et al. 2018, arXiv:1805.04833.
//! Parameters: `top_k`; 0, -1 and anything at or above the number of candidates are off.
//! Edges: ties at the k-th place go to the smaller id. transformers and vLLM keep all ties; here
//! k means k, so that k = 1 is greedy.

use super::{Active, Kind, Member, Processor, Setup, StepContext, truncation};
use crate::error::{Error, Result};
use crate::sample::candidates::Candidates;
use crate::sample::kernel::{Form, StageKind};

pub(super) const MEMBER: Member =
    Member { name: "top_k", options: &["top_k"], kind: Kind::Truncation, build };

#[derive(Debug)]
struct TopK(usize);

fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let given = setup.options.top_k.unwrap_or(0);
    if given < -1 {
        return Err(Error::parameter("top_k", given, "a number of tokens; 0 and -1 are off"));
    }
    // A number beyond the address space is beyond the vocabulary too.
    let k = usize::try_from(given.max(0)).unwrap_or(usize::MAX);
    Ok((k > 0 && k < setup.vocab).then(|| Box::new(TopK(k.max(setup.at_least))) as _))
}

impl Processor for TopK {
    fn apply(&self, candidates: &mut Candidates, _context: &StepContext<'_>) {
        candidates.keep_count(self.0);
    }

    fn form(&self, _context: &StepContext<'_>) -> Form<'_> {
        truncation(StageKind::TopK, self.0, 0.0)
    }
}
