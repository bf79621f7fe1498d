//! `wm eval entropy`: the plain test beside the four that weigh tokens, on prose and on code.
//!
//! Every text has a key of its own, and every test the same true rate of false accusations: the
//! value at the edge is rejected in the share of cases that fills the rate exactly. Weights come
//! from the model reading the text after its prompt, as `wm detect --entropy --prompt-file` does.
//! The control is text written without a mark, tested under keys that did not write it.

use anyhow::{Context, Result};
use greenmark::Error;
use greenmark::detect::Outcome;
use greenmark::detect::entropy::{GreenListBias, Rule, TokenUncertainty, WeightedTest};
use greenmark::engine::{BatchShape, Forcing, Generation, Mark};
use greenmark::stats::{LogProbability, Tails, clopper_pearson};
use greenmark::token::TokenId;
use serde::{Deserialize, Serialize};

use super::{Task, Writer, raw_prompts, seeded_key};
use crate::args::{EvalEntropyArgs, MarkArgs};
use crate::commands::engine::loaded::Loaded;
use crate::commands::engine::prepare::join_mark;
use crate::exit::Exit;
use crate::output::{self, note};
use crate::resolve::{ExplicitMark, NamedKey};

const PYTHON: &str = include_str!("../../../../../data/prompts/python.jsonl");

/// The true rate of false accusations at which tests are compared.
const RATE: f64 = 1e-3;
/// Of every interval.
const CONFIDENCE: f64 = 0.95;
/// Half the width of a 95% normal interval, in standard errors.
const NORMAL_95: f64 = 1.96;
/// Lengths at which texts are cut beside the whole.
const LENGTHS: [usize; 3] = [25, 50, 100];

#[derive(Deserialize)]
struct Prompt {
    prompt: String,
}

/// One text and what the model said of it.
struct Text {
    ids: Vec<TokenId>,
    uncertainties: Vec<Option<TokenUncertainty>>,
}

/// How one test did on the first tokens of the texts of a kind.
#[derive(Serialize)]
struct Row {
    kind: &'static str,
    tokens: usize,
    test: &'static str,
    /// Share of marked texts that are found, with its interval.
    detected: f64,
    lower: f64,
    upper: f64,
    /// The likelihood ratio's share minus this test's, in the same texts, and half the width of its
    /// interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    ours_above: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ours_above_half_width: Option<f64>,
    /// Share of (unmarked text, key) pairs that are accused.
    accused: f64,
    pairs: usize,
}

#[derive(Serialize)]
struct Evaluation {
    texts: usize,
    gamma: f64,
    delta: f64,
    false_positive_rate: f64,
    rows: Vec<Row>,
}

pub(super) fn run(args: &EvalEntropyArgs) -> Result<Exit> {
    if !(2..=100_000).contains(&args.texts) {
        return Err(Error::parameter("texts", args.texts, "2 to 100000").into());
    }
    if args.tokens == 0 {
        return Err(Error::parameter("tokens", 0, "at least 1").into());
    }
    if !(1..=1000).contains(&args.keys) {
        return Err(Error::parameter("keys", args.keys, "1 to 1000").into());
    }
    let flags =
        MarkArgs { gamma: Some(args.gamma), delta: Some(args.delta), ..MarkArgs::default() };
    let loaded = Loaded::open(&args.source, BatchShape::Free)?;
    let python: Vec<String> = PYTHON
        .lines()
        .map(|line| serde_json::from_str::<Prompt>(line).map(|prompt| prompt.prompt))
        .collect::<Result<_, _>>()
        .context("data/prompts/python.jsonl")?;
    let kinds =
        [("prose", raw_prompts().map(str::to_owned).collect::<Vec<_>>()), ("python", python)];
    let mut rows = Vec::new();
    for (kind, prompts) in &kinds {
        let bench = Bench { args, flags: &flags, loaded: &loaded, kind, prompts };
        rows.extend(bench.rows()?);
    }
    let evaluation = Evaluation {
        texts: args.texts,
        gamma: args.gamma,
        delta: args.delta,
        false_positive_rate: RATE,
        rows,
    };
    if args.json {
        output::json(&evaluation)?;
    } else {
        print(&evaluation)?;
    }
    Ok(Exit::Success)
}

/// The texts of one kind.
struct Bench<'a> {
    args: &'a EvalEntropyArgs,
    flags: &'a MarkArgs,
    loaded: &'a Loaded,
    kind: &'static str,
    prompts: &'a [String],
}

