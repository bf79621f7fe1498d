//! The model of `wm serve`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use greenmark::engine::TextEngine;
use greenmark::server::{GenerationSettings, Generator, Profiles};

use super::loaded::{load_model, place};
use crate::args::WeightsSource;
use crate::output::note;
use crate::resolve::{Opened, Placing};

/// A model that is to be served, before it is loaded.
pub(crate) struct ServedModel {
    source: WeightsSource,
    tokenizer: Option<PathBuf>,
    opened: Opened,
    settings: GenerationSettings,
}

impl ServedModel {
    /// The model that `spec` names, with a tokenizer for one whose own is missing or cannot be
    /// read. A device that is not there is refused now.
    pub(crate) fn new(
        spec: String,
        tokenizer: Option<PathBuf>,
        offline: bool,
        placing: Placing,
        settings: GenerationSettings,
    ) -> Result<Self> {
        // The engine's threads are the generator's own, not those of this process.
        let source = WeightsSource { model: spec, offline, threads: None };
        Ok(Self { source, tokenizer, opened: placing.open()?, settings })
    }

    /// Loads it and starts its thread.
    pub(crate) fn load(self, profiles: &Profiles) -> Result<Generator> {
        let (model, path) = load_model(&self.source, &self.opened)?;
        let name = name(&self.source.model, &path);
        note!("the model {name} computes on {}", place(&model));
        if !model.device().is_cpu() && !model.has_fixed_shape() {
            note!("without --deterministic a text's tokens may depend on those beside it");
        }
        let engine = TextEngine::open(model, &path, self.tokenizer.as_deref())?;
        Ok(Generator::start(name, engine, self.settings, profiles)?)
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
