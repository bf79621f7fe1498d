//! Whole texts of tiny checkpoints: the tokens of the device are those of the CPU, in f32, and
//! the mark is found in what the device wrote. Anything else fails the run.

use std::path::Path;
use std::sync::Arc;

use greenmark::detect::gather;
use greenmark::engine::{
    BatchShape, Device, DeviceChoice, DeviceDtype, Generation, Model, Observe, Placement, Request,
    Session,
};
use greenmark::error::Error;
use greenmark::profile::Gamma;
use greenmark::sample::{Chain, SamplingOptions};
use greenmark::text::Tokenizer;
use greenmark::token::{TokenId, TokenSet};
use serde_json::json;

use crate::arguments::Arguments;
use crate::report::Report;
use crate::{Result, green_list, marker};

const PROMPTS: [&str; 5] = ["the", "the rain in Spain", "stays mainly", "in", "the plain. the"];
/// Ids of the checkpoints.
const VOCAB: usize = 300;
/// Ids 0 to 2 stand for no text.
const SPECIAL: [u32; 3] = [0, 1, 2];
/// What an unmarked text reaches once in three million.
const FOUND: f64 = 5.0;

pub(crate) fn run(arguments: &Arguments, report: &mut Report) -> Result<()> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/models");
    let tokenizer = Tokenizer::open(data.join("tokenizer-300.json"))?;
    let names: &[&str] = if arguments.small {
        &["qwen3"]
    } else {
        &["llama", "llama3-rope", "mistral", "qwen2", "qwen3"]
    };
    let tokens = arguments.number("tokens", 200, 60);
    let mut failures = Vec::new();
    for name in names {
        let cpu = Model::load(data.join(name), Device::Cpu)?;
        let expected = [false, true].map(|marked| texts(&cpu, &tokenizer, tokens, marked));
        let [plain, marked] = expected;
        let expected = [plain?, marked?];
        for batch in [BatchShape::Free, BatchShape::Fixed(8)] {
            let device = DeviceChoice::Cuda(0).open()?;
            let placement = Placement { dtype: DeviceDtype::F32, batch, ..Placement::from(device) };
            let model = Model::load_with(data.join(name), &placement)?;
            let kernels = &model.info().kernels;
            for (expected, marked) in expected.iter().zip([false, true]) {
                let found = texts(&model, &tokenizer, tokens, marked)?;
                let same = found.iter().zip(expected).filter(|(a, b)| a.ids == b.ids).count();
                let (scored, z) = z(&found)?;
                let mark = if marked { "marked" } else { "plain" };
                println!(
                    "{name:<11}  {kernels}: {same} of {} {mark} texts of {tokens} tokens as on the CPU, z {z:.1} of {scored}",
                    found.len()
                );
                report.line(&json!({
                    "bench": "generate", "model": name, "kernels": kernels, "marked": marked,
                    "tokens": tokens, "texts": found.len(), "as_on_cpu": same, "scored": scored,
                    "z": z,
                }))?;
                if same < found.len() {
                    failures.push(format!("{name}, {mark}: {same} texts as on the CPU"));
                }
                if marked != (z > FOUND) {
                    failures.push(format!("{name}, {mark}: z {z:.1}"));
                }
            }
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ").into()) }
}

fn texts(
    model: &Model,
    tokenizer: &Tokenizer,
    tokens: usize,
    marked: bool,
) -> Result<Vec<Generation>> {
    let never = Arc::new(TokenSet::from_ids(VOCAB, SPECIAL)?);
    let options = SamplingOptions { min_tokens: Some(tokens), ..SamplingOptions::default() };
    let chain = Arc::new(Chain::new(options, VOCAB, &[2], never)?);
    let requests = PROMPTS.into_iter().map(|prompt| {
        Ok(Request {
            prompt: tokenizer.encode_ids(prompt)?,
            chain: Arc::clone(&chain),
            marker: if marked { Some(marker()?) } else { None },
            seed: 11,
            sample: 0,
            max_tokens: tokens,
            stop: Vec::new(),
            end_ids: vec![2],
            observe: Observe::default(),
        })
    });
    let requests = requests.collect::<Result<Vec<_>>>()?;
    // Pieces of prompts beside decoding, as in the service.
    let mut session = Session::new(model, tokenizer).with_prompt_chunk(3);
    Ok(session.run(requests, |_, _| Ok::<(), Error>(()))?)
}

/// The tokens counted in all texts together, and their z.
fn z(texts: &[Generation]) -> Result<(u64, f64)> {
    let scheme = green_list()?;
    let never = TokenSet::from_ids(VOCAB, SPECIAL)?;
    // As one text: what two texts have in common is counted once.
    let ids: Vec<TokenId> = texts.iter().flat_map(|text| text.ids.iter().copied()).collect();
    let evidence = gather(&scheme, &never, &[], &ids);
    let (green, scored) = (evidence.green(), evidence.scored);
    let (gamma, count) = (Gamma::DEFAULT.effective(), scored as f64);
    Ok((scored, (green as f64 - gamma * count) / (gamma * (1.0 - gamma) * count).sqrt()))
}
