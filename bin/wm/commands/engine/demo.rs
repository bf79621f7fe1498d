//! `wm demo`: marked text written by a real model, then found by the detector, and not found
//! with another key.

use anyhow::Result;
use greenmark::detect::{DetectOptions, Verdict};
use greenmark::document::{Detector, identify};
use greenmark::engine::{Request, Session};
use greenmark::prf::Key;
use greenmark::profile::KeyIdentity;
use greenmark::sample::SamplingOptions;

use super::generate::summary;
use super::loaded::Loaded;
use super::prepare::{self, Mark};
use crate::args::{DemoArgs, KeyArgs, MarkArgs};
use crate::commands::detect::first_line;
use crate::exit::Exit;
use crate::output;
use crate::resolve::{ExplicitMark, KeySource, NamedKey, resolve_key};

pub(super) fn run(args: &DemoArgs) -> Result<Exit> {
    let loaded = Loaded::open(&args.source)?;
    let key = resolve_key(&KeyArgs::default(), KeySource::CreateDefault)?;
    let mark = Mark::new(ExplicitMark::resolve(&MarkArgs::default())?, &key, &loaded)?;
    // The text is to have the length asked for, whatever the model would like.
    let options = SamplingOptions {
        temperature: Some(1.0),
        min_tokens: Some(args.max_tokens),
        ..SamplingOptions::default()
    };
    let end_ids = loaded.end_ids();
    let request = Request {
        prompt: loaded.tokenizer.prompt_ids(&args.prompt)?,
        chain: prepare::chain(options, &loaded, &end_ids)?,
        marker: Some(mark.marker()),
        seed: args.seed,
        sample: 0,
        max_tokens: args.max_tokens,
        stop: Vec::new(),
        end_ids,
    };
    output::line(&format!("$ wm generate {:?}\n", args.prompt))?;
    output::write(&args.prompt)?;
    let mut session = Session::new(&loaded.model, &loaded.tokenizer);
    let texts = session.run(vec![request], |_, text| output::write(text))?;
    let text = &texts[0];
    output::line(&format!("\n\n({})", summary(text, Some(&mark))))?;

    output::line("\n$ wm detect the continuation")?;
    let options = DetectOptions::default();
    let detector =
        Detector::new(loaded.tokenizer.clone(), mark.profile.clone(), &key.key, options)?;
    let report = detector.text(&text.text, None, &[], None)?;
    output::line(&first_line(&report))?;

    output::line("\n$ wm detect the continuation, with a key that did not write it")?;
    let other = NamedKey { key: Key::generate()?, id: "other".to_owned() };
    let identity = KeyIdentity { ..other.identity() };
    let profile = ExplicitMark::resolve(&MarkArgs::default())?
        .profile(identify(&loaded.tokenizer), identity)?;
    let stranger = Detector::new(loaded.tokenizer.clone(), profile, &other.key, options)?;
    output::line(&first_line(&stranger.text(&text.text, None, &[], None)?))?;
    Ok(match report.verdict {
        Verdict::Watermarked => Exit::Success,
        Verdict::NotDetected | Verdict::Insufficient => Exit::Failure,
    })
}
