//! The way to the one thread that owns the model: a place first, then the work.
//!
//! A place is one text, running or waiting. Whoever gets none is told at once, so nothing piles
//! up; whoever leaves gives the place back at the next step.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::worker::Worker;
use crate::engine::{Alternative, Generation, Request, StepRecord, TextEngine};
use crate::error::{Error, Result};

/// How much there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRoom {
    /// Texts that step together; at least 1.
    pub max_batch: usize,
    /// Texts that may wait.
    pub queue: usize,
    /// Tokens that the caches of all running texts may hold; at least 1.
    pub cache_tokens: usize,
    /// Prompt tokens of one text that a step reads; at least 1.
    pub prompt_chunk: usize,
    /// Threads of the engine; `None`: one per core.
    pub threads: Option<usize>,
}

/// Why work was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Every place is taken.
    #[error("every place is taken; try again in {} s", retry_after.as_secs())]
    Full {
        /// When a place may be free.
        retry_after: Duration,
    },
    /// The service is shutting down, or its thread has ended.
    #[error("the generator takes no more work")]
    Closed,
    /// The work is more than there will ever be room for.
    #[error(transparent)]
    Invalid(#[from] Error),
}

/// What comes back for a group of texts.
#[derive(Debug)]
pub enum Delivery {
    /// Text that can no longer change, with what is known of the tokens that begin in it.
    Text {
        /// Which of the texts.
        index: usize,
        /// The text since the last delivery.
        text: String,
        /// One entry per token.
        steps: Vec<StepRecord>,
        /// One entry per token when alternatives were asked for, else empty.
        alternatives: Vec<Vec<Alternative>>,
    },
    /// A text is done. Its tokens behind those delivered before are in the generation.
    Finished {
        /// Which of the texts.
        index: usize,
        /// The text since the last delivery.
        text: String,
        /// All of it.
        generation: Box<Generation>,
    },
    /// The texts cannot be had; nothing follows.
    Failed(Arc<Error>),
}

/// Places for texts, held until they are given to the thread and until it is done with them.
#[derive(Debug)]
pub struct Places {
    permit: OwnedSemaphorePermit,
}

/// A group of texts on its way to the thread.
pub(super) struct Job {
    pub(super) requests: Vec<Request>,
    pub(super) deliveries: UnboundedSender<Delivery>,
    pub(super) places: Places,
}

impl Job {
    /// Tokens that its caches hold at their fullest.
    pub(super) fn cache_tokens(&self) -> usize {
        cache_tokens(&self.requests)
    }
}

fn cache_tokens(requests: &[Request]) -> usize {
    let of = |request: &Request| request.prompt.len().saturating_add(request.max_tokens);
    requests.iter().map(of).fold(0, usize::saturating_add)
}

/// What the thread says of itself.
#[derive(Debug, Default)]
pub(super) struct Status {
    pub(super) running: AtomicUsize,
    pub(super) waiting: AtomicUsize,
    pub(super) steps: AtomicU64,
    pub(super) panics: AtomicU64,
    /// Steps that failed since the last that did not.
    pub(super) failures: AtomicU64,
    /// Mean time of a group, in milliseconds.
    pub(super) mean_millis: AtomicU64,
    pub(super) abort: AtomicBool,
    pub(super) ended: AtomicBool,
}

/// How busy the thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Texts that step.
    pub running: usize,
    /// Texts that wait.
    pub waiting: usize,
    /// Steps since the start.
    pub steps: u64,
    /// Steps that panicked since the start; the texts under way were lost.
    pub panics: u64,
}

