//! Many texts: judged on all cores, shown in the order of the inputs, with bounded memory.
//!
//! One thread takes the inputs in order, others judge them, and this thread shows the results in
//! order. A [`Gate`] bounds what is under way, so that neither a long file nor a slow text piles
//! anything up, and the output is the same for any number of threads.
//!
//! The judges are plain threads, not workers of rayon: a judge may hold the lock of the model that
//! reads for `--entropy` while the model computes in rayon's pool, whose workers take up other jobs
//! when they wait. A job that was a judge would wait for the lock that its own thread holds.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use greenmark::detect::Verdict;
use greenmark::document::visible::one_line;
use greenmark::stats::LogProbability;

use super::Run;
use super::inputs::{Input, Inputs};
use super::q_values::Spool;
use super::render::{Shown, error_record};
use super::summary::Summary;
use crate::exit::{self, Exit};
use crate::output::{self, note};

/// Inputs under way for each thread: enough that a slow one keeps no thread waiting.
const INPUTS_PER_THREAD: usize = 4;
/// Bytes of text under way, unless one text alone is larger.
const BYTES: u64 = 32 << 20;

/// What became of one input.
pub(super) struct Record {
    /// The input as a path, for a page.
    pub(super) place: PathBuf,
    pub(super) outcome: Outcome,
    pub(super) exit: Exit,
}

/// A verdict, or why there is none.
pub(super) enum Outcome {
    Judged {
        shown: Box<Shown>,
        verdict: Verdict,
        tokens: u64,
        corrected: LogProbability,
    },
    /// The message for standard error, or the record for standard output.
    Failed {
        message: String,
        record: Option<String>,
    },
}

/// An input under way.
struct Taken {
    /// From 0, in the order of the inputs.
    place: u64,
    /// Bytes that the gate let in for it.
    size: u64,
    input: Input,
}

/// What the threads tell the one that shows.
enum Event {
    Taken(Taken),
    Judged {
        place: u64,
        size: u64,
        record: Record,
    },
    /// No input is left after this many; nothing when the inputs broke off by a fault.
    End(Option<u64>),
}

/// Judges every input. One that fails does not keep the others from being judged.
pub(super) fn run(run: &Run<'_>, inputs: Inputs) -> Result<Exit> {
    let started = Instant::now();
    let threads = match run.args.threads {
        Some(threads) => usize::from(threads),
        None => thread::available_parallelism().map_or(1, usize::from),
    };
    let limit = threads * INPUTS_PER_THREAD;
    let gate = Arc::new(Gate::new(limit));
    let (events, received) = mpsc::channel();
    take_inputs(inputs, Arc::clone(&gate), events.clone())?;

    let mut sink = Sink::new(run)?;
    let (work, queue) = mpsc::sync_channel(limit);
    let queue = Mutex::new(queue);
    let shown = thread::scope(|scope| {
        for _ in 0..threads {
            let (queue, events) = (&queue, events.clone());
            thread::Builder::new()
                .name("judge".to_owned())
                .spawn_scoped(scope, move || judge_queue(run, queue, &events))
                .context("cannot start the threads of --threads")?;
        }
        show_in_order(received, work, &gate, |record| sink.take(run, record))
    });
    gate.close();
    shown.and_then(|()| sink.finish(run, started))
}

/// Hands the inputs to the judges and `show` the records in the order of the inputs.
///
/// Owns its ends of the channels: their loss sends the judges home, also when the run ends early.
#[expect(clippy::needless_pass_by_value, reason = "the judges wait until these are dropped")]
fn show_in_order(
    received: Receiver<Event>,
    work: SyncSender<Taken>,
    gate: &Gate,
    mut show: impl FnMut(Record) -> Result<()>,
) -> Result<()> {
    let mut waiting: BTreeMap<u64, (u64, Record)> = BTreeMap::new();
    let (mut next, mut end) = (0, None);
    while end != Some(next) {
        match received.recv().context("the judges ended without notice")? {
            // The gate lets in no more than the queue holds: this does not wait.
            Event::Taken(taken) => work.send(taken).context("the judges ended without notice")?,
            Event::Judged { place, size, record } => {
                waiting.insert(place, (size, record));
                while let Some((size, record)) = waiting.remove(&next) {
                    show(record)?;
                    gate.leave(size);
                    next += 1;
                }
            }
            Event::End(None) => anyhow::bail!(
                "the inputs broke off by an internal error; please report it with the message above"
            ),
            Event::End(inputs) => end = inputs,
        }
    }
    Ok(())
}

/// Judges what comes through the queue until nobody sends or nobody listens.
fn judge_queue(run: &Run<'_>, queue: &Mutex<Receiver<Taken>>, events: &Sender<Event>) {
    loop {
        // One judge waits for an input with the lock in hand, the others for the lock.
        let taken = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Taken { place, size, input }) = taken else { return };
        let record = judge(run, input);
        if events.send(Event::Judged { place, size, record }).is_err() {
            return;
        }
    }
}

