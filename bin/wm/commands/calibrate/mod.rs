//! `wm calibrate`: how often the operator's own unmarked texts fire.

mod chart;
mod render;
mod state;
mod texts;

use std::path::{Path, PathBuf};

use anyhow::Result;
use greenmark::Error;
use greenmark::detect::Alpha;
use greenmark::detect::calibration::{
    Block, Calibration, FiringPassage, Plan, Summary, fixed_keys,
};
use greenmark::document::{identify, never_marked};
use greenmark::prf::Key;
use greenmark::profile::{KeyIdentity, Profile, TokenizerIdentity};
use greenmark::text::Tokenizer;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::args::CalibrateArgs;
use crate::exit::Exit;
use crate::keep::Reads;
use crate::output;
use crate::plot;
use crate::resolve::{ExplicitMark, KeySource, resolve_key, resolve_profile, resolve_tokenizer};
use state::State;

/// Lengths that are tested when none are named, as far as passages fill them.
const LENGTHS: [u32; 3] = [25, 50, 100];

/// The most fixed keys: each meets every passage, and the intervals hold a thousand rates of each.
const MOST_KEYS: u32 = 1000;

/// The whole result.
#[derive(Serialize)]
struct Outcome<'a> {
    schema: u32,
    profile: &'a Profile,
    seed: u64,
    /// Pairs of a passage and a fresh key.
    pairs: u64,
    /// Equal for runs that must give equal results.
    fingerprint: &'a str,
    #[serde(flatten)]
    summary: &'a Summary,
    most_firing: Vec<Listed>,
    /// Inputs that could not be read as text, with the reason.
    left_out: &'a [String],
    version: &'static str,
}

/// A passage of the list.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    passage: FiringPassage,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

pub(crate) fn run(args: &CalibrateArgs) -> Result<Exit> {
    let plan = plan(args)?;
    if let Some(path) = &args.plot {
        Reads::default()
            .texts(&args.paths)
            .files(args.state.iter().chain([&PathBuf::from(&args.tokenizer.tokenizer)]))
            .mark(&args.mark, &args.key)
            .spare("plot", path)?;
    }
    let tokenizer = resolve_tokenizer(&args.tokenizer)?;
    let (profile, keys) = keys(args, identify(&tokenizer))?;
    let shortest = plan.lengths()[0] as usize;
    let texts = texts::read(args, &tokenizer, shortest, args.passage_tokens as usize)?;
    let never_marked = never_marked(&tokenizer, tokenizer.vocab_size())?;
    let calibration = Calibration::new(texts.corpus, plan, profile.clone(), never_marked, &keys);
    let blocks = blocks(&calibration, args.state.as_deref())?;
    let summary = calibration.summary(&blocks);
    let outcome = Outcome {
        schema: 1,
        profile: &profile,
        seed: args.seed,
        pairs: args.pairs,
        fingerprint: calibration.fingerprint(),
        most_firing: most_firing(args, &calibration, &blocks, &tokenizer),
        summary: &summary,
        left_out: &texts.left_out,
        version: env!("CARGO_PKG_VERSION"),
    };
    if let Some(path) = &args.plot {
        let (charts, columns) = chart::charts(&summary);
        std::fs::write(path, plot::svg(&charts, columns)?)
            .map_err(|source| Error::io("write", path, source))?;
    }
    if args.json {
        output::json(&outcome)?;
    } else {
        output::write(&render::text(&outcome))?;
    }
    Ok(Exit::Success)
}

fn plan(args: &CalibrateArgs) -> Result<Plan, Error> {
    let lengths = if args.lengths.is_empty() {
        let filled = LENGTHS.into_iter().filter(|length| *length < args.passage_tokens);
        filled.chain([args.passage_tokens]).collect()
    } else {
        args.lengths.clone()
    };
    let alphas = args.alphas.iter().map(|alpha| Alpha::new(*alpha)).collect::<Result<_, _>>()?;
    if let Some(length) = lengths.iter().find(|length| **length > args.passage_tokens) {
        let allowed = format!("at most --passage-tokens {}", args.passage_tokens);
        return Err(Error::parameter("lengths", length, allowed));
    }
    if args.passage_tokens == 0 {
        return Err(Error::parameter("passage_tokens", 0, format!("1 to {}", Plan::LONGEST)));
    }
    if args.pairs == 0 {
        let allowed = format!("1 to {}: without pairs nothing is measured", Plan::MOST_PAIRS);
        return Err(Error::parameter("pairs", 0, allowed));
    }
    Plan::new(args.pairs, args.seed, lengths, alphas)
}

/// The profile and the fixed keys: the deployed one, or some made from the seed.
fn keys(args: &CalibrateArgs, tokenizer: TokenizerIdentity) -> Result<(Profile, Vec<Key>), Error> {
    let Some(count) = args.keys else {
        let key = resolve_key(&args.key, KeySource::Existing)?;
        return Ok((resolve_profile(&args.mark, tokenizer, &key)?, vec![key.key]));
    };
    if count > MOST_KEYS {
        return Err(Error::parameter("keys", count, format!("0 to {MOST_KEYS}")));
    }
    let keys = fixed_keys(args.seed, count.max(1));
    let stand_in = KeyIdentity {
        id: format!("calibration-{}", args.seed),
        fingerprint: keys[0].fingerprint(),
    };
    let profile = ExplicitMark::resolve(&args.mark)?.profile_of_any_key(tokenizer, stand_in)?;
    Ok((profile, keys.into_iter().take(count as usize).collect()))
}

/// Every block: those that are stored, and the others computed and stored.
fn blocks(calibration: &Calibration, state: Option<&Path>) -> Result<Vec<Block>> {
    let (mut state, mut blocks) = match state {
        Some(path) => {
            let (state, blocks) = State::open(path, calibration)?;
            (Some(state), blocks)
        }
        None => (None, Vec::new()),
    };
    let bar = bar(Some(calibration.blocks()), "{wide_bar} {percent}% {eta} left");
    bar.inc(blocks.len() as u64);
    let done: std::collections::HashSet<u64> = blocks.iter().map(|block| block.index).collect();
    for index in (0..calibration.blocks()).filter(|index| !done.contains(index)) {
        let block = calibration.block(index);
        if let Some(state) = &mut state {
            state.append(&block)?;
        }
        blocks.push(block);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(blocks)
}

/// A bar on standard error, which shows itself on a terminal only.
fn bar(length: Option<u64>, template: &str) -> ProgressBar {
    let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

fn most_firing(
    args: &CalibrateArgs,
    calibration: &Calibration,
    blocks: &[Block],
    tokenizer: &Tokenizer,
) -> Vec<Listed> {
    let text = |passage: &FiringPassage| {
        let ids = &calibration.corpus().passages()[passage.passage].ids;
        args.show_text.then(|| tokenizer.decode_lossy(ids))
    };
    calibration
        .most_firing(blocks, args.top)
        .into_iter()
        .map(|passage| Listed { text: text(&passage), passage })
        .collect()
}