impl Bench<'_> {
    /// The mark under the key with this number.
    fn mark(&self, key: u64) -> Result<Mark> {
        let seed = self.args.seed.wrapping_mul(1 << 20).wrapping_add(key);
        let key = NamedKey::new(seeded_key(seed), "eval-entropy");
        join_mark(ExplicitMark::resolve(self.flags)?, &key, &self.loaded.engine)
    }

    fn prompt(&self, index: usize) -> Result<Vec<TokenId>> {
        Ok(self.loaded.engine.prompt_ids(&self.prompts[index % self.prompts.len()])?)
    }

    fn rows(&self) -> Result<Vec<Row>> {
        let marked = self.texts(true)?;
        let unmarked = self.texts(false)?;
        let bias = self.mark(0)?.bias().context("green-list has a bias")?;
        let alpha = LogProbability::from_ln(RATE.ln());
        let shorter = LENGTHS.into_iter().filter(|&length| length < self.args.tokens);
        let mut rows = Vec::new();
        for length in shorter.chain([self.args.tokens]) {
            let mut found = Vec::with_capacity(marked.len());
            for (index, text) in (0..).zip(&marked) {
                found.push(rejections(&self.mark(index)?, bias, text, length, alpha));
            }
            let mut accused = Vec::new();
            for (index, text) in (0..).zip(&unmarked) {
                for key in 0..self.args.keys {
                    // Behind the keys that wrote texts.
                    let key = (1 << 19) + index * self.args.keys + key;
                    accused.push(rejections(&self.mark(key)?, bias, text, length, alpha));
                }
            }
            for (place, test) in TESTS.iter().enumerate() {
                rows.push(self.row(length, test, place, &found, &accused));
            }
        }
        Ok(rows)
    }

    fn row(
        &self,
        tokens: usize,
        test: &'static str,
        place: usize,
        found: &[[f64; 5]],
        accused: &[[f64; 5]],
    ) -> Row {
        let mean = |values: &[[f64; 5]]| {
            values.iter().map(|value| value[place]).sum::<f64>() / values.len() as f64
        };
        let detected = mean(found);
        let texts = found.len() as f64;
        // Shares of the edge make the sum fractional; the interval is that of the whole count.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let count = (detected * texts).round() as u64;
        let (lower, upper) = clopper_pearson(count, found.len() as u64, CONFIDENCE);
        let ours = TESTS.len() - 1;
        let differences: Vec<f64> = found.iter().map(|f| f[ours] - f[place]).collect();
        let above = differences.iter().sum::<f64>() / texts;
        let variance =
            differences.iter().map(|d| (d - above) * (d - above)).sum::<f64>() / (texts - 1.0);
        Row {
            kind: self.kind,
            tokens,
            test,
            detected,
            lower,
            upper,
            ours_above: (place != ours).then_some(above),
            ours_above_half_width: (place != ours).then_some(NORMAL_95 * (variance / texts).sqrt()),
            accused: mean(accused),
            pairs: accused.len(),
        }
    }

    /// Writes the texts and reads each back after its prompt.
    fn texts(&self, marked: bool) -> Result<Vec<Text>> {
        let writer = Writer::new(self.loaded, self.args.tokens, self.args.seed)?;
        let mut tasks = Vec::new();
        for index in 0..self.args.texts {
            let number = u64::try_from(index)?;
            tasks.push(Task {
                prompt: self.prompt(index)?,
                marker: if marked { Some(self.mark(number)?.marker()) } else { None },
                sample: u32::try_from(index)?,
            });
        }
        let group = if marked { "marked" } else { "unmarked" };
        let texts = writer.write(tasks, |done| note!("{} {group}: {done} texts", self.kind))?;
        let bias = self.mark(0)?.bias();
        let forcing = Forcing {
            model: self.loaded.engine.model(),
            chain: &writer.chain,
            bias,
            seed: self.args.seed,
        };
        let read = |(index, text): (usize, Generation)| -> Result<Text> {
            let uncertainties = forcing.uncertainties(&self.prompt(index)?, &text.ids, |_| ())?;
            Ok(Text { ids: text.ids, uncertainties })
        };
        let texts = texts.into_iter().enumerate().map(read).collect();
        note!("{} {group}: read back", self.kind);
        texts
    }
}

/// The tests in the order of a row's places; ours last.
const TESTS: [&str; 5] = ["plain", "sweet", "ewd", "step_average", "likelihood_ratio"];

/// The chance that each test of [`TESTS`] rejects the first `length` tokens of a text at `alpha`.
fn rejections(
    mark: &Mark,
    bias: GreenListBias,
    text: &Text,
    length: usize,
    alpha: LogProbability,
) -> [f64; 5] {
    let length = length.min(text.ids.len());
    let evidence = mark.evidence(&text.ids[..length]);
    let (mut green, mut tokens) = (Vec::new(), Vec::new());
    for (outcome, uncertainty) in evidence.outcomes.iter().zip(&text.uncertainties) {
        if let Outcome::Scored(score) = outcome {
            green.push(*score > 0.5);
            tokens.push(*uncertainty);
        }
    }
    let plain = Tails::binomial(evidence.scored, evidence.green(), bias.gamma);
    let weighted = |rule| match WeightedTest::new(rule, bias, &green, &tokens) {
        Some(test) if test.scored > 0 => Tails::between(test.p, test.p_above(bias)),
        _ => Tails::certain(),
    };
    let [sweet, ewd, average, ratio] = Rule::ALL.map(weighted);
    [plain, sweet, ewd, average, ratio].map(|tails| tails.rejection(alpha))
}

fn print(evaluation: &Evaluation) -> Result<()> {
    output::line(&format!(
        "{} texts of each kind, gamma {}, delta {}; detected at a true false positive rate of {}",
        evaluation.texts, evaluation.gamma, evaluation.delta, evaluation.false_positive_rate
    ))?;
    output::line(
        "kind    tokens  test              detected  95% interval      ours above it    unmarked accused",
    )?;
    for row in &evaluation.rows {
        let above = match (row.ours_above, row.ours_above_half_width) {
            (Some(above), Some(half)) => format!("{above:+.3} +- {half:.3}"),
            _ => String::new(),
        };
        output::line(&format!(
            "{:<7} {:>6}  {:<16}  {:>8.3}  {:.3} to {:.3}  {above:>15}  {:>17.5}",
            row.kind, row.tokens, row.test, row.detected, row.lower, row.upper, row.accused
        ))?;
    }
    Ok(())
}