/// Takes the inputs one after the other on a thread of its own, which may wait for standard input
/// long after the run has ended; nobody waits for it.
fn take_inputs(inputs: Inputs, gate: Arc<Gate>, events: Sender<Event>) -> Result<()> {
    let take = {
        let events = events.clone();
        move || {
            let mut place = 0;
            for input in inputs {
                let size = input.size();
                let is_open = gate.enter(size)
                    && events.send(Event::Taken(Taken { place, size, input })).is_ok();
                if !is_open {
                    break;
                }
                place += 1;
            }
            place
        }
    };
    let take = move || {
        // The run waits for this notice, also after a fault. Nobody listens after a closed pipe.
        let _ = events.send(Event::End(catch_unwind(AssertUnwindSafe(take)).ok()));
    };
    thread::Builder::new()
        .name("inputs".to_owned())
        .spawn(take)
        .context("cannot start a thread")?;
    Ok(())
}

/// Judges one input and renders what is shown of it.
fn judge(run: &Run<'_>, input: Input) -> Record {
    let mut label = input.label();
    let judged = catch_unwind(AssertUnwindSafe(|| {
        let input = input.parsed(run.args.jsonl.as_deref());
        label = input.label();
        let place = label.place();
        let judged = run.judge(input)?;
        let report = &judged.report;
        let (verdict, tokens) = (report.verdict, report.tokens);
        let corrected = report.corrected_log10_p * std::f64::consts::LN_10;
        let shown = run.renderer.render(Some(&label), &place, judged)?;
        let corrected = LogProbability::from_ln(corrected);
        let outcome = Outcome::Judged { shown: Box::new(shown), verdict, tokens, corrected };
        Ok((outcome, verdict.into()))
    }));
    // A text that trips over a fault of this program is one bad item, like any other.
    let judged = judged.unwrap_or_else(|_| {
        Err(anyhow::anyhow!("{label}: internal error; please report it with the message above"))
    });
    let (outcome, exit) = judged.unwrap_or_else(|error| {
        let message = exit::message(&error);
        let record = run.args.json.then(|| error_record(&label, &error, &message));
        (Outcome::Failed { message, record }, exit::of(&error))
    });
    Record { place: label.place(), outcome, exit }
}

/// Where the records go, in order.
struct Sink {
    summary: Summary,
    exit: Exit,
    spool: Option<Spool>,
}

impl Sink {
    fn new(run: &Run<'_>) -> Result<Self> {
        let spool = run.args.q_values.then(Spool::new).transpose()?;
        Ok(Self { summary: Summary::default(), exit: Exit::Success, spool })
    }

    fn take(&mut self, run: &Run<'_>, record: Record) -> Result<()> {
        self.exit = self.exit.combine(record.exit);
        self.summary.add(&record.outcome);
        match (record.outcome, &mut self.spool) {
            (Outcome::Failed { message, record: None }, _) => note!("{}", one_line(&message)),
            (Outcome::Failed { record: Some(line), .. }, None) => output::line(&line)?,
            (Outcome::Failed { record: Some(line), .. }, Some(spool)) => {
                spool.failed(&(line + "\n"))?;
            }
            (Outcome::Judged { shown, .. }, None) => run.renderer.emit(&record.place, &shown)?,
            (Outcome::Judged { shown, corrected, .. }, Some(spool)) => {
                spool.judged(&shown.head, &shown.tail, corrected)?;
                run.renderer.emit_page(&record.place, &shown)?;
            }
        }
        Ok(())
    }

    fn finish(self, run: &Run<'_>, started: Instant) -> Result<Exit> {
        if let Some(spool) = self.spool {
            spool.finish(run.args.json)?;
        }
        self.summary.show(run.args.json, started.elapsed())?;
        Ok(self.exit)
    }
}

/// Bounds what is under way: inputs that were taken and are not yet shown.
struct Gate {
    inside: Mutex<Inside>,
    changed: Condvar,
    inputs: usize,
}

#[derive(Default)]
struct Inside {
    inputs: usize,
    bytes: u64,
    closed: bool,
}

impl Gate {
    fn new(inputs: usize) -> Self {
        Self { inside: Mutex::default(), changed: Condvar::new(), inputs }
    }

    /// Waits until there is room; `false` when the run has ended. An input larger than the bound
    /// goes in alone.
    fn enter(&self, size: u64) -> bool {
        // The counts are whole between any two statements, also after a panic.
        let inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |inside: &mut Inside| {
            !inside.closed
                && inside.inputs > 0
                && (inside.inputs >= self.inputs || inside.bytes + size > BYTES)
        };
        let mut inside =
            self.changed.wait_while(inside, full).unwrap_or_else(PoisonError::into_inner);
        inside.inputs += 1;
        inside.bytes += size;
        !inside.closed
    }

    fn leave(&self, size: u64) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.inputs -= 1;
        inside.bytes -= size;
        self.changed.notify_all();
    }

    fn close(&self) {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.changed.notify_all();
    }
}
