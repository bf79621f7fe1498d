//! The model of `wm serve`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use greenmark::engine::TextEngine;
use greenmark::server::{GenerationSettings, Generator, Profiles};

use super::loaded::load_model;
use crate::args::WeightsSource;

/// A model that is to be served, before it is loaded.
pub(crate) struct ServedModel {
    /// A model name, a file, a folder or a repository.
    pub(crate) spec: String,
    /// A tokenizer for a model whose own is missing or cannot be read.
    pub(crate) tokenizer: Option<PathBuf>,
    /// Never fetch anything.
    pub(crate) offline: bool,
    /// Policy and room.
    pub(crate) settings: GenerationSettings,
}

impl ServedModel {
    /// Loads it and starts its thread.
    pub(crate) fn load(self, profiles: &Profiles) -> Result<Generator> {
        // The engine's threads are the generator's own, not those of this process.
        let source =
            WeightsSource { model: self.spec.clone(), offline: self.offline, threads: None };
        let (model, path) = load_model(&source)?;
        let engine = TextEngine::open(model, &path, self.tokenizer.as_deref())?;
        Ok(Generator::start(name(&self.spec, &path), engine, self.settings, profiles)?)
    }
}

/// The name of a model in requests: as it was asked for, or the last part of a path, without the
/// folders of this machine.
fn name(spec: &str, path: &Path) -> String {
    if !Path::new(spec).exists() && spec != "default" {
        return spec.to_owned();
    }
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.map_or_else(|| "default".to_owned(), |name| name.to_string_lossy().into_owned())
}
