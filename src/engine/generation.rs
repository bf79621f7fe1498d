//! The result of a request: the text, its ids and what the model thought at each step.

use std::time::Duration;

use crate::detect::Evidence;
use crate::detect::Outcome as Counted;
use crate::detect::entropy::{Chances, TokenUncertainty};
use crate::sample::Decoding;
use crate::sample::Outcome;
use crate::text::Tokenizer;
use crate::token::TokenId;

/// Why a text ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model gave this end-of-sequence id, which is neither in the text nor in the ids.
    EndToken(TokenId),
    /// The text reached this stop string, which is not in the text.
    StopString(String),
    /// The limit of new tokens was reached.
    Length,
}

impl Finish {
    /// The field's name for it: `stop` or `length`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::EndToken(_) | Self::StopString(_) => "stop",
            Self::Length => "length",
        }
    }

    /// The stop string that ended the text.
    #[must_use]
    pub fn stop_string(&self) -> Option<&str> {
        match self {
            Self::StopString(stop) => Some(stop),
            Self::EndToken(_) | Self::Length => None,
        }
    }
}

/// One generated token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepRecord {
    /// Its id.
    pub token: TokenId,
    /// Byte offset in the text of its first byte.
    pub offset: usize,
    /// Shannon entropy of the distribution before the mark, in nats.
    pub entropy: f64,
    /// Natural logarithm of the probability it was drawn with.
    pub logprob: f32,
    /// Natural logarithm of its probability under the model's own distribution, the logits as given.
    pub raw_logprob: f32,
    /// Probability of a green token before the bias; `None` where no bias was applied.
    pub green_mass: Option<f64>,
    /// What the mark could do at the step, in expectation over random green lists; `None` unless
    /// the request measures it ([`Observe::chances`](super::Observe::chances)).
    pub chances: Option<Chances>,
}

impl StepRecord {
    /// The model's uncertainty before the token.
    #[must_use]
    pub fn uncertainty(&self) -> TokenUncertainty {
        TokenUncertainty { entropy: self.entropy, chances: self.chances }
    }
}

/// A token that the model could have continued with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alternative {
    /// Its id.
    pub token: TokenId,
    /// Natural logarithm of its probability under the model's own distribution.
    pub raw_logprob: f32,
}

/// The `count` most likely tokens of a step, most likely first, ties to the smaller id.
pub(super) fn most_likely(logits: &[f32], count: usize, drawn: &Outcome) -> Vec<Alternative> {
    let mut best: Vec<(TokenId, f32)> = (0..).zip(logits.iter().copied()).collect();
    let order = |a: &(TokenId, f32), b: &(TokenId, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if count < best.len() {
        best.select_nth_unstable_by(count, order);
        best.truncate(count);
    }
    best.sort_unstable_by(order);
    // The chain has normalised these logits for the token drawn; the difference carries over.
    let at_drawn = logits.get(drawn.token as usize).copied().unwrap_or_default();
    let normalised = |logit: f32| (logit - at_drawn) + drawn.raw_logprob;
    best.into_iter()
        .map(|(token, logit)| Alternative { token, raw_logprob: normalised(logit) })
        .collect()
}

/// Where the time went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// Reading the prompt and drawing the first token.
    pub prompt: Duration,
    /// Every further token, the end token included.
    pub decode: Duration,
    /// Number of tokens that [`Timing::decode`] is the time of.
    pub decoded: usize,
}

impl Timing {
    /// Tokens a second after the first; `None` when there was no further one.
    #[must_use]
    pub fn tokens_per_second(&self) -> Option<f64> {
        let seconds = self.decode.as_secs_f64();
        (self.decoded > 0 && seconds > 0.0).then(|| self.decoded as f64 / seconds)
    }
}

/// A finished text.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// Number of prompt ids.
    pub prompt_tokens: usize,
    /// The continuation alone.
    pub text: String,
    /// Its ids, without the end token and without tokens that lie wholly behind a stop string.
    pub ids: Vec<TokenId>,
    /// Number of tokens drawn, those cut away by a stop string included.
    pub drawn: usize,
    /// One entry per id.
    pub steps: Vec<StepRecord>,
    /// The most likely tokens at each step, one entry per id, when
    /// [`Observe::alternatives`](super::Observe::alternatives) asked for them; else empty.
    pub alternatives: Vec<Vec<Alternative>>,
    /// Why it ended.
    pub finish: Finish,
    /// Whether tokens were drawn or the best one was taken.
    pub decoding: Decoding,
    /// Whether encoding the text gives the ids back, as a detector will see them.
    pub round_trip: bool,
    /// Where the time went.
    pub timing: Timing,
}

impl Generation {
    #[expect(clippy::too_many_arguments, reason = "the parts of a slot, each taken whole")]
    pub(super) fn new(
        prompt_tokens: usize,
        text: String,
        mut steps: Vec<StepRecord>,
        mut alternatives: Vec<Vec<Alternative>>,
        finish: Finish,
        decoding: Decoding,
        timing: Timing,
        tokenizer: &Tokenizer,
    ) -> Self {
        let drawn = steps.len();
        if matches!(finish, Finish::StopString(_)) {
            steps.truncate(steps.partition_point(|step| step.offset < text.len()));
        }
        alternatives.truncate(steps.len());
        let ids: Vec<TokenId> = steps.iter().map(|step| step.token).collect();
        let round_trip = tokenizer.encode_ids(&text).is_ok_and(|encoded| encoded == ids);
        Self {
            prompt_tokens,
            text,
            ids,
            drawn,
            steps,
            alternatives,
            finish,
            decoding,
            round_trip,
            timing,
        }
    }

    /// Mean entropy of the steps, in nats; `None` without tokens.
    #[must_use]
    pub fn mean_entropy(&self) -> Option<f64> {
        let count = self.steps.len();
        (count > 0).then(|| self.steps.iter().map(|step| step.entropy).sum::<f64>() / count as f64)
    }

    /// The z that the model's own distributions predict for a green-list mark with this `gamma`
    /// and `delta`, when the tokens counted are those of `evidence` (gathered from
    /// [`Generation::ids`]).
    ///
    /// A biased step is green with probability m / (m + (1 - m) e^-delta), m being the green mass
    /// before the bias; a step without bias with probability gamma. A detector that reads the text
    /// counts a few other tokens where decoding and encoding do not give the ids back.
    ///
    /// `None` when nothing is counted, and under greedy decoding, where no probability decides.
    #[must_use]
    pub fn predicted_z(&self, evidence: &Evidence, gamma: f64, delta: f64) -> Option<f64> {
        if self.decoding == Decoding::Greedy {
            return None;
        }
        let red_factor = (-delta).exp();
        let (mut count, mut green) = (0.0, 0.0);
        for (step, outcome) in self.steps.iter().zip(&evidence.outcomes) {
            if matches!(outcome, Counted::Skipped(_)) {
                continue;
            }
            count += 1.0;
            green += match step.green_mass {
                // Without green survivors the step cannot be green; 0 / 0 would be reached at a
                // delta that underflows the red factor.
                Some(mass) if mass > 0.0 => mass / (mass + (1.0 - mass) * red_factor),
                Some(_) => 0.0,
                None => gamma,
            };
        }
        (count > 0.0).then(|| (green - gamma * count) / (count * gamma * (1.0 - gamma)).sqrt())
    }
}
