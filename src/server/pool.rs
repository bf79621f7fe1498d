//! The threads that judge texts, so that no work of theirs holds up the threads that answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use axum::http::StatusCode;
use tokio::sync::oneshot;

use super::error::{ApiError, ErrorType};
use crate::error::{Error, Result};

type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads behind a bounded queue.
#[derive(Clone, Debug)]
pub struct Pool {
    queue: SyncSender<Job>,
    waiting: Arc<AtomicUsize>,
}

/// Why a job gave no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolError {
    /// As many jobs wait as may.
    Full,
    /// The job panicked.
    Panicked,
}

impl Pool {
    /// Starts `threads` threads; up to `waiting` jobs wait for them.
    ///
    /// # Errors
    /// [`Error::Backend`] when the system gives no threads.
    pub fn new(threads: usize, waiting: usize) -> Result<Self> {
        let (queue, jobs) = sync_channel::<Job>(waiting.max(1));
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..threads.max(1) {
            let jobs = Arc::clone(&jobs);
            thread::Builder::new()
                .name("judge".to_owned())
                .spawn(move || work(&jobs))
                .map_err(|source| Error::backend("starting the threads that judge", source))?;
        }
        Ok(Self { queue, waiting: Arc::default() })
    }

    /// Jobs that wait for a thread.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Runs `job` on a thread of the pool. A job whose caller has left before its turn is dropped.
    ///
    /// # Errors
    /// [`PoolError`].
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let (reply, answer) = oneshot::channel();
        let place = Place::take(&self.waiting);
        let job: Job = Box::new(move || {
            drop(place);
            if !reply.is_closed()
                && let Ok(value) = catch_unwind(AssertUnwindSafe(job))
            {
                // The caller may have left meanwhile.
                let _ = reply.send(value);
            }
        });
        match self.queue.try_send(job) {
            Ok(()) => answer.await.map_err(|_| PoolError::Panicked),
            // The threads end with the queue, which this pool holds.
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Err(PoolError::Full),
        }
    }
}

/// A place in the queue, given back when dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(waiting: &Arc<AtomicUsize>) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(waiting))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        // One thread waits for a job with the lock in hand, the others for the lock.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => job(),
            Err(_) => return,
        }
    }
}

impl From<PoolError> for ApiError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Full => {
                let message = "too many texts wait to be judged; try again later";
                Self::busy("queue_full", message, 1)
            }
            PoolError::Panicked => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                ErrorType::Server,
                "internal",
                "the service failed on this text; please report it with the request id",
            ),
        }
    }
}