/// The thread that owns the model, from outside.
#[derive(Debug)]
pub struct GenerationQueue {
    room: QueueRoom,
    places: Arc<Semaphore>,
    status: Arc<Status>,
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl GenerationQueue {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a room without places; [`Error::Backend`] when the system gives
    /// no threads.
    pub fn start(engine: Arc<TextEngine>, room: QueueRoom) -> Result<Self> {
        if room.max_batch == 0 || room.cache_tokens == 0 {
            return Err(Error::parameter("max_batch and cache_tokens", 0, "at least 1"));
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(room.threads.unwrap_or(0))
            .thread_name(|index| format!("wm-engine-{index}"))
            .build()
            .map_err(|source| Error::backend("starting the threads of the engine", source))?;
        let (sender, receiver) = channel();
        let status = Arc::new(Status::default());
        let worker = Worker::new(pool, room, receiver, Arc::clone(&status));
        let thread = std::thread::Builder::new()
            .name("wm-generator".to_owned())
            .spawn(move || worker.run(&engine))
            .map_err(|source| Error::backend("starting the generator's thread", source))?;
        Ok(Self {
            room,
            places: Arc::new(Semaphore::new(room.max_batch.saturating_add(room.queue))),
            status,
            jobs: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// How much there is room for.
    #[must_use]
    pub fn room(&self) -> QueueRoom {
        self.room
    }

    /// Takes places for `texts` texts, which are to step together.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn reserve(&self, texts: usize) -> Result<Places, Refusal> {
        if !self.is_open() {
            return Err(Refusal::Closed);
        }
        let wanted = u32::try_from(texts).unwrap_or(u32::MAX);
        Arc::clone(&self.places)
            .try_acquire_many_owned(wanted)
            .map(|permit| Places { permit })
            .map_err(|_| Refusal::Full { retry_after: self.retry_after() })
    }

    /// Hands texts to the thread. Dropping the receiver takes them back: what runs leaves at the
    /// next step, what waits never starts. A receiver that ends before its texts are finished
    /// says that the thread lost them.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for more texts than places, none, or more tokens than the caches may
    /// ever hold; [`Refusal::Closed`].
    pub fn submit(
        &self,
        places: Places,
        requests: Vec<Request>,
    ) -> Result<UnboundedReceiver<Delivery>, Refusal> {
        let most = places.permit.num_permits().min(self.room.max_batch);
        if !(1..=most).contains(&requests.len()) {
            let error = Error::parameter("texts", requests.len(), format!("1 to {most}"));
            return Err(error.into());
        }
        let tokens = cache_tokens(&requests);
        if tokens > self.room.cache_tokens {
            return Err(Error::parameter(
                "max_tokens",
                format!("{tokens} tokens of prompts and new ones together"),
                format!("at most {} (cache_tokens of this service)", self.room.cache_tokens),
            )
            .into());
        }
        // No bound is needed: a text has at most max_tokens deliveries, and the thread that steps
        // everybody must not wait for one slow reader.
        let (deliveries, receiver) = unbounded_channel();
        let sent = match &*self.jobs.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(jobs) => jobs.send(Job { requests, deliveries, places }).is_ok(),
            None => false,
        };
        if sent { Ok(receiver) } else { Err(Refusal::Closed) }
    }

    /// Whether work is taken.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let closed = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        // A device that failed for good fails every step; one failure can be a matter of memory.
        let answers = self.status.failures.load(Ordering::Relaxed) < 3;
        !closed && answers && !self.status.ended.load(Ordering::Relaxed)
    }

    /// How busy the thread is.
    #[must_use]
    pub fn load(&self) -> Load {
        Load {
            running: self.status.running.load(Ordering::Relaxed),
            waiting: self.status.waiting.load(Ordering::Relaxed),
            steps: self.status.steps.load(Ordering::Relaxed),
            panics: self.status.panics.load(Ordering::Relaxed),
        }
    }

    /// Takes no more work; what was taken is finished.
    pub fn close(&self) {
        drop(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Takes no more work and drops what was taken at the next step.
    pub fn abort(&self) {
        self.status.abort.store(true, Ordering::Relaxed);
        self.close();
    }

    /// Waits until the thread has ended; call [`GenerationQueue::close`] or [`GenerationQueue::abort`] before. Blocks.
    pub fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A thread that panicked has ended too; its clients were told.
        let _ = thread.map(JoinHandle::join);
    }

    /// When a place may be free: after the mean time of a group.
    fn retry_after(&self) -> Duration {
        let mean = self.status.mean_millis.load(Ordering::Relaxed);
        Duration::from_secs(mean.div_ceil(1000).clamp(1, 300))
    }
}

impl Drop for GenerationQueue {
    fn drop(&mut self) {
        self.abort();
        self.join();
    }
}
