//! The chain: logits and history in, one token out.
//!
//! A [`Chain`] is built once per request from checked options and is then immutable; what changes
//! from step to step is in the [`History`] and in the scheme. A step is a function of logits,
//! history, scheme step and draw, and of nothing else: no thread, batch or clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::prf::{ChaCha8Stream, DRAW_TAG, draw_seed};
use crate::sample::candidates::{Candidates, Normalizer};
use crate::sample::draw::{Bits, Draw, Noise, argmax, keyed_bits, race};
use crate::sample::history::{History, PenaltyScope};
use crate::sample::kernel::Form;
use crate::sample::math::{MASS_ONE, MAX_CANDIDATES};
use crate::sample::options::{GREEDY_BELOW, MirostatMode, MirostatOptions, SamplingOptions};
use crate::sample::order::Order;
use crate::sample::processors::{
    Active, Kind, MEMBERS, Member, Setup, StepContext, member, mirostat, watermark,
};
use crate::scheme::{Action, Step};
use crate::token::{TokenId, TokenSet, check_ids};

/// How a chain ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoding {
    /// The best token after bans, penalties and bias.
    Greedy,
    /// A draw.
    Sampled,
}

/// A validated chain.
#[derive(Debug)]
pub struct Chain {
    pub(super) vocab: usize,
    pub(super) never_marked: Arc<TokenSet>,
    decoding: Decoding,
    mirostat: Option<MirostatOptions>,
    repetition_scope: PenaltyScope,
    /// In order; one that was asked for with a value that changes nothing has no processor, but
    /// a trace shows it.
    members: Vec<(&'static str, Option<Active>)>,
    effective: Effective,
}

/// What is in force, after every default: part of each result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effective {
    /// Every parameter with its value; what has no neutral value is absent when off.
    pub parameters: SamplingOptions,
    /// The members that act, in their order, the watermark last.
    pub order: Vec<String>,
    /// The truncation members that were asked for and that Mirostat or greedy decoding replaces.
    pub replaced: Vec<String>,
}

impl Effective {
    /// As it is in a run with or without a mark: without one, no watermark acts.
    #[must_use]
    pub fn of_run(mut self, marked: bool) -> Self {
        if !marked {
            self.order.retain(|name| name != watermark::NAME);
        }
        self
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The token chosen.
    pub token: TokenId,
    /// Its log-probability, in nats, under the final distribution (after the mark).
    pub logprob: f32,
    /// Its log-probability, in nats, under the model's own distribution (the logits as given).
    pub raw_logprob: f32,
    /// Number of tokens that survived every member.
    pub survivors: u32,
    /// Entropy, in nats, of the distribution before the mark, after every other member.
    pub entropy: f64,
    /// The largest probability of that distribution.
    pub max_probability: f64,
    /// The token's surprisal, in nats, under that distribution.
    pub surprisal: f64,
    /// The probability under that distribution of the tokens the mark biased; `None` when it
    /// biased none by rule (no bias in the step, or its gate closed).
    pub green_mass: Option<f64>,
}

/// The candidates after a member.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// The member's name.
    pub processor: &'static str,
    /// The ids in play, ascending.
    pub kept: Vec<TokenId>,
    /// Their logits.
    pub logits: Vec<f32>,
}

/// A step with everything that happened on the way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trace {
    /// One entry per acting member, in order.
    pub stages: Vec<Stage>,
    /// The final distribution; under greedy decoding all of it on the token chosen.
    pub probabilities: BTreeMap<TokenId, f64>,
    /// The result.
    pub outcome: Outcome,
}

/// Buffers that are reused from step to step; any chain can use any of them.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(super) candidates: Candidates,
}

