//! Writes marked text through the library.
//!
//! `cargo run --example embed -- MODEL KEY_FILE "prompt"`, where MODEL is a name of `wm models`,
//! a GGUF file or a safetensors folder with its tokenizer.

use std::sync::Arc;

use greenmark::document::identify;
use greenmark::engine::{Device, Model, Observe, Request, Session, end_ids, never_marked};
use greenmark::prf::Key;
use greenmark::profile::{KeyIdentity, Profile, SchemeParameters};
use greenmark::sample::{Chain, SamplingOptions};
use greenmark::scheme::{Marker, build};
use greenmark::store::{Fetch, Silent, Store};
use greenmark::text::Tokenizer;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, key, prompt] = arguments.as_slice() else {
        return Err("usage: embed MODEL KEY_FILE PROMPT".into());
    };

    // The model, and the tokenizer that comes with it.
    let path = Store::from_env()?.resolve(model, Fetch::Allowed, &mut Silent)?;
    let model = Model::load(&path, Device::Cpu)?;
    let tokenizer = Tokenizer::open(&path)?;

    // The mark: what the profile says, under the key.
    let key = Key::read(key.as_ref())?;
    let scheme = SchemeParameters::default();
    let identity = KeyIdentity { id: "example".to_owned(), fingerprint: key.fingerprint() };
    let profile = Profile::new(scheme, scheme.default_context(), identify(&tokenizer), identity)?;
    let marker = Marker::new(build(&profile, &key).into(), *profile.context());

    // The chain: every other processor, the mark last.
    let options = SamplingOptions { top_p: Some(0.95), ..SamplingOptions::default() };
    let end_ids = end_ids(model.info(), &tokenizer);
    let never_marked = Arc::new(never_marked(model.info(), &tokenizer)?);
    let chain = Chain::new(options, model.info().vocab_size, &end_ids, never_marked)?;

    let request = Request {
        prompt: tokenizer.prompt_ids(prompt)?,
        chain: Arc::new(chain),
        marker: Some(marker),
        seed: 1,
        sample: 0,
        max_tokens: 100,
        stop: Vec::new(),
        end_ids,
        observe: Observe::default(),
    };
    let texts = Session::new(&model, &tokenizer).run(
        vec![request],
        |_, text| -> Result<(), Box<dyn std::error::Error>> {
            print!("{text}");
            Ok(())
        },
    )?;
    eprintln!("\n{} tokens, finish reason {}", texts[0].ids.len(), texts[0].finish.reason());
    Ok(())
}
