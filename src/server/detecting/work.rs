//! Judging an input under a plan, on the threads that judge, and leaving its trace.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::input::Input;
use super::plan::{Chosen, Plan};
use crate::detect::{Joined, Report, Sentences, TokenDetails, WindowSearch, join};
use crate::document::{Circumstances, Detector, sha256_hex};
use crate::error::{Error, Result};
use crate::server::access::Caller;
use crate::server::audit::Entry;
use crate::server::error::ApiError;
use crate::server::layers::{RequestId, log};
use crate::server::pool::PoolError;
use crate::server::state::State;

/// Longest input whose tokens are listed one by one, in bytes of text; the list takes more than
/// a hundred times as much memory (`tools/check-web sizing`).
const LONGEST_LISTED: usize = 1_000_000;

/// Bytes of text, over all looks under all profiles, that are judged at once by the thread that
/// read the request.
const QUICK: usize = 2048;

/// Bytes of a text that hold about a token.
const BYTES_PER_TOKEN: usize = 4;

/// How long a text of many waits before it tries a full queue again.
const PAUSE: Duration = Duration::from_millis(20);

/// On whose behalf texts are judged.
#[derive(Clone, Debug)]
pub(in crate::server) struct Asker {
    pub(in crate::server) state: State,
    pub(in crate::server) caller: Caller,
    pub(in crate::server) request: RequestId,
    /// The name of the action in the audit.
    pub(in crate::server) action: &'static str,
}

/// A judged input.
#[derive(Debug)]
pub(in crate::server) struct Judged {
    /// One for each profile of the plan, in its order.
    pub(in crate::server) reports: Vec<Report>,
    /// What they conclude.
    pub(in crate::server) joined: Joined,
}

impl Plan {
    /// Judges an input and records it. Takes as long as the text needs: for threads of the pool.
    ///
    /// # Errors
    /// 400 for options that the input cannot have, and for ids outside the vocabulary.
    pub(in crate::server) fn judge(
        &self,
        input: &Input,
        asker: &Asker,
    ) -> Result<Judged, ApiError> {
        self.check(input)?;
        let started = Instant::now();
        let reports = self
            .profiles
            .iter()
            .map(|chosen| self.report(&chosen.detector, input))
            .collect::<Result<Vec<Report>, ApiError>>()?;
        let joined = join(&reports).ok_or_else(ApiError::internal)?;
        let duration = started.elapsed();
        for (chosen, report) in self.profiles.iter().zip(&reports) {
            asker.state.audit().record(&Entry {
                action: asker.action,
                request_id: &asker.request.0,
                caller: &asker.caller.name,
                user_sha256: None,
                input_sha256: Some(&report.input_sha256),
                profile: Some(&chosen.name),
                key_id: Some(&report.key_id),
                verdict: Some(report.verdict),
                duration,
            });
        }
        let tokens = reports.get(joined.deciding).map_or(0, |report| report.tokens);
        asker.state.metrics().judged(joined.verdict, tokens, duration);
        Ok(Judged { reports, joined })
    }

    fn report(&self, detector: &Detector, input: &Input) -> Result<Report, ApiError> {
        let prompt = self.prompt.as_deref();
        match input {
            Input::Text(text) => {
                let entropy = match &self.state.ready()?.generator {
                    Some(generator) if self.entropy => {
                        // It is read once a profile: what the mark could do differs.
                        let most = self.state.limits().entropy_tokens / self.profiles.len().max(1);
                        Some(generator.uncertainty(detector, text, prompt, most)?)
                    }
                    _ => None,
                };
                let circumstances = Circumstances {
                    prompt,
                    normalizers: &self.normalizers,
                    entropy,
                    ..Circumstances::default()
                };
                Ok(detector.text(text, &circumstances)?)
            }
            Input::Tokens(ids) => {
                // As a file that holds the list in its shortest form.
                let list = serde_json::to_vec(ids)
                    .map_err(|source| Error::backend("writing token ids", source))?;
                Ok(detector.ids(ids, sha256_hex(&list), prompt)?)
            }
        }
    }

