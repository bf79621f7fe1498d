//! `wm eval curve`: what a mark costs and what it withstands, over delta and gamma.
//!
//! The same prompts and draws serve every setting, and every text has a key of its own, so that
//! the texts of a setting are independent of each other. Detection rates are at an exact false
//! positive rate: the value at the edge of a count's null is decided by a draw.

mod chart;
mod measure;
mod plan;
mod table;

use std::path::PathBuf;

use anyhow::Result;
use greenmark::Error;
use greenmark::engine::{BatchShape, Generation};
use greenmark::token::TokenId;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use self::measure::{Bench, Row};
use self::plan::{Plan, Setting};
use super::{BATCH, Task, Writer, passages, raw_prompts};
use crate::args::EvalCurveArgs;
use crate::commands::engine::generate::can_be_written;
use crate::commands::engine::loaded::Loaded;
use crate::exit::Exit;
use crate::keep::Reads;
use crate::output::{self, note};

/// Words of a human passage that make a prompt.
const OPENING_WORDS: usize = 20;

/// Everything that one run measures.
#[derive(Serialize)]
struct Curve {
    model: String,
    texts: usize,
    tokens: usize,
    seed: u64,
    confidence: f64,
    /// Texts written again with green-list at delta 0, and whether each equals the unmarked one.
    delta_zero: Agreement,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Agreement {
    texts: usize,
    equal: usize,
}

pub(super) fn run(args: &EvalCurveArgs) -> Result<Exit> {
    let plan = Plan::new(args)?;
    if let Some(path) = &args.plot {
        Reads::default().files([&PathBuf::from(&args.source.weights.model)]).spare("plot", path)?;
        can_be_written(path)?;
    }
    let loaded = Loaded::open(&args.source, BatchShape::Free)?;
    let bench = Bench::new(&loaded, &plan, human_tokens(&loaded)?)?;
    let press = Press::new(&loaded, &plan)?;
    note!("{} texts of {} tokens", press.bar.length().unwrap_or(0), plan.tokens);

    let unmarked = press.write(None, plan.texts)?;
    let mut rows = Vec::new();
    for &setting in &plan.settings {
        let row = if setting.marks() {
            bench.row(setting, &press.write(Some(setting), plan.texts)?)?
        } else {
            bench.row(setting, &unmarked)?
        };
        rows.push(row);
    }
    let again = press.write(Some(Setting::DELTA_ZERO), plan.checked())?;
    press.bar.finish_and_clear();
    let equal = again.iter().zip(&unmarked).filter(|(left, right)| left.ids == right.ids).count();
    let curve = Curve {
        model: loaded.engine.model().info().weights.clone(),
        texts: plan.texts,
        tokens: plan.tokens,
        seed: plan.seed,
        confidence: measure::CONFIDENCE,
        delta_zero: Agreement { texts: again.len(), equal },
        rows,
    };
    if let Some(path) = &args.plot {
        std::fs::write(path, chart::svg(&curve)?)
            .map_err(|source| Error::io("write", path, source))?;
    }
    if args.json {
        output::json(&curve)?;
    } else {
        table::print(&curve)?;
    }
    // Without a mark the draw must be the chain's own; anything else is a fault of this program.
    Ok(if equal == again.len() { Exit::Success } else { Exit::Failure })
}

/// The tokens of the human passages, from which substitutions are drawn.
fn human_tokens(loaded: &Loaded) -> Result<Vec<TokenId>> {
    let mut pool = Vec::new();
    for passage in passages()? {
        pool.extend(loaded.engine.tokenizer().encode_ids(&passage.text)?);
    }
    Ok(pool)
}

/// The prompts: those of the proof, then the openings of the human passages, then again.
fn prompts(loaded: &Loaded, count: usize) -> Result<Vec<Vec<TokenId>>> {
    let openings = passages()?;
    let openings = openings.iter().map(|passage| {
        passage.text.split_whitespace().take(OPENING_WORDS).collect::<Vec<_>>().join(" ")
    });
    let known = raw_prompts().map(str::to_owned).chain(openings).collect::<Vec<_>>();
    let wanted = known.iter().cycle().take(count);
    Ok(wanted
        .map(|prompt| loaded.engine.tokenizer().prompt_ids(prompt))
        .collect::<Result<_, _>>()?)
}

/// Writes the texts of one setting after the other and says how far it is.
struct Press<'a> {
    loaded: &'a Loaded,
    writer: Writer<'a>,
    prompts: Vec<Vec<TokenId>>,
    seed: u64,
    bar: ProgressBar,
}

impl<'a> Press<'a> {
    fn new(loaded: &'a Loaded, plan: &Plan) -> Result<Self> {
        let marked = plan.settings.iter().filter(|setting| setting.marks()).count();
        let texts = plan.texts * (1 + marked) + plan.checked();
        let bar = ProgressBar::new(texts as u64);
        let template = "{wide_bar} {pos} of {len} texts, {eta} left";
        bar.set_style(ProgressStyle::with_template(template)?);
        Ok(Self {
            loaded,
            writer: Writer::new(loaded, plan.tokens, plan.seed)?,
            prompts: prompts(loaded, plan.texts)?,
            seed: plan.seed,
            bar,
        })
    }

    /// The first `count` texts of a setting, or without a mark.
    fn write(&self, setting: Option<Setting>, count: usize) -> Result<Vec<Generation>> {
        let mut tasks = Vec::with_capacity(count);
        for (index, prompt) in (0..).zip(&self.prompts[..count]) {
            let marker = match setting {
                Some(setting) => {
                    Some(setting.mark(&self.loaded.engine, self.seed, index)?.marker())
                }
                None => None,
            };
            tasks.push(Task { prompt: prompt.clone(), marker, sample: index });
        }
        let begun = self.bar.position();
        let texts =
            self.writer.write(tasks, |written| self.bar.set_position(begun + written as u64))?;
        if self.bar.is_hidden() {
            let name = setting.map_or_else(|| "no mark".to_owned(), |setting| setting.to_string());
            let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
            note!("{name}: {count} texts written, {done} of {all}");
        }
        Ok(texts)
    }
}
