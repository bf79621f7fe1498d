//! The thread that owns the model: texts join and leave between steps, first come first served.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;

use super::queue::{Delivery, Job, Places, QueueRoom, Status};
use crate::engine::{Event, RequestId, Session, TextEngine};

/// A group under way. Dropping it gives its places back and tells its client that it ended.
struct Group {
    deliveries: UnboundedSender<Delivery>,
    texts: Vec<Text>,
    cache_tokens: usize,
    since: Instant,
    _places: Places,
}

/// One text of a group.
struct Text {
    id: RequestId,
    /// Bytes of text that can no longer change.
    length: usize,
    /// Tokens delivered.
    steps: usize,
    /// Text of the last step, which is delivered together with the end.
    rest: String,
    done: bool,
}

/// What the thread works with.
pub(super) struct Worker {
    pool: rayon::ThreadPool,
    room: QueueRoom,
    jobs: Receiver<Job>,
    status: Arc<Status>,
    waiting: VecDeque<Job>,
    running: Vec<Group>,
    /// No more jobs will come.
    closed: bool,
}

impl Worker {
    pub(super) fn new(
        pool: rayon::ThreadPool,
        room: QueueRoom,
        jobs: Receiver<Job>,
        status: Arc<Status>,
    ) -> Self {
        let (waiting, running) = (VecDeque::new(), Vec::new());
        Self { pool, room, jobs, status, waiting, running, closed: false }
    }

    /// Works until nothing is left and nothing can come.
    pub(super) fn run(mut self, engine: &TextEngine) {
        let mut session = self.session(engine);
        loop {
            self.take_in();
            let is_idle = self.waiting.is_empty() && self.running.is_empty();
            if self.status.abort.load(Ordering::Relaxed) || self.closed && is_idle {
                break;
            }
            // A fault of one step must not take the service down or leave a client waiting: the
            // texts under way are lost, their clients are told, and a fresh session goes on.
            let turn = catch_unwind(AssertUnwindSafe(|| self.turn(&mut session)));
            if turn.is_err() {
                self.status.panics.fetch_add(1, Ordering::Relaxed);
                self.running.clear();
                session = self.session(engine);
            }
            self.report();
        }
        self.status.ended.store(true, Ordering::Relaxed);
    }

