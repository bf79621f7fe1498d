//! The trace that each generated text leaves, also when its client left before the end.
//!
//! Nothing of a text stands in it but its hash.

use std::sync::Arc;
use std::time::Instant;

use super::GenerationProfile;
use super::queue::Delivery;
use crate::document::sha256_hex;
use crate::engine::Generation;
use crate::server::access::Caller;
use crate::server::audit::Entry;
use crate::server::layers::RequestId;
use crate::server::state::State;

/// On whose behalf texts are generated.
pub(super) struct Asker {
    pub(super) caller: Caller,
    pub(super) request: RequestId,
    /// SHA-256 of the field `user`.
    pub(super) user_sha256: Option<String>,
    pub(super) since: Instant,
}

/// The texts of a request as far as they were generated. Dropping it records those that were not.
pub(super) struct Trace {
    state: State,
    asker: Asker,
    mark: Option<Arc<GenerationProfile>>,
    texts: Vec<Seen>,
}

/// A text as far as it was generated.
#[derive(Clone, Default)]
struct Seen {
    text: String,
    tokens: usize,
    recorded: bool,
}

impl Trace {
    pub(super) fn new(
        state: State,
        asker: Asker,
        mark: Option<Arc<GenerationProfile>>,
        texts: usize,
    ) -> Self {
        Self { state, asker, mark, texts: vec![Seen::default(); texts] }
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Takes notice of what came from the thread.
    pub(super) fn see(&mut self, delivery: &Delivery) {
        match delivery {
            Delivery::Text { index, text, steps, .. } => {
                if let Some(seen) = self.texts.get_mut(*index) {
                    seen.text.push_str(text);
                    seen.tokens += steps.len();
                }
            }
            Delivery::Finished { index, generation, .. } => {
                if let Some(seen) = self.texts.get_mut(*index) {
                    seen.text.clone_from(&generation.text);
                    seen.tokens = generation.drawn;
                }
            }
            Delivery::Failed(_) => {}
        }
    }

    /// Records a finished text.
    pub(super) fn record(&mut self, index: usize, generation: &Generation) {
        let Some(seen) = self.texts.get_mut(index) else { return };
        seen.recorded = true;
        seen.text = String::new();
        self.write(&generation.text, generation.drawn);
    }

    fn write(&self, text: &str, tokens: usize) {
        let asker = &self.asker;
        let profile = self.mark.as_deref();
        let duration = asker.since.elapsed();
        self.state.audit().record(&Entry {
            action: "generate",
            request_id: &asker.request.0,
            caller: &asker.caller.name,
            user_sha256: asker.user_sha256.as_deref(),
            input_sha256: Some(&sha256_hex(text.as_bytes())),
            profile: profile.map(|profile| profile.name.as_str()),
            key_id: profile.map(|profile| profile.mark.profile().key().id.as_str()),
            verdict: None,
            duration,
        });
        self.state.metrics().generated(tokens as u64, duration);
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        for seen in std::mem::take(&mut self.texts) {
            // A text that waits, or whose prompt is still read, is none yet.
            if !seen.recorded && seen.tokens > 0 {
                self.write(&seen.text, seen.tokens);
            }
        }
    }
}
