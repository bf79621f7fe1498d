//! The steps of texts that a model writes, for `wm power`.

use std::sync::Arc;

use anyhow::Result;
use greenmark::Error;
use greenmark::detect::entropy::{GreenListBias, TokenUncertainty};
use greenmark::engine::{BatchShape, Forcing, Observe, Request, Session};
use greenmark::prf::Key;
use greenmark::profile::{Delta, Gamma, SchemeParameters};
use greenmark::sample::SamplingOptions;
use greenmark::scheme::GreenList;

use super::loaded::Loaded;
use crate::args::{ModelSource, PowerArgs, WeightsSource};
use crate::commands::power::counted;

/// Writes texts without a mark and reads what a mark could do at each of their tokens.
pub(super) fn measure(
    args: &PowerArgs,
    prompt: &str,
    bias: GreenListBias,
) -> Result<Vec<TokenUncertainty>> {
    if !(1..=1024).contains(&args.samples) {
        return Err(Error::parameter("samples", args.samples, "1 to 1024").into());
    }
    let weights = WeightsSource { model: args.model.clone(), offline: args.offline, threads: None };
    let source = ModelSource { weights, device: args.device.clone(), tokenizer: None };
    let loaded = Loaded::open(&source, BatchShape::Free)?;
    let options = SamplingOptions {
        temperature: Some(args.temperature),
        min_tokens: Some(args.sample_tokens),
        ..SamplingOptions::default()
    };
    let engine = &loaded.engine;
    let chain = engine.chain(options)?;
    let prompt = engine.prompt_ids(prompt)?;
    let requests = (0..args.samples)
        .map(|sample| Request {
            prompt: prompt.clone(),
            chain: Arc::clone(&chain),
            marker: None,
            seed: args.seed,
            sample,
            max_tokens: args.sample_tokens,
            stop: Vec::new(),
            end_ids: engine.end_ids().to_vec(),
            observe: Observe::default(),
        })
        .collect();
    let texts = Session::new(engine.model(), engine.tokenizer())
        .run(requests, |_, _| Ok::<(), Error>(()))?;
    let forcing =
        Forcing { model: engine.model(), chain: &chain, bias: Some(bias), seed: args.seed };
    // Which tokens count depends on the context's width alone.
    let width = SchemeParameters::default().default_context().width;
    let scheme = GreenList::new(&Key::from_bytes([0; 32]), Gamma::DEFAULT, Delta::DEFAULT, width);
    let mut steps = Vec::new();
    for text in &texts {
        let uncertainties = forcing.uncertainties(&prompt, &text.ids, |_| ())?;
        steps.extend(counted(&scheme, &text.ids).filter_map(|place| uncertainties[place]));
    }
    Ok(steps)
}
