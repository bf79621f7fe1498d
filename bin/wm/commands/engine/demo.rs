//! `wm demo`: marked text written by a real model, then found by the detector, and not found
//! with another key.

use anyhow::Result;
use greenmark::Error;
use greenmark::detect::{DetectOptions, Verdict};
use greenmark::document::{Circumstances, Detector, identify};
use greenmark::engine::{BatchShape, Mark, Observe, Request, Session, TextEngine};
use greenmark::prf::Key;
use greenmark::sample::SamplingOptions;

use super::generate::summary;
use super::loaded::{Loaded, place};
use super::prepare::join_mark;
use crate::args::{DemoArgs, KeyArgs, MarkArgs};
use crate::commands::detect::first_line;
use crate::exit::Exit;
use crate::output::{self, note};
use crate::resolve::{ExplicitMark, KeySource, NamedKey, resolve_key};

/// A text that falls into a loop holds little evidence whatever the scheme; about one in a hundred
/// of this length does with the default model.
const TRIES: u64 = 3;

pub(super) fn run(args: &DemoArgs) -> Result<Exit> {
    let loaded = Loaded::open(&args.source, BatchShape::fixed_for(1))?;
    let engine = &loaded.engine;
    let key = resolve_key(&KeyArgs::default(), KeySource::CreateDefault)?;
    let mark = join_mark(ExplicitMark::resolve(&MarkArgs::default())?, &key, engine)?;
    let options = DetectOptions::default();
    let detector =
        Detector::new(engine.shared_tokenizer(), mark.profile().clone(), &key.key, options)?;
    let other = NamedKey::new(Key::generate()?, "other");
    let identity = identify(engine.tokenizer());
    let profile = ExplicitMark::resolve(&MarkArgs::default())?.profile(identity, &other)?;
    let stranger = Detector::new(engine.shared_tokenizer(), profile, &other.key, options)?;

    for attempt in 0..TRIES {
        let seed = args.seed.wrapping_add(attempt);
        let text = write(args, seed, engine, &mark)?;
        output::line("\n$ wm detect the continuation")?;
        let report = detector.text(&text, &Circumstances::default())?;
        output::line(&first_line(&report))?;
        output::line("\n$ wm detect the continuation, with a key that did not write it")?;
        output::line(&first_line(&stranger.text(&text, &Circumstances::default())?))?;
        match report.verdict {
            Verdict::Watermarked => return Ok(Exit::Success),
            Verdict::Insufficient => {
                let allowed = "more: so few scored tokens cannot reach alpha whatever they are";
                return Err(Error::parameter("max_tokens", args.max_tokens, allowed).into());
            }
            Verdict::NotDetected if attempt + 1 < TRIES => {
                note!("this text holds too little evidence; trying the next seed");
            }
            Verdict::NotDetected => {}
        }
    }
    Ok(Exit::Failure)
}

/// Prints a marked continuation as it is written, and gives it.
fn write(args: &DemoArgs, seed: u64, engine: &TextEngine, mark: &Mark) -> Result<String> {
    // The text is to have the length asked for, whatever the model would like.
    let options = SamplingOptions {
        temperature: Some(1.0),
        min_tokens: Some(args.max_tokens),
        ..SamplingOptions::default()
    };
    let request = Request {
        prompt: engine.prompt_ids(&args.prompt)?,
        chain: engine.chain(options)?,
        marker: Some(mark.marker()),
        seed,
        sample: 0,
        max_tokens: args.max_tokens,
        stop: Vec::new(),
        end_ids: engine.end_ids().to_vec(),
        observe: Observe::default(),
    };
    let mut session = Session::new(engine.model(), engine.tokenizer());
    let mut begun = false;
    let texts = session.run(vec![request], |_, text| {
        // Nothing is shown before the request was accepted.
        if !begun {
            begun = true;
            output::write(&format!("$ wm generate {:?}\n\n{}", args.prompt, args.prompt))?;
        }
        output::write(text)
    })?;
    let Some(text) = texts.into_iter().next() else { return Ok(String::new()) };
    output::line(&format!("\n\n({})", summary(&text, Some(mark), &place(engine.model()))))?;
    Ok(text.text)
}