    /// Whether the input takes well under a millisecond. Another thread would cost about as much
    /// as judging it, and nobody waits longer for it than for an ordinary request.
    pub(in crate::server) fn is_quick(&self, input: &Input) -> bool {
        let length = match input {
            Input::Text(text) => text.len(),
            Input::Tokens(ids) => ids.len().saturating_mul(BYTES_PER_TOKEN),
        };
        let length = length.saturating_add(self.prompt.as_ref().map_or(0, String::len));
        let looks = if self.normalizers.is_empty() { 1 } else { 2 };
        let plain = |chosen: &Chosen| {
            let options = chosen.detector.options();
            options.windows == WindowSearch::Off
                && options.details == TokenDetails::Omit
                && options.sentences == Sentences::Omit
        };
        !self.entropy
            && length.saturating_mul(looks * self.profiles.len()) <= QUICK
            && self.profiles.iter().all(plain)
    }

    /// Refuses what an input of this kind and length cannot have.
    fn check(&self, input: &Input) -> Result<(), ApiError> {
        let length = match input {
            Input::Text(text) => text.len(),
            Input::Tokens(ids) => {
                if !self.normalizers.is_empty() {
                    return Err(ApiError::invalid("normalize", "token ids cannot be normalised"));
                }
                if self.sentences {
                    return Err(ApiError::invalid("sentences", "token ids have no sentences"));
                }
                if self.entropy {
                    return Err(ApiError::invalid("entropy", "the model reads texts, not ids"));
                }
                ids.len().saturating_mul(BYTES_PER_TOKEN)
            }
        };
        let lists = |detector: &Detector| detector.options().details == TokenDetails::Include;
        let length = length.saturating_mul(self.profiles.len());
        if length > LONGEST_LISTED && self.profiles.iter().any(|chosen| lists(&chosen.detector)) {
            let message = format!(
                "the tokens of a text are listed up to {LONGEST_LISTED} bytes, times the profiles, \
                 and this one has {length}; leave out `detail` and `format`"
            );
            return Err(ApiError::invalid("detail", message));
        }
        Ok(())
    }
}

impl Asker {
    /// Says in the log what went wrong inside, for an error that is a part of a reply.
    fn log(&self, error: &ApiError) {
        if let Some(cause) = error.cause() {
            log(&format!("request {}: internal error: {cause}", self.request.0));
        }
    }

    /// Pays for a request with this many texts, which stand in the field `param`.
    ///
    /// # Errors
    /// 429, or 400 for more texts than the caller's rate can ever pay for.
    pub(in crate::server) fn charge(
        &self,
        param: &'static str,
        texts: usize,
    ) -> Result<(), ApiError> {
        self.state.access().charge(&self.caller, param, texts)
    }

    /// Runs `job` on a thread of the pool.
    ///
    /// # Errors
    /// 429 when as many jobs wait as may; the job's own error.
    pub(in crate::server) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Self) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let asker = self.clone();
        self.state.pool().run(move || job(&asker)).await?
    }

    /// Runs `job` where it belongs: a text that the model reads takes its turn on a thread beside
    /// the pool, so that seconds of reading keep nobody else waiting.
    ///
    /// # Errors
    /// As [`Asker::run`].
    pub(in crate::server) async fn run_under<T: Send + 'static>(
        &self,
        plan: &Plan,
        job: impl FnOnce(&Self) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        if !plan.entropy {
            return self.run(job).await;
        }
        let turn = self.state.reading_turn().await;
        let asker = self.clone();
        let read = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            job(&asker)
        });
        read.await.map_err(|_| ApiError::internal())?
    }

    /// Runs `job`, and waits while the pool is full: for the parts of a request that was let in.
    ///
    /// # Errors
    /// The job's own error.
    pub(in crate::server) async fn run_patiently<T: Send + 'static>(
        &self,
        job: impl Fn(&Self) -> Result<T, ApiError> + Clone + Send + 'static,
    ) -> Result<T, ApiError> {
        loop {
            let (asker, job) = (self.clone(), job.clone());
            match self.state.pool().run(move || job(&asker)).await {
                Err(PoolError::Full) => sleep(PAUSE).await,
                Err(error) => return Err(error.into()),
                Ok(result) => return result.inspect_err(|error| self.log(error)),
            }
        }
    }
}
