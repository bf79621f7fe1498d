//! From the fields of a request to what the engine is to do and what the reply is to hold.

use std::sync::Arc;

use serde_json::Number;

use super::GenerationProfile;
use super::body::{Body, Logprobs, Stop, StreamOptions};
use super::endpoint::Endpoint;
use super::lists::MAX_STOPS;
use super::policy::{Wish, check_bounds, is_marked};
use super::prompt::{self, Prompt};
use super::refused::refuse_fields;
use super::settings::{GenerationSettings, Policy};
use crate::engine::{Mark, Observe, Request, TextEngine, random_seed};
use crate::server::error::ApiError;
use crate::text::PromptTemplate;

/// Bytes of a stop string; each new token is compared with all of them.
const MAX_STOP_BYTES: usize = 1024;

/// What is known of a request before its prompts are encoded.
pub(super) struct Outline {
    pub(super) body: Body,
    pub(super) endpoint: Endpoint,
    /// Texts for each prompt.
    pub(super) n: usize,
    /// Texts altogether.
    pub(super) texts: usize,
    pub(super) mark: Option<Arc<GenerationProfile>>,
    /// How many alternatives the reply lists at each token; `None`: no log-probabilities.
    pub(super) logprobs: Option<usize>,
}

/// What the engine is to do, and what the reply is to hold.
pub(super) struct Plan {
    pub(super) requests: Vec<Request>,
    /// The prompt that each text repeats.
    pub(super) echoes: Vec<Option<String>>,
    /// Tokens of all prompts.
    pub(super) prompt_tokens: usize,
}

impl Outline {
    /// Reads everything that needs no tokenizer.
    pub(super) fn new(
        body: Body,
        endpoint: Endpoint,
        settings: &GenerationSettings,
        profiles: &[Arc<GenerationProfile>],
    ) -> Result<Self, ApiError> {
        refuse_fields(&body, endpoint)?;
        let n = body.n.unwrap_or(1);
        let prompts = prompt::count(&body, endpoint)?;
        let texts = n.saturating_mul(prompts);
        if n == 0 || texts > settings.max_batch {
            return Err(ApiError::invalid(
                "n",
                format!(
                    "n: {n} with {prompts} prompts is not allowed; allowed: at least 1, and at most \
                     {} texts in one request",
                    settings.max_batch
                ),
            ));
        }
        if let Some(best_of) = body.best_of.filter(|&best_of| best_of != n) {
            let message = format!(
                "best_of: {best_of} is not supported; leave it out or give it as n, which is {n}"
            );
            return Err(ApiError::invalid("best_of", message));
        }
        let logprobs = logprobs(&body, endpoint, settings.max_logprobs)?;
        check_stream_options(&body)?;
        let wish = Wish { watermark: body.watermark, profile: body.profile.as_deref() };
        let mark = if is_marked(settings.policy, wish)? {
            Some(find(profiles, body.profile.as_deref())?)
        } else {
            None
        };
        if settings.policy == Policy::Enforce {
            check_bounds(&settings.enforce, &body.sampling(), logprobs)?;
        }
        Ok(Self { body, endpoint, n, texts, mark, logprobs })
    }

    /// Whether the reply comes in pieces.
    pub(super) fn streams(&self) -> bool {
        self.body.stream == Some(true)
    }

    /// Whether a stream ends with the number of tokens.
    pub(super) fn includes_usage(&self) -> bool {
        self.body.stream_options.is_some_and(|options| options.include_usage == Some(true))
    }

    /// Encodes the prompts and checks everything that the engine would refuse.
    pub(super) fn plan(
        &self,
        engine: &TextEngine,
        template: Option<&PromptTemplate>,
    ) -> Result<Plan, ApiError> {
        let body = &self.body;
        let prompts = prompt::encode(body, self.endpoint, engine, template)?;
        let chain = engine.chain(body.sampling())?;
        let wanted = max_tokens(body)?;
        let seed = seed(body.seed.as_ref())?;
        let stop = stop(body.stop.as_ref())?;
        let mark = self.mark.as_ref().map(|profile| &profile.mark);
        let observe = Observe {
            chances: mark.and_then(Mark::bias),
            alternatives: self.logprobs.unwrap_or(0),
        };
        let (mut requests, mut echoes) = (Vec::new(), Vec::new());
        let mut prompt_tokens = 0;
        for Prompt { ids, echo } in prompts {
            let max_tokens = engine.max_tokens(ids.len(), wanted)?;
            if let Some(least) = body.min_tokens.filter(|&least| least > max_tokens) {
                let message = format!(
                    "min_tokens: {least} is not allowed; allowed: at most max_tokens, which is {max_tokens}"
                );
                return Err(ApiError::invalid("min_tokens", message));
            }
            prompt_tokens += ids.len();
            for sample in (0..).take(self.n) {
                requests.push(Request {
                    prompt: ids.clone(),
                    chain: Arc::clone(&chain),
                    marker: mark.map(Mark::marker),
                    seed,
                    sample,
                    max_tokens,
                    stop: stop.clone(),
                    end_ids: engine.end_ids().to_vec(),
                    observe,
                });
                echoes.push(echo.clone());
            }
        }
        Ok(Plan { requests, echoes, prompt_tokens })
    }
}

