//! The profiles of a service: files and keys first, tokenizers once it listens.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use greenmark::detect::DetectOptions;
use greenmark::document::{Detector, identify};
use greenmark::server::{ProfileConfig, Profiles, Served, Standing};
use greenmark::text::Tokenizer;

use crate::args::{KeyArgs, MarkArgs, TokenizerArgs};
use crate::resolve::{ExplicitMark, KeySource, NamedKey, resolve_key, resolve_tokenizer};

/// A profile before its tokenizer is loaded.
pub(super) struct Source {
    name: String,
    standing: Standing,
    mark: ExplicitMark,
    key: NamedKey,
    tokenizer: TokenizerArgs,
}

/// Reads the files of the profiles and their keys.
pub(super) fn sources(
    wanted: &[ProfileConfig],
    key: KeySource,
    offline: bool,
) -> Result<Vec<Source>> {
    wanted.iter().map(|profile| source(profile, key, offline)).collect()
}

fn source(wanted: &ProfileConfig, key_source: KeySource, offline: bool) -> Result<Source> {
    let mark = MarkArgs { profile: wanted.profile.clone(), ..MarkArgs::default() };
    let key = KeyArgs { key_file: wanted.key_file.clone(), key_id: None };
    let mark = ExplicitMark::resolve(&mark)?;
    // A fresh key cannot be the one that a profile names.
    let key_source = if wanted.profile.is_some() { KeySource::Existing } else { key_source };
    Ok(Source {
        name: wanted.name.clone(),
        standing: wanted.standing,
        mark,
        key: resolve_key(&key, key_source)?,
        tokenizer: TokenizerArgs {
            tokenizer: wanted.tokenizer.clone().unwrap_or_else(|| "default".to_owned()),
            offline,
        },
    })
}

/// Loads the tokenizers, each once, and joins everything.
pub(super) fn load(sources: Vec<Source>) -> Result<Profiles> {
    let mut tokenizers: HashMap<String, Arc<Tokenizer>> = HashMap::new();
    let mut served = Vec::with_capacity(sources.len());
    for source in sources {
        let spec = source.tokenizer.tokenizer.clone();
        let tokenizer = match tokenizers.get(&spec) {
            Some(known) => Arc::clone(known),
            None => resolve_tokenizer(&source.tokenizer)?,
        };
        tokenizers.insert(spec, Arc::clone(&tokenizer));
        let profile = source.mark.profile(identify(&tokenizer), &source.key)?;
        let options = DetectOptions::default();
        let detector = Detector::new(tokenizer, profile, &source.key.key, options)?;
        served.push(Served { name: source.name, standing: source.standing, detector });
    }
    Ok(Profiles::new(served)?)
}