impl Scratch {
    /// Empty buffers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Chain {
    /// Checks `options` over the built-in values and builds the chain for a model with `vocab`
    /// logits. `end_ids` end a text (`min_tokens` bans them); `never_marked` are the ids that no
    /// scheme may touch.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a value outside its range or an order that leaves out a member
    /// that was asked for; [`Error::TokenOutOfRange`] for an id outside the vocabulary.
    pub fn new(
        options: SamplingOptions,
        vocab: usize,
        end_ids: &[TokenId],
        never_marked: Arc<TokenSet>,
    ) -> Result<Self> {
        if vocab == 0 || vocab > MAX_CANDIDATES {
            return Err(Error::parameter(
                "vocabulary size",
                vocab,
                format!("1 to {MAX_CANDIDATES}"),
            ));
        }
        check_ids(end_ids, vocab)?;
        let asked = asked_for(&options);
        let mut parameters = options.over(SamplingOptions::built_in());
        let order = parameters.order.clone().unwrap_or_default();
        let scope = |own: PenaltyScope| parameters.penalty_last_n.map_or(own, PenaltyScope::Last);
        let at_least = parameters.min_tokens_to_keep.unwrap_or(1);
        if at_least == 0 {
            return Err(Error::parameter("min_tokens_to_keep", 0, "1 or above"));
        }
        let setup = Setup {
            options: &parameters,
            vocab,
            end_ids,
            repetition_scope: scope(order.repetition_scope()),
            output_scope: scope(order.output_scope()),
            at_least,
        };
        let decoding = match parameters.temperature {
            Some(temperature) if (0.0..GREEDY_BELOW).contains(&temperature) => Decoding::Greedy,
            _ => Decoding::Sampled,
        };
        let mirostat = parameters.mirostat.filter(|given| given.mode != MirostatMode::Off);
        let (members, replaced) = build(&setup, &order, &asked, decoding, mirostat.is_some())?;
        let repetition_scope = setup.repetition_scope;
        if let PenaltyScope::Last(length) = repetition_scope {
            parameters.penalty_last_n = Some(length);
        }
        let acting = members.iter().filter(|(_, active)| active.is_some());
        let acting = acting.map(|&(name, _)| name.to_owned());
        let effective = Effective {
            order: acting.chain([watermark::NAME.to_owned()]).collect(),
            parameters,
            replaced,
        };
        let mirostat = mirostat.filter(|_| decoding == Decoding::Sampled);
        Ok(Self { vocab, never_marked, decoding, mirostat, repetition_scope, members, effective })
    }

    pub(super) fn mirostat(&self) -> Option<MirostatOptions> {
        self.mirostat
    }

    /// What the repetition penalty counts.
    pub(super) fn repetition_scope(&self) -> PenaltyScope {
        self.repetition_scope
    }