    fn session<'a>(&self, engine: &'a TextEngine) -> Session<'a> {
        Session::new(engine.model(), engine.tokenizer()).with_prompt_chunk(self.room.prompt_chunk)
    }

    /// Takes what has come; sleeps when there is nothing to do.
    fn take_in(&mut self) {
        if self.waiting.is_empty() && self.running.is_empty() {
            match self.jobs.recv() {
                Ok(job) => self.waiting.push_back(job),
                Err(_) => self.closed = true,
            }
        }
        loop {
            match self.jobs.try_recv() {
                Ok(job) => self.waiting.push_back(job),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.closed = true;
                    return;
                }
            }
        }
    }

    /// One step of everybody.
    fn turn(&mut self, session: &mut Session<'_>) {
        self.waiting.retain(|job| !job.deliveries.is_closed());
        self.running.retain(|group| {
            let stays = !group.deliveries.is_closed();
            if !stays {
                group.leave(session);
            }
            stays
        });
        self.admit(session);
        self.report();
        if session.active() == 0 {
            return;
        }
        match self.pool.install(|| session.step()) {
            Ok(events) => {
                self.status.steps.fetch_add(1, Ordering::Relaxed);
                self.status.failures.store(0, Ordering::Relaxed);
                for event in events {
                    self.deliver(session, event);
                }
                self.retire();
            }
            Err(error) => {
                // A fault of the pass as a whole: nobody's result can be trusted.
                self.status.failures.fetch_add(1, Ordering::Relaxed);
                let error = Arc::new(error);
                for group in self.running.drain(..) {
                    group.leave(session);
                    group.send(Delivery::Failed(Arc::clone(&error)));
                }
            }
        }
    }

    /// Lets waiting groups join, in their order, as long as there is room.
    fn admit(&mut self, session: &mut Session<'_>) {
        while let Some(job) = self.waiting.front() {
            let tokens = job.cache_tokens();
            let held: usize = self.running.iter().map(|group| group.cache_tokens).sum();
            let fits = session.active() + job.requests.len() <= self.room.max_batch
                && held.saturating_add(tokens) <= self.room.cache_tokens;
            // The first in the line is waited for, else a large group might never get its turn.
            if !fits {
                return;
            }
            let Some(job) = self.waiting.pop_front() else { return };
            self.join(session, job, tokens);
        }
    }

    fn join(&mut self, session: &mut Session<'_>, job: Job, cache_tokens: usize) {
        let Job { requests, deliveries, places } = job;
        let since = Instant::now();
        let mut group =
            Group { deliveries, texts: Vec::new(), cache_tokens, since, _places: places };
        for request in requests {
            match session.add(request) {
                Ok(id) => group.texts.push(Text::new(id)),
                Err(error) => {
                    group.leave(session);
                    group.send(Delivery::Failed(Arc::new(error)));
                    return;
                }
            }
        }
        self.running.push(group);
    }

    fn deliver(&mut self, session: &mut Session<'_>, event: Event) {
        let (Event::Text(id, _) | Event::Finished(id, _) | Event::Failed(id, _)) = &event;
        let place = |group: &Group| group.texts.iter().position(|text| text.id == *id);
        let found = self.running.iter_mut().find_map(|group| place(group).map(|at| (group, at)));
        let Some((group, index)) = found else { return };
        match event {
            Event::Text(id, fresh) => {
                let text = &mut group.texts[index];
                let Some(drawn) = session.drawn(id) else {
                    // It ended with this step; the end follows.
                    text.rest.push_str(&fresh);
                    return;
                };
                text.length += fresh.len();
                let from = text.steps;
                let to = drawn.steps.partition_point(|step| step.offset < text.length).max(from);
                text.steps = to;
                let alternatives = drawn.alternatives.get(from..to).unwrap_or_default().to_vec();
                let steps = drawn.steps[from..to].to_vec();
                group.send(Delivery::Text { index, text: fresh, steps, alternatives });
            }
            Event::Finished(_, generation) => {
                let text = &mut group.texts[index];
                text.done = true;
                let rest = std::mem::take(&mut text.rest);
                group.send(Delivery::Finished { index, text: rest, generation });
            }
            Event::Failed(_, error) => {
                group.leave(session);
                group.send(Delivery::Failed(error));
                for text in &mut group.texts {
                    text.done = true;
                }
            }
        }
    }

    /// Lets groups go whose texts are all done.
    fn retire(&mut self) {
        let status = &self.status;
        self.running.retain(|group| {
            let done = group.texts.iter().all(|text| text.done);
            if done {
                note_duration(status, group.since.elapsed());
            }
            !done
        });
    }

    fn report(&self) {
        let running = self.running.iter().map(|group| group.texts.len()).sum();
        let waiting = self.waiting.iter().map(|job| job.requests.len()).sum();
        self.status.running.store(running, Ordering::Relaxed);
        self.status.waiting.store(waiting, Ordering::Relaxed);
    }
}

impl Group {
    /// A client that went away is no fault; its texts leave at the next step.
    fn send(&self, delivery: Delivery) {
        let _ = self.deliveries.send(delivery);
    }

    fn leave(&self, session: &mut Session<'_>) {
        for text in &self.texts {
            session.cancel(text.id);
        }
    }
}

impl Text {
    fn new(id: RequestId) -> Self {
        Self { id, length: 0, steps: 0, rest: String::new(), done: false }
    }
}

/// Moves the mean an eighth of the way to the newest time.
fn note_duration(status: &Status, elapsed: Duration) {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let mean = status.mean_millis.load(Ordering::Relaxed);
    let mean = if mean == 0 { millis } else { mean - mean / 8 + millis / 8 };
    status.mean_millis.store(mean, Ordering::Relaxed);
}
