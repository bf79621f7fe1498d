//! `wm generate`.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::Result;
use greenmark::Error;
use greenmark::detect::entropy::Detectability;
use greenmark::document::{Sidecar, TokenEntropy, sidecar_path};
use greenmark::engine::{
    BatchShape, Generation, Mark, Observe, Request, Session, TextEngine, random_seed,
};
use greenmark::profile::Profile;
use greenmark::sample::{Decoding, Effective};
use greenmark::scheme::Greedy;
use greenmark::text::{ChatMessage, GenerationPrompt, PromptTemplate};
use greenmark::token::TokenId;
use serde::Serialize;
use serde_json::{Value, json};

use super::loaded::{Loaded, drawn_on, place};
use super::prepare::resolve_mark;
use crate::args::GenerateArgs;
use crate::exit::Exit;
use crate::keep::Reads;
use crate::output::{self, note};
use crate::resolve::{read_text, resolve_sampling};

/// Texts of one run: each holds a cache of its own.
const MAX_SAMPLES: u32 = 1024;

/// The whole result of a run.
#[derive(Serialize)]
struct RunReport<'a> {
    model: String,
    prompt_tokens: usize,
    effective: &'a Effective,
    seed: u64,
    watermark: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<&'a Profile>,
    /// Where and how the model computed.
    kernels: &'a str,
    /// Where tokens were drawn, when that is another place.
    #[serde(skip_serializing_if = "Option::is_none")]
    drawn_on: Option<&'static str>,
    load_seconds: f64,
    samples: Vec<SampleReport<'a>>,
}

#[derive(Serialize)]
struct SampleReport<'a> {
    sample: usize,
    text: &'a str,
    ids: &'a [TokenId],
    finish_reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<&'a str>,
    round_trip: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_entropy_nats: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted_z: Option<f64>,
    /// How well the text can be told, for a detector that knows no prompt: `plain` is what
    /// `wm detect` delivers, `likelihood_ratio` what that test of `wm detect --entropy` does.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<Detectability>,
    prompt_seconds: f64,
    decode_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_per_second: Option<f64>,
}

pub(super) fn run(args: &GenerateArgs) -> Result<Exit> {
    let options = resolve_sampling(&args.sampling)?;
    if !(1..=MAX_SAMPLES).contains(&args.n) {
        return Err(Error::parameter("n", args.n, format!("1 to {MAX_SAMPLES}")).into());
    }
    if args.n > 1 && args.out.is_some() {
        return Err(Error::parameter("out", "with several texts", "one text: --n 1").into());
    }
    if let Some(path) = &args.out {
        let reads = Reads::default()
            .files(args.prompt_file.iter().chain(&args.source.tokenizer))
            .files([&PathBuf::from(&args.source.weights.model)])
            .mark(&args.mark, &args.key);
        reads.spare("out", path)?;
        reads.spare("out", &sidecar_path(path))?;
    }
    let prompt = prompt_text(args)?;
    // All samples step together.
    let batch = BatchShape::fixed_for(usize::try_from(args.n)?);
    let loaded = Loaded::open(&args.source, batch)?;
    let engine = &loaded.engine;
    let ids = prompt_ids(args, &prompt, engine)?;
    let min_tokens = options.min_tokens;
    let chain = engine.chain(options)?;
    let max_tokens = engine.max_tokens(ids.len(), args.max_tokens)?;
    if let Some(min_tokens) = min_tokens.filter(|&least| least > max_tokens) {
        let allowed = format!("at most --max-tokens, which is {max_tokens}");
        return Err(Error::parameter("min_tokens", min_tokens, allowed).into());
    }
    let seed = args.seed.map_or_else(random_seed, Ok)?;
    if let Some(path) = &args.out {
        can_be_written(path)?;
        can_be_written(&sidecar_path(path))?;
    }
    // The key comes last: it may be made now, and no wrong flag is to leave one behind.
    let mark =
        if args.no_watermark { None } else { Some(resolve_mark(&args.mark, &args.key, engine)?) };
    let effective = chain.effective().clone().of_run(mark.is_some());
    if !effective.replaced.is_empty() {
        let by = if chain.decoding() == Decoding::Greedy { "greedy decoding" } else { "mirostat" };
        note!("{by} takes the place of {}", effective.replaced.join(", "));
    }
    if args.verbose {
        note!("seed {seed}, {} prompt tokens, at most {max_tokens} new", ids.len());
        note!("order {}", effective.order.join("; "));
        note!("{}", serde_json::to_string(&effective.parameters)?);
        note!("{} on {}", engine.model().info().weights, place(engine.model()));
    }
    if args.n > 1 && mark.as_ref().is_some_and(|mark| mark.greedy() == Greedy::Refused) {
        note!(
            "under one key the samples of this scheme begin alike; they differ only where a \
             context was seen before"
        );
    }
    let requests = (0..args.n)
        .map(|sample| Request {
            prompt: ids.clone(),
            chain: chain.clone(),
            marker: mark.as_ref().map(Mark::marker),
            seed,
            sample,
            max_tokens,
            stop: args.stop.clone(),
            end_ids: engine.end_ids().to_vec(),
            observe: Observe { chances: mark.as_ref().and_then(Mark::bias), ..Observe::default() },
        })
        .collect();
    let streaming = args.n == 1 && !args.json && args.out.is_none();
    let mut session = Session::new(engine.model(), engine.tokenizer());
    let texts = session.run(requests, |_, text| -> Result<()> {
        if streaming { output::write(text) } else { Ok(()) }
    })?;
    if streaming && std::io::stdout().is_terminal() {
        output::line("")?;
    }
    if let (Some(path), [text]) = (&args.out, texts.as_slice()) {
        let generation = json!({
            "model": args.source.weights.model,
            "sampling": effective,
            "seed": seed,
        });
        write_text(path, text, mark.as_ref(), generation)?;
    }
    if args.json {
        let report = RunReport {
            model: args.source.weights.model.clone(),
            prompt_tokens: ids.len(),
            effective: &effective,
            seed,
            watermark: mark.is_some(),
            profile: mark.as_ref().map(Mark::profile),
            kernels: &engine.model().info().kernels,
            drawn_on: drawn_on(engine.model()),
            load_seconds: loaded.load_time.as_secs_f64(),
            samples: texts
                .iter()
                .enumerate()
                .map(|(n, text)| sample(n, text, mark.as_ref()))
                .collect(),
        };
        output::json(&report)?;
    } else if args.n > 1 {
        for (index, text) in texts.iter().enumerate() {
            output::line(&format!("--- {}\n{}", index + 1, text.text))?;
        }
    }
    let place = place(engine.model());
    for text in &texts {
        note!("{}", summary(text, mark.as_ref(), &place));
    }
    Ok(Exit::Success)
}

