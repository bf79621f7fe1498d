//! Rows of a batch, packed for the kernels, and their answers.

use std::sync::Arc;

use super::form::Form;
use super::row::{self, Edit, Entry, Path, Row, RowResult, Stage, StageKind};
use crate::error::{Error, Result};
use crate::prf::{ChaCha8Stream, DRAW_TAG, draw_seed};
use crate::sample::candidates::Normalizer;
use crate::sample::chain::{Chain, Decoding, Outcome, narrow};
use crate::sample::draw::Draw;
use crate::sample::history::{History, PenaltyScope};
use crate::sample::math::{self, MASS_ONE};
use crate::sample::processors::{Kind, StepContext};
use crate::scheme::{Action, Gate, Membership, Scope, Step, Uniforms};
use crate::token::TokenSet;

/// What the kernels keep of a request with penalties: counts of the tokens it has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryShape {
    window: Option<usize>,
    vocab: usize,
}

impl HistoryShape {
    /// Only the last so many tokens count; `None`: all.
    #[must_use]
    pub fn window(&self) -> Option<usize> {
        self.window
    }

    /// The shape for a request of at most so many tokens, prompt included: a window that holds
    /// them all needs no more room, whatever was asked for.
    #[must_use]
    pub fn for_tokens(mut self, tokens: usize) -> Self {
        self.window = self.window.map(|window| window.min(tokens.max(1)));
        self
    }

    /// Number of ids that are counted.
    #[must_use]
    pub fn vocab(&self) -> usize {
        self.vocab
    }

    /// Number of u32 words on the device, all zero at first.
    #[must_use]
    pub fn words(&self) -> usize {
        const HEAD: usize = 4;
        HEAD + self.vocab.div_ceil(32) + 2 * self.vocab + self.window.unwrap_or(0)
    }
}

impl Chain {
    /// Whether the kernels can run this chain.
    ///
    /// # Errors
    /// [`Error::Unsupported`] naming the member or the order that they do not have.
    pub fn check_kernels(&self) -> Result<()> {
        let unsupported = |found: String| Error::Unsupported {
            what: "sampling on the device:",
            found,
            supported: "every other member, with edits before temperature and truncations; the \
                        sampler on the CPU (`--sampler cpu`) runs every chain"
                .to_owned(),
        };
        if self.mirostat().is_some() {
            return Err(unsupported("mirostat".to_owned()));
        }
        let mut behind: Option<&str> = None;
        for (member, kind) in self.acting() {
            match (kind, behind) {
                (Kind::Edit, Some(before)) => {
                    return Err(unsupported(format!("order with {member} behind {before}")));
                }
                (Kind::Edit, None) => {}
                _ => behind = Some(member),
            }
        }
        Ok(())
    }

    /// What the kernels keep of a request; `None` when no penalty needs it.
    #[must_use]
    pub fn history_shape(&self) -> Option<HistoryShape> {
        let penalty = |(name, _)| matches!(name, "repetition" | "frequency" | "presence");
        if !self.acting().any(penalty) {
            return None;
        }
        // The two scopes have one window or none.
        let window = match self.repetition_scope() {
            PenaltyScope::Last(length) => Some(length),
            PenaltyScope::PromptAndOutput | PenaltyScope::Output => None,
        };
        // A window without tokens penalises none.
        (window != Some(0)).then_some(HistoryShape { window, vocab: self.vocab })
    }
}

/// The rows of one launch.
#[derive(Debug, Default)]
pub struct Batch {
    vocab: usize,
    rows: Vec<Row>,
    entries: Vec<Entry>,
    bits: Vec<u32>,
    /// Sets that several rows share, and where their words stand.
    shared: Vec<(Arc<TokenSet>, u32)>,
    /// Of each row, the step and the members behind its edits.
    origins: Vec<(u64, Vec<&'static str>)>,
}

impl Batch {
    /// A batch without rows over a vocabulary.
    #[must_use]
    pub fn new(vocab: usize) -> Self {
        Self { vocab, ..Self::default() }
    }