/// The profile that a request names, or the operator's first.
fn find(
    profiles: &[Arc<GenerationProfile>],
    name: Option<&str>,
) -> Result<Arc<GenerationProfile>, ApiError> {
    let found = match name {
        None => profiles.first(),
        Some(name) => profiles.iter().find(|profile| profile.name == name),
    };
    found.map(Arc::clone).ok_or_else(|| {
        let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        let message = format!(
            "profile: {:?} is no active profile of this model; active: {}",
            name.unwrap_or_default(),
            names.join(", ")
        );
        ApiError::invalid("profile", message)
    })
}

fn logprobs(body: &Body, endpoint: Endpoint, most: usize) -> Result<Option<usize>, ApiError> {
    let (name, found) = match (endpoint, body.logprobs) {
        (Endpoint::Completions, Some(Logprobs::Count(count))) => ("logprobs", Some(count)),
        (Endpoint::Completions, None | Some(Logprobs::Flag(false))) => return Ok(None),
        (Endpoint::Completions, Some(Logprobs::Flag(true))) => {
            let message = "logprobs: true belongs to chat; give the number of alternatives";
            return Err(ApiError::invalid("logprobs", message));
        }
        (Endpoint::Chat, Some(Logprobs::Flag(true))) => {
            ("top_logprobs", Some(body.top_logprobs.unwrap_or(0)))
        }
        (Endpoint::Chat, Some(Logprobs::Count(_))) => {
            let message = "logprobs: a number belongs to /v1/completions; give true, and the \
                           number of alternatives as top_logprobs";
            return Err(ApiError::invalid("logprobs", message));
        }
        (Endpoint::Chat, None | Some(Logprobs::Flag(false))) => match body.top_logprobs {
            None | Some(0) => return Ok(None),
            Some(_) => {
                let message = "top_logprobs: needs \"logprobs\": true";
                return Err(ApiError::invalid("top_logprobs", message));
            }
        },
    };
    if let Some(count) = found.filter(|&count| count > most) {
        let message = format!("{name}: {count} is not allowed; allowed: at most {most}");
        return Err(ApiError::invalid(name, message));
    }
    if body.echo == Some(true) {
        let message = "logprobs: not together with echo: the prompt's own are not computed";
        return Err(ApiError::invalid("logprobs", message));
    }
    Ok(found)
}

fn check_stream_options(body: &Body) -> Result<(), ApiError> {
    let Some(StreamOptions { include_obfuscation, .. }) = body.stream_options else {
        return Ok(());
    };
    if body.stream != Some(true) {
        let message = "stream_options: needs \"stream\": true";
        return Err(ApiError::invalid("stream_options", message));
    }
    if include_obfuscation == Some(true) {
        let name = "stream_options.include_obfuscation";
        let message = format!("{name} is not supported by this service; leave it out");
        return Err(ApiError::bad_request("unsupported_field", message).param(name));
    }
    Ok(())
}

/// The limit, which has two names: both may be given when they agree.
fn max_tokens(body: &Body) -> Result<Option<usize>, ApiError> {
    match (body.max_tokens, body.max_completion_tokens) {
        (Some(old), Some(new)) if old != new => Err(ApiError::invalid(
            "max_completion_tokens",
            format!(
                "max_completion_tokens: {new} and max_tokens: {old} disagree; give one of them"
            ),
        )),
        (old, new) => Ok(new.or(old)),
    }
}

/// A whole number of 64 bits; a negative one stands for its two's complement.
fn seed(given: Option<&Number>) -> Result<u64, ApiError> {
    let Some(number) = given else { return Ok(random_seed()?) };
    number.as_u64().or_else(|| number.as_i64().map(i64::cast_unsigned)).ok_or_else(|| {
        let message = format!("seed: {number} is not allowed; allowed: a whole number of 64 bits");
        ApiError::invalid("seed", message)
    })
}

fn stop(given: Option<&Stop>) -> Result<Vec<String>, ApiError> {
    let Some(Stop { strings: stops, given }) = given else { return Ok(Vec::new()) };
    if *given > MAX_STOPS {
        let message =
            format!("stop: {given} strings are not allowed; allowed: at most {MAX_STOPS}");
        return Err(ApiError::invalid("stop", message));
    }
    if let Some(stop) = stops.iter().find(|stop| !(1..=MAX_STOP_BYTES).contains(&stop.len())) {
        let message = format!(
            "stop: a string of {} bytes is not allowed; allowed: 1 to {MAX_STOP_BYTES}",
            stop.len()
        );
        return Err(ApiError::invalid("stop", message));
    }
    Ok(stops.clone())
}
