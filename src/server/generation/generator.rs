//! The service's side of one model: what it serves, under which marks, and how a request is
//! answered.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::body::Body;
use super::collect::Collector;
use super::endpoint::Endpoint;
use super::model_not_found;
use super::plan::{Outline, Plan};
use super::policy::check_enforceable;
use super::queue::{GenerationQueue, Load, QueueRoom, Refusal};
use super::reply::Envelope;
use super::settings::{GenerationSettings, Policy};
use super::trace::{Asker, Trace};
use crate::detect::entropy::{EntropyInput, EntropySource, GreenListBias};
use crate::document::{Detector, identify, sha256_hex};
use crate::engine::{Mark, Reading, TextEngine, random_seed};
use crate::error::{Error, Result};
use crate::server::access::Caller;
use crate::server::error::ApiError;
use crate::server::json::Json;
use crate::server::layers::RequestId;
use crate::server::profiles::{Profiles, Standing};
use crate::server::state::State;
use crate::text::PromptTemplate;
use crate::token::TokenId;

/// Says whether the text of a reply is marked: `true` or `false`.
const WATERMARKED: HeaderName = HeaderName::from_static("greenmark-watermarked");
/// Names the profile of the mark.
const PROFILE: HeaderName = HeaderName::from_static("greenmark-profile");

/// A mark that new texts may get, under the operator's name for it.
#[derive(Debug)]
pub struct GenerationProfile {
    /// The name that requests use.
    pub name: String,
    /// The mark.
    pub mark: Mark,
}

/// One model that texts are generated with.
#[derive(Debug)]
pub struct Generator {
    id: String,
    created: u64,
    fingerprint: String,
    engine: Arc<TextEngine>,
    template: Option<PromptTemplate>,
    settings: GenerationSettings,
    profiles: Vec<Arc<GenerationProfile>>,
    queue: GenerationQueue,
}

impl Generator {
    /// Serves `engine` as `id`, with the active ones of `profiles` that belong to its tokenizer.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a setting outside its range, for no profile that belongs to the
    /// model, and under [`Policy::Enforce`] for a profile that leaves tokens unmarked by rule;
    /// [`Error::Backend`] when the system gives no threads.
    pub fn start(
        id: impl Into<String>,
        engine: TextEngine,
        settings: GenerationSettings,
        profiles: &Profiles,
    ) -> Result<Self> {
        settings.check()?;
        let id = id.into();
        let identity = identify(engine.tokenizer());
        let usable: Vec<_> = profiles
            .all()
            .iter()
            .filter(|served| served.standing == Standing::Active)
            .filter(|served| served.detector.profile().tokenizer() == &identity)
            .map(|served| {
                let mark = Mark::of(&served.detector);
                Arc::new(GenerationProfile { name: served.name.clone(), mark })
            })
            .collect();
        if usable.is_empty() {
            let allowed = format!("an active profile with the tokenizer of the model {id}");
            return Err(Error::parameter("profiles", "none for generation", allowed));
        }
        if settings.policy == Policy::Enforce {
            for profile in &usable {
                check_enforceable(&profile.name, &profile.mark)?;
            }
        }
        let template = match engine.tokenizer().chat_template() {
            Some(source) => Some(PromptTemplate::new(source, engine.tokenizer())?),
            None => None,
        };
        let engine = Arc::new(engine);
        let room = QueueRoom {
            max_batch: settings.max_batch,
            queue: settings.queue,
            cache_tokens: settings.cache_tokens,
            prompt_chunk: settings.prompt_chunk,
            threads: settings.threads,
        };
        Ok(Self {
            queue: GenerationQueue::start(Arc::clone(&engine), room)?,
            created: now(),
            fingerprint: fingerprint(&engine),
            id,
            engine,
            template,
            settings,
            profiles: usable,
        })
    }

