//! A scheme's state within one request: where the context comes from and which contexts were
//! already used.

use std::collections::HashSet;
use std::sync::Arc;

use crate::profile::{Context, PromptContext, Repeats};
use crate::scheme::{Scheme, Step};
use crate::token::TokenId;

/// Gives the step of each generated token of one request.
#[derive(Clone, Debug)]
pub struct Marker {
    scheme: Arc<dyn Scheme>,
    rule: Context,
    used: HashSet<Box<[TokenId]>>,
}

impl Marker {
    /// A marker at the start of a request.
    #[must_use]
    pub fn new(scheme: Arc<dyn Scheme>, rule: Context) -> Self {
        Self { scheme, rule, used: HashSet::new() }
    }

    /// The scheme.
    #[must_use]
    pub fn scheme(&self) -> &dyn Scheme {
        &*self.scheme
    }

    /// The step of the token that follows `prompt` and `generated`; call it once per token.
    ///
    /// With fewer previous ids than the context is wide there is no mark.
    pub fn step(&mut self, prompt: &[TokenId], generated: &[TokenId]) -> Step {
        let width = self.rule.width.get();
        let from_prompt = match self.rule.prompt {
            PromptContext::Tail => width.saturating_sub(generated.len()),
            PromptContext::None if generated.len() < width => return Step::KEEP,
            PromptContext::None => 0,
        };
        if from_prompt > prompt.len() {
            return Step::KEEP;
        }
        let mut context = Vec::with_capacity(width);
        context.extend_from_slice(&prompt[prompt.len() - from_prompt..]);
        context.extend_from_slice(&generated[generated.len() - (width - from_prompt)..]);
        let step = self.scheme.step(&context);
        match self.rule.repeats {
            Repeats::Mark => step,
            Repeats::Skip if self.used.insert(context.into_boxed_slice()) => step,
            Repeats::Skip => Step::KEEP,
        }
    }
}