    /// Adds the row of one request. `history_address` is where the device keeps what
    /// [`Chain::history_shape`] describes, 0 when it describes nothing. No two rows of a batch may
    /// name the same: each adds its token there.
    ///
    /// # Errors
    /// Those of [`Chain::step`] that do not depend on logits, and of [`Chain::check_kernels`];
    /// [`Error::Parameter`] for an address of 0 where a penalty needs a history.
    pub fn push(
        &mut self,
        chain: &Chain,
        history: &History,
        step: &Step,
        draw: Draw,
        history_address: u64,
    ) -> Result<()> {
        chain.check_kernels()?;
        chain.check_step(step)?;
        if chain.vocab != self.vocab {
            return Err(Error::parameter(
                "number of logits",
                self.vocab,
                format!("{}, the size the chain was built for", chain.vocab),
            ));
        }
        let needs_history = chain.history_shape().is_some();
        if needs_history && history_address == 0 {
            return Err(Error::parameter(
                "history",
                0,
                "the address of a history: penalties count",
            ));
        }
        let mut packed = Row {
            history: if needs_history { history_address } else { 0 },
            draw_key: stream(draw).key(),
            temperature: 1.0,
            decoding: match chain.decoding() {
                Decoding::Greedy => row::GREEDY,
                Decoding::Sampled => row::SAMPLED,
            },
            members: row::NONE,
            never_marked: row::NONE,
            ..Row::default()
        };
        let names = self.pack_members(&mut packed, chain, &StepContext { history, draw })?;
        self.pack_step(&mut packed, step, &chain.never_marked);
        packed.path = path_of(&packed) as u32;
        packed.flags = match packed.stage[..packed.stages as usize].first().map(|s| s.kind) {
            Some(kind) if kind == StageKind::TopNSigma as u32 => row::NEEDS_SIGMA,
            Some(kind)
                if [StageKind::TopP, StageKind::MinP, StageKind::Epsilon, StageKind::Eta]
                    .iter()
                    .any(|known| *known as u32 == kind) =>
            {
                row::NEEDS_TOTAL
            }
            _ => 0,
        };
        self.rows.push(packed);
        self.origins.push((draw.step, names));
        Ok(())
    }

    /// Sends a row through another path than its own, for tests of the paths.
    pub fn force_dense(&mut self, index: usize) {
        if let Some(row) = self.rows.get_mut(index) {
            row.path = Path::Dense as u32;
        }
    }

    /// Number of logits of a row.
    #[must_use]
    pub fn vocab(&self) -> usize {
        self.vocab
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The changes of single tokens that the rows refer to.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The words of the bit sets that the rows refer to.
    #[must_use]
    pub fn bits(&self) -> &[u32] {
        &self.bits
    }

    /// The outcome of row `index`, the chain's own.
    ///
    /// # Errors
    /// [`Error::NonFiniteLogits`] and [`Error::NoTokenAllowed`], as [`Chain::step`].
    pub fn outcome(&self, index: usize, result: &RowResult) -> Result<Outcome> {
        let Some((step, names)) = self.origins.get(index) else {
            return Err(Error::parameter("row", index, format!("below {}", self.rows.len())));
        };
        if result.status == row::NON_FINITE {
            return Err(Error::NonFiniteLogits {
                step: *step,
                nan: result.nan as usize,
                infinite: result.infinite as usize,
                total: self.vocab,
            });
        }
        if result.status != row::OK {
            let member = match result.culprit.checked_sub(1) {
                None => "the model",
                Some(edit) => names.get(edit as usize).copied().unwrap_or("an edit"),
            };
            return Err(Error::NoTokenAllowed { member, step: *step });
        }
        let raw = Normalizer { max: result.raw_max, total: result.raw_total };
        let before = Normalizer { max: result.unmarked_max, total: result.unmarked_total };
        let after = Normalizer { max: result.max, total: result.total };
        let total = result.unmarked_total as f64;
        Ok(Outcome {
            token: result.token,
            logprob: narrow(after, result.logit),
            raw_logprob: narrow(raw, result.raw_logit),
            survivors: result.survivors,
            entropy: math::entropy(result.unmarked_total, result.unmarked_surprisal),
            max_probability: MASS_ONE as f64 / total,
            surprisal: -before.ln_probability(result.unmarked_logit),
            green_mass: (result.marked != 0).then(|| result.green as f64 / total),
        })
    }

    /// Packs the members; the names are those of the edits.
    fn pack_members(
        &mut self,
        packed: &mut Row,
        chain: &Chain,
        context: &StepContext<'_>,
    ) -> Result<Vec<&'static str>> {
        let mut names = Vec::new();
        for (name, form) in chain.forms(context) {
            let mut edit = Edit::default();
            match form {
                Form::Absent => {
                    return Err(Error::Unsupported {
                        what: "sampling on the device:",
                        found: name.to_owned(),
                        supported: "the sampler on the CPU (`--sampler cpu`)".to_owned(),
                    });
                }
                Form::Temperature(temperature)
                    if packed.stages == 0 && packed.temperature == 1.0 =>
                {
                    packed.temperature = temperature;
                    continue;
                }
                Form::Temperature(temperature) => {
                    let value = f64::from(temperature);
                    push_stage(packed, StageKind::Temperature, 0, value);
                    continue;
                }
                Form::Truncation { kind, count, value } => {
                    push_stage(packed, kind, count, value);
                    continue;
                }
                Form::Entries(mut entries) => {
                    // A token that is banned twice is banned once; no member adds twice.
                    entries.sort_unstable_by_key(|entry| entry.id);
                    entries.dedup_by_key(|entry| entry.id);
                    edit.kind = row::EDIT_LIST;
                    edit.first = small(self.entries.len());
                    edit.count = small(entries.len());
                    self.entries.append(&mut entries);
                }
                Form::Allow(set) => {
                    edit.kind = row::EDIT_ALLOW;
                    edit.first = self.append_bits(set);
                }
                Form::Repetition(value) if packed.history != 0 => {
                    (edit.kind, edit.value) = (row::EDIT_REPETITION, value);
                }
                Form::Frequency(value) if packed.history != 0 => {
                    (edit.kind, edit.value) = (row::EDIT_FREQUENCY, value);
                }
                Form::Presence(value) if packed.history != 0 => {
                    (edit.kind, edit.value) = (row::EDIT_PRESENCE, value);
                }
                // A window without tokens.
                Form::Repetition(_) | Form::Frequency(_) | Form::Presence(_) | Form::Idle => {
                    continue;
                }
            }
            // There are fewer members that edit than places.
            packed.edit[packed.edits as usize] = edit;
            packed.edits += 1;
            names.push(name);
        }
        Ok(names)
    }

