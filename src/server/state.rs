//! What every handler shares.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::access::Access;
use super::audit::Audit;
use super::error::ApiError;
use super::generation::Generator;
use super::limits::Limits;
use super::metrics::Metrics;
use super::pool::Pool;
use super::profiles::Profiles;
use crate::error::{Error, Result};
use crate::extract::{Extracted, Format, Isolation, Limits as FileLimits, isolated};
use crate::signature::SigningKey;

/// Bytes that one permit of the common memory stands for.
const PERMIT: usize = 1024;

/// The shared state; a handle, cheap to clone.
#[derive(Clone, Debug)]
pub struct State(Arc<Shared>);

/// What a service is set up with before anything is loaded.
#[derive(Debug)]
pub struct Setup {
    /// What a client may ask at most.
    pub limits: Limits,
    /// Who may do what.
    pub access: Access,
    /// Where audit lines go.
    pub audit: Audit,
    /// The key that signs reports; none leaves them unsigned.
    pub signer: Option<SigningKey>,
    /// How foreign files are read.
    pub reader: Isolation,
}

#[derive(Debug)]
struct Shared {
    setup: Setup,
    metrics: Metrics,
    /// One permit for each process that reads a file.
    readers: Semaphore,
    /// One permit: the model reads one standing text at a time.
    reading: Arc<Semaphore>,
    pool: Pool,
    memory: Arc<Semaphore>,
    ready: OnceLock<Ready>,
    started: Instant,
}

/// What is there once tokenizers and models are loaded.
#[derive(Debug)]
pub struct Ready {
    /// The profiles that texts are held against.
    pub profiles: Profiles,
    /// The model that texts are generated with; `None` in a detection service.
    pub generator: Option<Arc<Generator>>,
}

/// A share of the memory for bodies, given back when dropped.
#[derive(Debug)]
pub struct Room(Option<OwnedSemaphorePermit>);

impl Room {
    /// No share.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Holds `other` too.
    pub(super) fn join(&mut self, other: Self) {
        match (&mut self.0, other.0) {
            (Some(own), Some(other)) => own.merge(other),
            (own @ None, other) => *own = other,
            (Some(_), None) => {}
        }
    }
}

impl State {
    /// The state of a service that is not ready yet.
    ///
    /// # Errors
    /// [`Error::Backend`] when the system gives no threads.
    pub fn new(setup: Setup) -> Result<Self> {
        let limits = &setup.limits;
        let permits =
            (limits.bodies_in_memory.max(limits.max_body) / PERMIT + 1).min(Semaphore::MAX_PERMITS);
        Ok(Self(Arc::new(Shared {
            pool: Pool::new(limits.workers, limits.waiting)?,
            memory: Arc::new(Semaphore::new(permits)),
            ready: OnceLock::new(),
            started: Instant::now(),
            metrics: Metrics::default(),
            readers: Semaphore::new(limits.workers),
            reading: Arc::new(Semaphore::new(1)),
            setup,
        })))
    }

    /// Makes the service usable. Only the first call has an effect.
    pub fn set_ready(&self, ready: Ready) {
        // The loader runs once; a second value would change verdicts under running requests.
        let _ = self.0.ready.set(ready);
    }

    /// Profiles and engine.
    ///
    /// # Errors
    /// 503 while they are being loaded.
    pub fn ready(&self) -> Result<&Ready, ApiError> {
        self.0.ready.get().ok_or_else(|| {
            ApiError::unavailable("starting", "the service is loading; try again shortly", 2)
        })
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.setup.limits
    }

    /// Who may do what.
    #[must_use]
    pub fn access(&self) -> &Access {
        &self.0.setup.access
    }

    /// Where audit lines go.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.0.setup.audit
    }

    /// The key that signs reports.
    #[must_use]
    pub fn signer(&self) -> Option<&SigningKey> {
        self.0.setup.signer.as_ref()
    }

    /// Waits for the turn of a text that the model is to read; it computes on all cores.
    pub(super) async fn reading_turn(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.0.reading).acquire_owned().await.ok()
    }

    /// The largest file, part of a file and text.
    #[must_use]
    pub fn file_limits(&self) -> &FileLimits {
        &self.0.setup.reader.limits
    }

    /// The text of a file of a foreign format, read by a process that can be lost.
    ///
    /// # Errors
    /// As [`isolated`].
    pub async fn extract(&self, format: Format, bytes: &[u8]) -> Result<Extracted, Error> {
        // The semaphore is never closed; without a permit a process would still be bounded.
        let _permit = self.0.readers.acquire().await.ok();
        isolated(format, bytes, &self.0.setup.reader).await
    }

    /// The figures of the service.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The threads that judge.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.0.pool
    }

    /// When the service started.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.0.started
    }

    /// Waits for room for a body of `bytes`.
    pub(super) async fn room(&self, bytes: usize) -> Room {
        let permits = u32::try_from(bytes.div_ceil(PERMIT)).unwrap_or(u32::MAX);
        // The semaphore is never closed; without a permit a body would still be bounded.
        Room(Arc::clone(&self.0.memory).acquire_many_owned(permits).await.ok())
    }
}