/// Finds out before the work whether its result can be kept; changes nothing.
pub(super) fn can_be_written(path: &Path) -> Result<(), Error> {
    let failed = |source| Error::io("write", path, source);
    let mut options = std::fs::OpenOptions::new();
    options.append(true);
    if path.symlink_metadata().is_err() {
        options.create_new(true).open(path).map_err(failed)?;
        return std::fs::remove_file(path).map_err(failed);
    }
    match options.open(path) {
        // A link to nowhere: its target is made when there is something to write.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map(drop).map_err(failed),
    }
}

/// Writes a text and, when it is marked, its sidecar.
pub(super) fn write_text(
    path: &Path,
    text: &Generation,
    mark: Option<&Mark>,
    generation: Value,
) -> Result<(), Error> {
    let failed = |source| Error::io("write", path, source);
    std::fs::write(path, &text.text).map_err(failed)?;
    let beside = sidecar_path(path);
    let Some(mark) = mark else {
        // A sidecar of an earlier, marked text would speak of this one.
        return match std::fs::remove_file(&beside) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove the old sidecar", &beside, source))
            }
            _ => Ok(()),
        };
    };
    let entropies = text
        .steps
        .iter()
        .map(|step| TokenEntropy {
            byte: step.offset,
            nats: step.entropy,
            id: Some(step.token),
            chances: step.chances,
        })
        .collect();
    Sidecar::new(mark.profile().clone(), text.text.as_bytes(), generation, entropies).write(&beside)
}

/// One line about a text that was written at `place`.
pub(super) fn summary(text: &Generation, mark: Option<&Mark>, place: &str) -> String {
    let marked = match mark {
        None => "not marked".to_owned(),
        Some(mark) => match (mark.expected(text), mark.predicted_z(text)) {
            (Some(expected), Some(z)) => format!(
                "marked, expected z {z:.1}, {} of {} tokens could carry it, chance to detect it {}",
                expected.carrying,
                expected.scored,
                expected.plain.in_words()
            ),
            (None, Some(z)) => format!("marked, expected z {z:.1}"),
            (_, None) => "marked".to_owned(),
        },
    };
    let speed = text.timing.tokens_per_second();
    let speed = speed.map_or(String::new(), |speed| format!(", {speed:.1} tokens/s on {place}"));
    format!("{} tokens ({}), {marked}{speed}", text.ids.len(), text.finish.reason())
}

fn sample<'a>(index: usize, text: &'a Generation, mark: Option<&Mark>) -> SampleReport<'a> {
    SampleReport {
        sample: index,
        text: &text.text,
        ids: &text.ids,
        finish_reason: text.finish.reason(),
        stop: text.finish.stop_string(),
        round_trip: text.round_trip,
        mean_entropy_nats: text.mean_entropy(),
        predicted_z: mark.and_then(|mark| mark.predicted_z(text)),
        expected: mark.and_then(|mark| mark.expected(text)),
        prompt_seconds: text.timing.prompt.as_secs_f64(),
        decode_seconds: text.timing.decode.as_secs_f64(),
        tokens_per_second: text.timing.tokens_per_second(),
    }
}

fn prompt_text(args: &GenerateArgs) -> Result<String, Error> {
    if let Some(path) = &args.prompt_file {
        // One byte-order mark is an artefact of the file, not of the prompt.
        let text = read_text(path)?;
        return Ok(match text.strip_prefix('\u{feff}') {
            Some(rest) => {
                note!("a leading byte-order mark of {} was left out", path.display());
                rest.to_owned()
            }
            None => text,
        });
    }
    if let Some(prompt) = &args.prompt {
        return Ok(prompt.clone());
    }
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Error::parameter(
            "prompt",
            "nothing",
            "a prompt as an argument, in --prompt-file or on standard input",
        ));
    }
    let mut bytes = Vec::new();
    stdin
        .read_to_end(&mut bytes)
        .map_err(|source| Error::io("read the prompt from", "standard input", source))?;
    String::from_utf8(bytes)
        .map_err(|_| Error::parameter("prompt", "bytes that are not UTF-8", "UTF-8 text"))
}

fn prompt_ids(args: &GenerateArgs, prompt: &str, engine: &TextEngine) -> Result<Vec<TokenId>> {
    let tokenizer = engine.tokenizer();
    if args.chat {
        let template = PromptTemplate::from_tokenizer(tokenizer)?;
        let mut messages = Vec::new();
        if let Some(system) = &args.system {
            messages.push(ChatMessage { role: "system".to_owned(), content: system.clone() });
        }
        messages.push(ChatMessage::user(prompt));
        return Ok(template.chat_ids(tokenizer, &messages, GenerationPrompt::Add)?);
    }
    Ok(engine.prompt_ids(prompt)?)
}