    fn pack_step(&mut self, packed: &mut Row, step: &Step, never_marked: &Arc<TokenSet>) {
        (packed.gate, packed.gate_value) = match step.gate {
            Gate::Always => (row::ALWAYS, 0.0),
            Gate::EntropyAbove(value) => (row::ENTROPY_ABOVE, value),
            Gate::MaxProbAtMost(value) => (row::MAX_PROBABILITY_AT_MOST, value),
        };
        match &step.action {
            Action::Keep => packed.action = row::KEEP,
            Action::Bias { membership, delta, scope } => {
                packed.action = row::BIAS;
                packed.delta = *delta;
                packed.scope = match scope {
                    Scope::Survivors => 0,
                    Scope::TopByScore(count) => small(*count),
                };
                match membership {
                    Membership::ChaCha8 { stream, threshold } => {
                        packed.membership = row::MEMBERS_CHACHA8;
                        packed.mark_key = stream.key();
                        packed.threshold = *threshold;
                    }
                    Membership::Set(set) => {
                        packed.membership = row::MEMBERS_BITS;
                        packed.members = self.shared_bits(set);
                    }
                }
                // No token of none is green.
                if *scope == Scope::TopByScore(0) {
                    packed.membership = row::MEMBERS_CHACHA8;
                    packed.threshold = 0;
                }
            }
            Action::Race { uniforms: Uniforms::ChaCha8 { stream } } => {
                packed.action = row::RACE;
                packed.mark_key = stream.key();
            }
        }
        if packed.action != row::KEEP && !never_marked.is_empty() {
            packed.never_marked = self.shared_bits(never_marked);
        }
    }

    fn shared_bits(&mut self, set: &Arc<TokenSet>) -> u32 {
        if let Some((_, offset)) = self.shared.iter().find(|(known, _)| Arc::ptr_eq(known, set)) {
            return *offset;
        }
        let offset = self.append_bits(set);
        self.shared.push((Arc::clone(set), offset));
        offset
    }

    /// Appends a set, as many words as the vocabulary has.
    fn append_bits(&mut self, set: &TokenSet) -> u32 {
        let offset = self.bits.len();
        self.bits.extend(set.words32());
        self.bits.resize(offset + self.vocab.div_ceil(32), 0);
        small(offset)
    }
}

/// The key stream of the draw's noise.
fn stream(draw: Draw) -> ChaCha8Stream {
    ChaCha8Stream::new(&draw_seed(DRAW_TAG, draw.seed, draw.sample, draw.step))
}

fn push_stage(packed: &mut Row, kind: StageKind, count: usize, value: f64) {
    // There are fewer truncations than places.
    packed.stage[packed.stages as usize] = Stage { kind: kind as u32, count: small(count), value };
    packed.stages += 1;
}

/// Numbers of tokens, which saturate: a vocabulary has at most 2^20.
fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn path_of(packed: &Row) -> Path {
    let simple = packed.gate == row::ALWAYS && packed.scope == 0;
    match packed.stages {
        0 if simple || packed.action == row::KEEP => Path::Open,
        0 => Path::Dense,
        _ => Path::List,
    }
}