    /// The model's name in requests and replies.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether work is taken.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.queue.is_open()
    }

    /// How busy the model is.
    #[must_use]
    pub fn load(&self) -> Load {
        self.queue.load()
    }

    /// Takes no more requests; those that were taken are finished.
    pub fn close(&self) {
        self.queue.close();
    }

    /// Takes no more requests and drops those that were taken.
    pub fn abort(&self) {
        self.queue.abort();
    }

    /// Waits until the model's thread has ended, after [`Generator::close`] or
    /// [`Generator::abort`]. Blocks.
    pub fn join(&self) {
        self.queue.join();
    }

    /// The models that requests may name, in the shape of the `OpenAI` interface.
    pub(in crate::server) fn models(&self) -> Vec<Value> {
        let names = std::iter::once(&self.id).chain(&self.settings.aliases);
        names.map(|name| self.model(name)).collect()
    }

    /// One of them.
    pub(in crate::server) fn find_model(&self, name: &str) -> Option<Value> {
        self.is_called(name).then(|| self.model(name))
    }

    fn model(&self, name: &str) -> Value {
        json!({"id": name, "object": "model", "created": self.created, "owned_by": "greenmark"})
    }

    fn is_called(&self, name: &str) -> bool {
        self.id == name || self.settings.aliases.iter().any(|alias| alias == name)
    }

    /// The model's uncertainty before each token of `text` as `detector` reads it. It
    /// computes on all cores for as long as the text needs: the caller takes a turn
    /// (`State::reading_turn`).
    ///
    /// # Errors
    /// 400 for a profile with another tokenizer, and for a text of more than `most` tokens.
    pub(in crate::server) fn uncertainty(
        &self,
        detector: &Detector,
        text: &str,
        prompt: Option<&str>,
        most: usize,
    ) -> Result<EntropyInput, ApiError> {
        if detector.tokenizer().fingerprint() != self.engine.tokenizer().fingerprint() {
            let message = format!("the model {} does not read the tokens of this profile", self.id);
            return Err(ApiError::invalid("entropy", message));
        }
        let ids: Vec<TokenId> = detector.pieces(text)?.iter().map(|piece| piece.id).collect();
        let before =
            prompt.map_or(Ok(0), |prompt| Ok::<_, Error>(self.engine.prompt_ids(prompt)?.len()))?;
        let read = before + ids.len();
        if read > most {
            let message = format!(
                "the model of this service reads up to {most} tokens, and prompt and text have \
                 {read}; leave out `entropy`"
            );
            return Err(ApiError::invalid("entropy", message));
        }
        let bias = GreenListBias::of(detector.profile().scheme());
        let reading = Reading { prompt, ids: &ids, bias, sampling: None, seed: 0 };
        let tokens = self.engine.uncertainties(reading, |_| {})?;
        Ok(EntropyInput { source: EntropySource::Model(self.id.clone()), sampling: None, tokens })
    }

    /// Answers a request.
    pub(in crate::server) async fn answer(
        self: Arc<Self>,
        endpoint: Endpoint,
        request: Request,
        state: &State,
    ) -> Result<Response, ApiError> {
        let since = Instant::now();
        let caller = request.extensions().get::<Caller>().cloned();
        let id = request.extensions().get::<RequestId>().cloned();
        // Both are there on every route that needs a role.
        let (Some(caller), Some(id)) = (caller, id) else { return Err(ApiError::internal()) };
        let Json { value: body, room } = Json::<Body>::from_request(request, state).await?;
        self.check_model(body.model.as_deref())?;
        let outline = Outline::new(body, endpoint, &self.settings, &self.profiles)?;
        let places = self.queue.reserve(outline.texts)?;
        let own = Arc::clone(&self);
        let (outline, plan) = state
            .pool()
            .run(move || {
                let plan = outline.plan(&own.engine, own.template.as_ref());
                (outline, plan)
            })
            .await?;
        let Plan { requests, echoes, prompt_tokens } = plan?;
        drop(room);
        let deliveries = self.queue.submit(places, requests)?;
        let mark = outline.mark.clone();
        let asker = Asker {
            caller,
            request: id,
            user_sha256: outline.body.user.as_deref().map(|user| sha256_hex(user.as_bytes())),
            since,
        };
        let collector = Collector {
            deliveries,
            envelope: Envelope {
                endpoint,
                id: format!("{}{:014x}", endpoint.id_prefix(), random_seed()?),
                created: now(),
                model: self.id.clone(),
                fingerprint: self.fingerprint.clone(),
                mark: mark.clone(),
                has_logprobs: outline.logprobs.is_some(),
                prompt_tokens,
            },
            trace: Trace::new(state.clone(), asker, mark.clone(), echoes.len()),
            echoes,
            engine: Arc::clone(&self.engine),
        };
        let mut response = if outline.streams() {
            collector.stream(outline.includes_usage()).await?
        } else {
            axum::Json(collector.whole().await?).into_response()
        };
        let headers = response.headers_mut();
        let watermarked = if mark.is_some() { "true" } else { "false" };
        headers.insert(WATERMARKED, HeaderValue::from_static(watermarked));
        if let Some(name) = mark.and_then(|profile| HeaderValue::from_str(&profile.name).ok()) {
            headers.insert(PROFILE, name);
        }
        Ok(response)
    }

    fn check_model(&self, name: Option<&str>) -> Result<(), ApiError> {
        match name {
            Some(name) if !self.is_called(name) => Err(model_not_found(name).param("model")),
            _ => Ok(()),
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full { retry_after } => {
                Self::busy("queue_full", refusal.to_string(), retry_after.as_secs())
            }
            Refusal::Closed => Self::unavailable("closed", refusal.to_string(), 5),
            Refusal::Invalid(error) => error.into(),
        }
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// What decides the tokens of a seed: this crate's version, the model's shape and weights as far
/// as its file says, the tokenizer, and the device if it is not the CPU, whose levels all compute
/// the same bits.
fn fingerprint(engine: &TextEngine) -> String {
    let info = engine.model().info();
    let bytes = std::fs::metadata(&info.path).map_or(0, |metadata| metadata.len());
    let is_cpu = engine.model().device().is_cpu();
    let place = if is_cpu { String::new() } else { format!(" {}", info.kernels) };
    let said = format!(
        "{:?} {} {} {} {} {} {bytes} {}{place}",
        info.architecture,
        info.layers,
        info.hidden,
        info.vocab_size,
        info.context_length,
        info.weights,
        engine.tokenizer().fingerprint(),
    );
    let digest = sha256_hex(said.as_bytes());
    format!("greenmark-{}-{}", env!("CARGO_PKG_VERSION"), &digest[..12])
}