    /// The members that act, in order.
    pub(super) fn acting(&self) -> impl Iterator<Item = (&'static str, Kind)> + '_ {
        let acting = self.members.iter().filter(|(_, active)| active.is_some());
        acting.filter_map(|&(name, _)| Some((name, member(name)?.kind)))
    }

    /// What each acting member is to the kernels in one step.
    pub(super) fn forms<'a>(
        &'a self,
        context: &'a StepContext<'_>,
    ) -> impl Iterator<Item = (&'static str, Form<'a>)> + 'a {
        let acting =
            self.members.iter().filter_map(|(name, active)| Some((*name, active.as_ref()?)));
        acting.map(move |(name, processor)| (name, processor.form(context)))
    }

    /// What is in force.
    #[must_use]
    pub fn effective(&self) -> &Effective {
        &self.effective
    }

    /// Whether the chain draws. A scheme that replaces the draw's noise needs one that does.
    #[must_use]
    pub fn decoding(&self) -> Decoding {
        self.decoding
    }

    /// Chooses the next token from the model's `logits` (one per id, untouched).
    ///
    /// The history is not changed; [`Chain::accept`] records the outcome.
    ///
    /// # Errors
    /// [`Error::NonFiniteLogits`] for NaN or positive infinity; [`Error::NoTokenAllowed`] naming
    /// the member that removed the last token; [`Error::Parameter`] for a scheme that needs a
    /// draw under greedy decoding, a bias that is not finite, or a wrong number of logits.
    pub fn step(
        &self,
        logits: &[f32],
        history: &History,
        step: Step,
        draw: Draw,
        scratch: &mut Scratch,
    ) -> Result<Outcome> {
        self.run(logits, history, step, draw, &mut scratch.candidates, None, None)
    }

    /// [`Chain::step`] with the candidates after every member and the final distribution.
    ///
    /// # Errors
    /// As [`Chain::step`].
    pub fn trace(
        &self,
        logits: &[f32],
        history: &History,
        step: Step,
        draw: Draw,
        scratch: &mut Scratch,
    ) -> Result<Trace> {
        let candidates = &mut scratch.candidates;
        let mut stages = Vec::new();
        let outcome = self.run(logits, history, step, draw, candidates, Some(&mut stages), None)?;
        let probabilities = match self.decoding {
            Decoding::Greedy => BTreeMap::from([(outcome.token, 1.0)]),
            Decoding::Sampled => {
                let normalizer = candidates.normalizer();
                live(candidates)
                    .map(|(id, logit)| {
                        (id, crate::sample::math::exp(normalizer.ln_probability(logit)))
                    })
                    .collect()
            }
        };
        Ok(Trace { stages, probabilities, outcome })
    }

    /// Appends the outcome's token to the history and updates the state of adaptive members.
    pub fn accept(&self, history: &mut History, outcome: &Outcome) {
        self.follow(history, outcome.token, outcome.surprisal);
    }

    pub(super) fn follow(&self, history: &mut History, token: TokenId, surprisal: f64) {
        history.push(token);
        if let Some(options) = self.mirostat {
            let mu = mirostat::next_mu(options, history.mirostat_mu, surprisal);
            history.mirostat_mu = Some(mu);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "two of them are what a caller may watch")]
    pub(super) fn run(
        &self,
        logits: &[f32],
        history: &History,
        step: Step,
        draw: Draw,
        candidates: &mut Candidates,
        mut stages: Option<&mut Vec<Stage>>,
        observe: Option<Observe<'_>>,
    ) -> Result<Outcome> {
        self.check_step(&step)?;
        self.load(candidates, logits, draw.step)?;
        let raw = candidates.normalizer();

        let before = self.process(candidates, history, draw, stages.as_deref_mut())?;
        if let Some(observe) = observe {
            observe(candidates, &before);
        }
        let Before { survivors, normalizer: before, entropy, max_probability } = before;
        let marks = !matches!(step.action, Action::Keep);
        let marked =
            watermark::apply(step, candidates, &self.never_marked, entropy, max_probability);
        if marks {
            record(&mut stages, watermark::NAME, candidates);
        }

        let (token, logit) = match self.decoding {
            Decoding::Greedy => argmax(candidates),
            Decoding::Sampled => {
                let seed = draw_seed(DRAW_TAG, draw.seed, draw.sample, draw.step);
                let own = Bits::new(ChaCha8Stream::new(&seed), candidates);
                let keyed = marked
                    .race
                    .map(|uniforms| (keyed_bits(uniforms, candidates), &*self.never_marked));
                race(candidates, Noise { own, keyed })
            }
        };
        let unmarked =
            if marked.green_mass.is_some() { candidates.before_add(token) } else { logit };
        Ok(Outcome {
            token,
            logprob: narrow(candidates.normalizer(), logit),
            raw_logprob: narrow(raw, logits[token as usize]),
            // At most 2^20.
            survivors: u32::try_from(survivors).unwrap_or(u32::MAX),
            entropy,
            max_probability,
            surprisal: -before.ln_probability(unmarked),
            green_mass: marked.green_mass,
        })
    }

    /// Whether this chain can carry out a scheme's step.
    pub(super) fn check_step(&self, step: &Step) -> Result<()> {
        if self.decoding == Decoding::Greedy && matches!(step.action, Action::Race { .. }) {
            return Err(Error::parameter(
                "temperature",
                self.effective.parameters.temperature.unwrap_or_default(),
                format!("{GREEDY_BELOW} or above with a scheme that marks through the draw"),
            ));
        }
        if let Action::Bias { delta, .. } = step.action
            && !delta.is_finite()
        {
            return Err(Error::parameter("delta", delta, "a finite number"));
        }
        Ok(())
    }

    /// Runs every member but the watermark over loaded candidates.
    pub(super) fn process(
        &self,
        candidates: &mut Candidates,
        history: &History,
        draw: Draw,
        mut stages: Option<&mut Vec<Stage>>,
    ) -> Result<Before> {
        let context = StepContext { history, draw };
        for (name, processor) in &self.members {
            if let Some(processor) = processor {
                processor.apply(candidates, &context);
            }
            if candidates.live() == 0 {
                return Err(Error::NoTokenAllowed { member: name, step: draw.step });
            }
            record(&mut stages, name, candidates);
        }
        let survivors = candidates.live();
        let normalizer = candidates.normalizer();
        Ok(Before {
            survivors,
            normalizer,
            entropy: candidates.entropy(),
            max_probability: MASS_ONE as f64 / normalizer.total as f64,
        })
    }
}

