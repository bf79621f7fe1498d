//! `wm eval quick`: the mark on the real model, against the same prompts without it and against
//! human text.

use anyhow::Result;
use greenmark::detect::{DetectOptions, Report};
use greenmark::document::{Circumstances, Detector};
use greenmark::engine::{BatchShape, Generation, Mark};
use serde::Serialize;

use super::{Task, Writer, passages, raw_prompts, seeded_key};
use crate::args::{EvalQuickArgs, MarkArgs};
use crate::commands::engine::loaded::Loaded;
use crate::commands::engine::prepare::join_mark;
use crate::exit::Exit;
use crate::output::{self, note};
use crate::resolve::{ExplicitMark, NamedKey};

/// Every marked text has at most this p, no other text has.
const LARGEST_P: f64 = 3.2e-5;
/// The mean z of marked texts is at least this at 200 tokens.
const SMALLEST_MEAN_Z: f64 = 8.0;
/// The mean |z| of unmarked texts is below this (0.8 under the null).
const LARGEST_MEAN_ABSOLUTE_Z: f64 = 1.5;

/// One text and what was found in it.
#[derive(Serialize)]
struct Row {
    group: &'static str,
    name: String,
    tokens: u64,
    scored: u64,
    z: f64,
    /// From the generated ids, before decoding and encoding again.
    z_of_ids: Option<f64>,
    predicted_z: Option<f64>,
    log10_p: f64,
    round_trip: Option<bool>,
    mean_entropy_nats: Option<f64>,
}

/// A group of texts in numbers.
#[derive(Serialize)]
struct Summary {
    group: &'static str,
    texts: usize,
    detected: usize,
    mean_z: f64,
    mean_absolute_z: f64,
    mean_z_of_ids: Option<f64>,
    mean_predicted_z: Option<f64>,
    changed_by_round_trip: Option<usize>,
}

#[derive(Serialize)]
struct Evaluation {
    rows: Vec<Row>,
    summaries: Vec<Summary>,
    passed: bool,
}

pub(super) fn run(args: &EvalQuickArgs) -> Result<Exit> {
    let loaded = Loaded::open(&args.source, BatchShape::Free)?;
    let key = NamedKey::new(seeded_key(args.seed), &format!("eval-{}", args.seed));
    let mark = join_mark(ExplicitMark::resolve(&MarkArgs::default())?, &key, &loaded.engine)?;
    let options = DetectOptions::default();
    let detector =
        Detector::new(loaded.engine.shared_tokenizer(), mark.profile().clone(), &key.key, options)?;

    let marked = generate(&loaded, Some(&mark), args)?;
    let plain = generate(&loaded, None, args)?;
    let mut rows = Vec::new();
    for (group, texts) in [("marked", &marked), ("unmarked", &plain)] {
        for (index, text) in texts.iter().enumerate() {
            let report = detector.text(&text.text, &Circumstances::default())?;
            let of_ids = detector.ids(&text.ids, String::new(), None)?;
            let predicted_z = if group == "marked" { mark.predicted_z(text) } else { None };
            rows.push(Row {
                z_of_ids: of_ids.z,
                predicted_z,
                round_trip: Some(text.round_trip),
                mean_entropy_nats: text.mean_entropy(),
                ..row(group, format!("prompt {}", index + 1), &report)
            });
        }
    }
    for passage in passages()? {
        let report = detector.text(&passage.text, &Circumstances::default())?;
        rows.push(row("human", passage.id, &report));
    }
    let summaries: Vec<Summary> =
        ["marked", "unmarked", "human"].iter().map(|group| summarise(group, &rows)).collect();
    let passed = passed(&summaries);
    let evaluation = Evaluation { rows, summaries, passed };
    if args.json {
        output::json(&evaluation)?;
    } else {
        print(&evaluation)?;
    }
    Ok(if passed { Exit::Success } else { Exit::Failure })
}

