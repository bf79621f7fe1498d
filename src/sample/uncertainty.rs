//! How uncertain a step was, and what a green-list mark can do with it.
//!
//! The same numbers come from generation, where the chain drew the token
//! ([`Chain::step_with_uncertainty`]), and from replaying a text, where the token is given
//! ([`Chain::replay`]). Both look at the candidates after every member but the watermark.

use crate::detect::entropy::{
    Chances, GreedyStep, GreenListBias, StepDistribution, TokenUncertainty,
};
use crate::error::{Error, Result};
use crate::sample::candidates::Candidates;
use crate::sample::chain::{Before, Chain, Decoding, Outcome, Scratch};
use crate::sample::draw::Draw;
use crate::sample::history::History;
use crate::sample::math;
use crate::scheme::{Action, Step};
use crate::token::{TokenId, TokenSet};

/// The part of the candidates before the mark that chances depend on.
enum Snapshot {
    Sampled(Box<StepDistribution>),
    Greedy {
        spike_entropy: f64,
        /// Ids and logits that the mark may touch, less than delta below the best.
        within_reach: Vec<(TokenId, f32)>,
    },
}

impl Snapshot {
    fn take(
        candidates: &mut Candidates,
        never_marked: &TokenSet,
        decoding: Decoding,
        bias: GreenListBias,
    ) -> Self {
        let (ids, logits, masses, normalizer) = candidates.weighted();
        let total = normalizer.total as f64;
        let probabilities = ids
            .iter()
            .zip(masses)
            .map(|(&id, &mass)| (mass as f64 / total, !never_marked.contains(id)));
        let distribution = StepDistribution::new(bias, probabilities);
        match decoding {
            Decoding::Sampled => Self::Sampled(Box::new(distribution)),
            Decoding::Greedy => {
                let within = |logit: f32| f64::from(normalizer.max - logit) < bias.delta;
                Self::Greedy {
                    spike_entropy: distribution.spike_entropy(),
                    within_reach: ids
                        .iter()
                        .copied()
                        .zip(logits.iter().copied())
                        .filter(|&(id, logit)| within(logit) && !never_marked.contains(id))
                        .collect(),
                }
            }
        }
    }

    /// The chances of `token`, which had this probability.
    fn chances(&self, bias: GreenListBias, token: TokenId, probability: f64) -> Chances {
        match self {
            Self::Sampled(distribution) => distribution.chances(probability),
            Self::Greedy { spike_entropy, within_reach } => {
                let own = within_reach.iter().find(|(id, _)| *id == token);
                // The larger logit is better, and of equals the smaller id.
                let better = own.map(|&(own_id, own_logit)| {
                    within_reach
                        .iter()
                        .filter(|&&(id, logit)| {
                            logit > own_logit || (logit == own_logit && id < own_id)
                        })
                        .count()
                });
                let step = GreedyStep { bias, within_reach: within_reach.len(), better };
                Chances {
                    spike_entropy: *spike_entropy,
                    probability,
                    step_green: step.green_chance(),
                    token_green: step.token_green(),
                }
            }
        }
    }
}

impl Chain {
    /// [`Chain::step`], and the uncertainty of the token it drew. `bias` is the mark's; without one
    /// only the entropy is known.
    ///
    /// # Errors
    /// As [`Chain::step`].
    pub fn step_with_uncertainty(
        &self,
        logits: &[f32],
        history: &History,
        step: Step,
        draw: Draw,
        bias: Option<GreenListBias>,
        scratch: &mut Scratch,
    ) -> Result<(Outcome, TokenUncertainty)> {
        let biased = matches!(step.action, Action::Bias { .. });
        let mut snapshot = None;
        let mut observe = |candidates: &mut Candidates, _: &Before| {
            snapshot = bias.map(|bias| {
                (bias, Snapshot::take(candidates, &self.never_marked, self.decoding(), bias))
            });
        };
        let candidates = &mut scratch.candidates;
        let outcome =
            self.run(logits, history, step, draw, candidates, None, Some(&mut observe))?;
        let chances = snapshot.map(|(bias, snapshot)| {
            let probability = math::exp(-outcome.surprisal);
            let chances = snapshot.chances(bias, outcome.token, probability);
            // A step that the mark left out shows green by chance alone.
            let unmarked = Chances { step_green: bias.gamma, token_green: bias.gamma, ..chances };
            if biased { chances } else { unmarked }
        });
        Ok((outcome, TokenUncertainty { entropy: outcome.entropy, chances }))
    }

    /// The uncertainty of a `token` that stands in a text, when `logits` are what the model said
    /// before it; then appends it to the history.
    ///
    /// # Errors
    /// As [`Chain::step`], for the members before the watermark; [`Error::TokenOutOfRange`] for a
    /// token outside the vocabulary.
    pub fn replay(
        &self,
        logits: &[f32],
        history: &mut History,
        draw: Draw,
        token: TokenId,
        bias: Option<GreenListBias>,
        scratch: &mut Scratch,
    ) -> Result<TokenUncertainty> {
        let candidates = &mut scratch.candidates;
        self.load(candidates, logits, draw.step)?;
        let before = self.process(candidates, history, draw, None)?;
        let logit = candidates.logit(token);
        let surprisal = -before.normalizer.ln_probability(logit);
        let probability = math::exp(-surprisal);
        let chances = bias.map(|bias| {
            Snapshot::take(candidates, &self.never_marked, self.decoding(), bias).chances(
                bias,
                token,
                probability,
            )
        });
        if surprisal.is_finite() {
            self.follow(history, token, surprisal);
        } else {
            // Not a token that the chain can draw, and no surprisal to adapt to.
            history.push(token);
        }
        Ok(TokenUncertainty { entropy: before.entropy, chances })
    }

    /// Takes the logits of a step, which have to be as many as the chain was built for.
    pub(super) fn load(
        &self,
        candidates: &mut Candidates,
        logits: &[f32],
        step: u64,
    ) -> Result<()> {
        if logits.len() != self.vocab {
            return Err(Error::parameter(
                "number of logits",
                logits.len(),
                format!("{}, the size the chain was built for", self.vocab),
            ));
        }
        candidates.load(logits, step)?;
        if candidates.live() == 0 {
            return Err(Error::NoTokenAllowed { member: "the model", step });
        }
        Ok(())
    }
}