/// The distribution before the mark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) survivors: usize,
    pub(super) normalizer: Normalizer,
    pub(super) entropy: f64,
    max_probability: f64,
}

/// Looks at the candidates before the mark.
pub(super) type Observe<'a> = &'a mut dyn FnMut(&mut Candidates, &Before);

/// The members in order, and the names of those that were asked for but are replaced.
type Built = (Vec<(&'static str, Option<Active>)>, Vec<String>);

/// The members whose own option was given, whatever its value.
fn asked_for(options: &SamplingOptions) -> Vec<&'static str> {
    // Options are plain data, which always has a JSON form.
    let given = serde_json::to_value(options).unwrap_or_default();
    let asked = |member: &&&Member| {
        member.options.first().is_some_and(|option| given.get(option).is_some())
    };
    MEMBERS.iter().filter(asked).map(|member| member.name).collect()
}

fn build(
    setup: &Setup<'_>,
    order: &Order,
    asked: &[&'static str],
    decoding: Decoding,
    has_mirostat: bool,
) -> Result<Built> {
    // Every member is built, so that every value is checked, also of those that will not act.
    let mut built = BTreeMap::new();
    for member in MEMBERS {
        if let Some(processor) = (member.build)(setup)? {
            built.insert(member.name, processor);
        }
    }
    let mut replaced = Vec::new();
    for member in MEMBERS.iter().filter(|member| member.kind == Kind::Truncation) {
        let by_mirostat = has_mirostat && member.name != mirostat::MEMBER.name;
        if (decoding == Decoding::Greedy || by_mirostat) && built.remove(member.name).is_some() {
            replaced.push(member.name.to_owned());
        }
    }
    let mut members = Vec::new();
    for &name in order.members() {
        let acting = built.remove(name);
        // Greedy decoding has no place for some, and Mirostat none for other truncations.
        let kind = MEMBERS.iter().find(|member| member.name == name).map(|member| member.kind);
        let skipped = decoding == Decoding::Greedy && kind != Some(Kind::Edit)
            || has_mirostat && kind == Some(Kind::Truncation) && name != mirostat::MEMBER.name;
        if acting.is_some() || asked.contains(&name) && !skipped {
            members.push((name, acting));
        }
    }
    if let Some(name) = built.keys().next() {
        return Err(Error::parameter("order", order, format!("an order that has {name}")));
    }
    Ok((members, replaced))
}

#[expect(clippy::cast_possible_truncation, reason = "log-probabilities are reported in f32")]
pub(super) fn narrow(normalizer: Normalizer, logit: f32) -> f32 {
    normalizer.ln_probability(logit) as f32
}

fn live(candidates: &Candidates) -> impl Iterator<Item = (TokenId, f32)> + '_ {
    candidates.entries().filter(|&(_, logit)| logit > f32::NEG_INFINITY)
}

fn record(stages: &mut Option<&mut Vec<Stage>>, processor: &'static str, candidates: &Candidates) {
    if let Some(stages) = stages {
        let (kept, logits) = live(candidates).unzip();
        stages.push(Stage { processor, kept, logits });
    }
}