fn generate(loaded: &Loaded, mark: Option<&Mark>, args: &EvalQuickArgs) -> Result<Vec<Generation>> {
    let tasks = (0..)
        .zip(raw_prompts())
        .map(|(sample, prompt)| {
            let marker = mark.map(Mark::marker);
            Ok(Task { prompt: loaded.engine.tokenizer().prompt_ids(prompt)?, marker, sample })
        })
        .collect::<Result<Vec<Task>>>()?;
    Writer::new(loaded, args.tokens, args.seed)?
        .write(tasks, |written| note!("{written} texts written"))
}

fn row(group: &'static str, name: String, report: &Report) -> Row {
    Row {
        group,
        name,
        tokens: report.tokens,
        scored: report.scored,
        z: report.z.unwrap_or(0.0),
        z_of_ids: None,
        predicted_z: None,
        log10_p: report.log10_p,
        round_trip: None,
        mean_entropy_nats: None,
    }
}

fn summarise(group: &'static str, rows: &[Row]) -> Summary {
    let members: Vec<&Row> = rows.iter().filter(|row| row.group == group).collect();
    let mean = |value: &dyn Fn(&Row) -> f64| {
        members.iter().map(|row| value(row)).sum::<f64>() / members.len() as f64
    };
    let known = |value: &dyn Fn(&Row) -> Option<f64>| {
        members
            .iter()
            .all(|row| value(row).is_some())
            .then(|| mean(&|row| value(row).unwrap_or_default()))
    };
    Summary {
        group,
        texts: members.len(),
        detected: members.iter().filter(|row| row.log10_p <= LARGEST_P.log10()).count(),
        mean_z: mean(&|row| row.z),
        mean_absolute_z: mean(&|row| row.z.abs()),
        mean_z_of_ids: known(&|row| row.z_of_ids),
        mean_predicted_z: known(&|row| row.predicted_z),
        changed_by_round_trip: members
            .iter()
            .all(|row| row.round_trip.is_some())
            .then(|| members.iter().filter(|row| row.round_trip == Some(false)).count()),
    }
}

fn passed(summaries: &[Summary]) -> bool {
    summaries.iter().all(|group| {
        if group.group == "marked" {
            group.detected == group.texts && group.mean_z >= SMALLEST_MEAN_Z
        } else {
            group.detected == 0 && group.mean_absolute_z < LARGEST_MEAN_ABSOLUTE_Z
        }
    })
}

fn print(evaluation: &Evaluation) -> Result<()> {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.2}"));
    output::line(
        "group     text        tokens scored      z  z ids  predicted  log10 p  round trip",
    )?;
    for row in evaluation.rows.iter().filter(|row| row.group != "human") {
        output::line(&format!(
            "{:<9} {:<11} {:>6} {:>6} {:>6.2} {:>6} {:>10} {:>8.2}  {}",
            row.group,
            row.name,
            row.tokens,
            row.scored,
            row.z,
            number(row.z_of_ids),
            number(row.predicted_z),
            row.log10_p,
            match row.round_trip {
                Some(true) => "same",
                Some(false) => "changed",
                None => "-",
            }
        ))?;
    }
    output::line(
        "\ngroup     texts  detected at p <= 3.2e-5  mean z  mean |z|  mean z ids  mean predicted  changed",
    )?;
    for group in &evaluation.summaries {
        output::line(&format!(
            "{:<9} {:>5} {:>24} {:>7.2} {:>9.2} {:>11} {:>15} {:>8}",
            group.group,
            group.texts,
            group.detected,
            group.mean_z,
            group.mean_absolute_z,
            number(group.mean_z_of_ids),
            number(group.mean_predicted_z),
            group.changed_by_round_trip.map_or_else(|| "-".to_owned(), |n| n.to_string()),
        ))?;
    }
    output::line(if evaluation.passed { "\npassed" } else { "\nFAILED" })
}
