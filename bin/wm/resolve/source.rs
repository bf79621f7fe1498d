//! Models and tokenizers by name, and the bar that shows a download.

use std::path::PathBuf;
use std::sync::Arc;

use greenmark::Result;
use greenmark::store::{Event, Fetch, Progress, Store};
use greenmark::text::Tokenizer;
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::TokenizerArgs;
use crate::output::note;

/// Whether the flags allow a download.
pub(crate) fn fetch(offline: bool) -> Fetch {
    if offline { Fetch::Offline } else { Fetch::Allowed }
}

/// Shows a download on standard error.
#[derive(Default)]
pub(crate) struct Bar(Option<ProgressBar>);

impl Progress for Bar {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Started { what, bytes } => {
                note!("fetching {what}");
                let bar = bytes.map_or_else(ProgressBar::no_length, ProgressBar::new);
                if let Ok(style) =
                    ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {bytes_per_sec}")
                {
                    bar.set_style(style);
                }
                self.0 = Some(bar);
            }
            Event::Downloaded { bytes } => {
                if let Some(bar) = &self.0 {
                    bar.set_position(bytes);
                }
            }
            Event::Waiting { path } => {
                note!("another run is fetching {}; waiting for it", path.display());
            }
            Event::Discarded { path, reason } => {
                note!("not using {}: {reason}", path.display());
            }
            Event::Finished { path } => {
                if let Some(bar) = self.0.take() {
                    bar.finish_and_clear();
                }
                note!("verified {}", path.display());
            }
            // Checking is quick, and later versions may have events that need no words.
            _ => {}
        }
    }
}

/// The file of a model.
pub(crate) fn resolve_model(spec: &str, offline: bool) -> Result<PathBuf> {
    Store::from_env()?.resolve(spec, fetch(offline), &mut Bar::default())
}

/// A tokenizer by file, folder or model name; never loads weights.
pub(crate) fn resolve_tokenizer(args: &TokenizerArgs) -> Result<Arc<Tokenizer>> {
    let path = Store::from_env()?.resolve_tokenizer(
        &args.tokenizer,
        fetch(args.offline),
        &mut Bar::default(),
    )?;
    Ok(Arc::new(Tokenizer::open(&path)?))
}
