//! `wm inspect chain`: what every member of the sampling chain does to given logits.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use greenmark::Error;
use greenmark::profile::{Profile, TokenizerIdentity};
use greenmark::sample::{Chain, Draw, Effective, History, Outcome, Scratch, Stage};
use greenmark::scheme::{Marker, Step, build};
use greenmark::token::{TokenId, TokenSet, check_ids};
use serde::Serialize;
use serde_json::Value;

use crate::args::ChainArgs;
use crate::exit::Exit;
use crate::output;
use crate::resolve::{
    KeySource, parse_ids, read_text, resolve_key, resolve_profile, resolve_sampling,
};

#[derive(Serialize)]
struct ChainReport {
    effective: Effective,
    stages: Vec<Stage>,
    probabilities: BTreeMap<TokenId, f64>,
    outcome: Outcome,
}

pub(crate) fn run(args: &ChainArgs) -> Result<Exit> {
    let logits = match args.logits.strip_prefix('@') {
        // A real vocabulary does not fit a command line.
        Some(path) => parse_logits(&read_text(Path::new(path))?)?,
        None => parse_logits(&args.logits)?,
    };
    let prompt = parse_ids("prompt_ids", &args.prompt_ids)?;
    let generated = parse_ids("history", &args.history)?;
    let end_ids = parse_ids("end_ids", &args.end_ids)?;
    check_ids(&prompt, logits.len())?;
    check_ids(&generated, logits.len())?;
    let never_marked = TokenSet::from_ids(logits.len(), end_ids.iter().copied())?;
    let options = resolve_sampling(&args.sampling)?;
    let chain = Chain::new(options, logits.len(), &end_ids, Arc::new(never_marked))?;
    let mut history = History::new(&prompt);
    for &id in &generated {
        history.push(id);
    }
    let draw = Draw { seed: args.seed, sample: 0, step: generated.len() as u64 };
    let step = mark(args, &prompt, &generated)?;
    let trace =
        chain.trace(&logits, &history, step, draw, &mut Scratch::new()).map_err(own_logits)?;
    let report = ChainReport {
        effective: chain.effective().clone().of_run(args.watermark),
        stages: trace.stages,
        probabilities: trace.probabilities,
        outcome: trace.outcome,
    };
    if args.json {
        output::json(&report)?;
    } else {
        print(&report)?;
    }
    Ok(Exit::Success)
}

/// Broken logits are a model's fault in generation; here they are what the caller typed.
fn own_logits(error: Error) -> Error {
    match error {
        Error::NonFiniteLogits { nan, infinite, total, .. } => Error::parameter(
            "logits",
            format!("{nan} of {total} NaN and {infinite} +infinity"),
            "finite numbers, and -inf or null for a ban",
        ),
        other => other,
    }
}

fn mark(args: &ChainArgs, prompt: &[TokenId], generated: &[TokenId]) -> Result<Step> {
    if !args.watermark {
        let mark = &args.mark;
        let given = mark.profile.is_some()
            || mark.scheme.is_some()
            || mark.gamma.is_some()
            || mark.delta.is_some()
            || mark.context_width.is_some()
            || mark.context_prompt.is_some()
            || mark.repeats.is_some()
            || args.key.key_file.is_some()
            || args.key.key_id.is_some();
        if given {
            return Err(Error::parameter(
                "watermark",
                "not asked for",
                "--watermark beside flags of the mark",
            )
            .into());
        }
        return Ok(Step::KEEP);
    }
    let key = resolve_key(&args.key, KeySource::Existing)?;
    // Logits alone have no tokenizer; the lists do not depend on it.
    let tokenizer = match &args.mark.profile {
        Some(path) => Profile::read(path)?.tokenizer().clone(),
        None => TokenizerIdentity { fingerprint: String::new(), never_marked: String::new() },
    };
    let profile = resolve_profile(&args.mark, tokenizer, &key)?;
    let scheme = build(&profile, &key.key);
    let mut marker = Marker::new(scheme.into(), *profile.context());
    // The history uses up contexts as generation did.
    for length in 0..generated.len() {
        marker.step(prompt, &generated[..length]);
    }
    Ok(marker.step(prompt, generated))
}

/// A JSON list of numbers, in which `null` and `"-inf"` are a ban, and `"inf"` and `"nan"` what
/// they say, so that the refusal of broken logits can be seen too.
fn parse_logits(text: &str) -> Result<Vec<f32>, Error> {
    let wrong = |found: String| {
        Error::parameter("logits", found, "a JSON list of numbers, for example '[2,1,0.5]'")
    };
    let values: Vec<Value> =
        serde_json::from_str(text).map_err(|error| wrong(format!("not a list ({error})")))?;
    if values.is_empty() {
        return Err(wrong("an empty list".to_owned()));
    }
    values
        .iter()
        .map(|value| match value {
            Value::Null => Ok(f32::NEG_INFINITY),
            Value::String(name) => match name.to_lowercase().as_str() {
                "-inf" | "-infinity" => Ok(f32::NEG_INFINITY),
                "inf" | "+inf" | "infinity" => Ok(f32::INFINITY),
                "nan" => Ok(f32::NAN),
                _ => Err(wrong(value.to_string())),
            },
            // Logits are f32 in every engine.
            #[expect(clippy::cast_possible_truncation, reason = "logits are f32")]
            Value::Number(number) => {
                number.as_f64().map(|value| value as f32).ok_or_else(|| wrong(value.to_string()))
            }
            _ => Err(wrong(value.to_string())),
        })
        .collect()
}

fn print(report: &ChainReport) -> Result<()> {
    output::line(&format!("order  {}", report.effective.order.join("; ")))?;
    for stage in &report.stages {
        let shown: Vec<String> = stage
            .kept
            .iter()
            .zip(&stage.logits)
            .take(12)
            .map(|(id, logit)| format!("{id}: {logit:.4}"))
            .collect();
        let more = if stage.kept.len() > shown.len() { " …" } else { "" };
        output::line(&format!(
            "{:<18} keeps {:>6}  {}{more}",
            stage.processor,
            stage.kept.len(),
            shown.join("  ")
        ))?;
    }
    let mut best: Vec<_> = report.probabilities.iter().collect();
    best.sort_by(|a, b| b.1.total_cmp(a.1).then(a.0.cmp(b.0)));
    for (id, probability) in best.into_iter().take(12) {
        output::line(&format!("p({id}) = {probability:.6}"))?;
    }
    output::line(&format!(
        "drawn  {} of {} survivors, log-probability {:.6}, entropy {:.6} nats",
        report.outcome.token,
        report.outcome.survivors,
        report.outcome.logprob,
        report.outcome.entropy
    ))
}
