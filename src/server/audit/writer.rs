//! The thread that writes the lines of one log, so that no request waits for a disk or a pipe that
//! hangs. It is no general logger: lines come whole, and go out one write each.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::file::LogFile;
use crate::error::{Error, Result};
use crate::server::layers::log;

/// Lines that wait to be written at most; further ones are lost.
const WAITING: usize = 8192;

/// Time between two tries to find room for the question whether all is written.
const ROOM: Duration = Duration::from_millis(5);

/// Time between two complaints about lost lines.
const COMPLAINT: Duration = Duration::from_mins(1);

/// Where lines go.
#[derive(Debug)]
pub(super) enum Sink {
    StandardError,
    File(LogFile),
}

impl Sink {
    fn write(&mut self, line: &[u8]) -> std::io::Result<()> {
        match self {
            Self::StandardError => std::io::stderr().lock().write_all(line),
            Self::File(file) => file.append(line),
        }
    }
}

enum Message {
    Line(Vec<u8>),
    /// To be answered once all lines before it are done with.
    Flush(Sender<()>),
}

/// One log, whose lines are written by a thread of its own.
#[derive(Debug)]
pub(super) struct Writer {
    messages: SyncSender<Message>,
    lost: Arc<AtomicU64>,
}

impl Writer {
    /// `what` names the lines in complaints.
    ///
    /// # Errors
    /// [`Error::Backend`] when the system gives no thread.
    pub(super) fn start(what: &'static str, sink: Sink) -> Result<Self> {
        let (messages, received) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(what, sink, &received, &counted))
            .map_err(|source| Error::backend("starting the thread that writes a log", source))?;
        Ok(Self { messages, lost })
    }

    /// Hands a line over and never waits: when too many wait already, it is lost and counted.
    pub(super) fn write(&self, line: std::io::Result<Vec<u8>>) {
        let sent = line.is_ok_and(|line| self.messages.try_send(Message::Line(line)).is_ok());
        if !sent {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that were not written and will not be.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until all lines handed over before are done with, at most until `end`; says whether
    /// they are.
    pub(super) fn flush(&self, end: Instant) -> bool {
        let (done, finished) = channel();
        while self.messages.try_send(Message::Flush(done.clone())).is_err() {
            if Instant::now() >= end {
                return false;
            }
            thread::sleep(ROOM);
        }
        finished.recv_timeout(end.saturating_duration_since(Instant::now())).is_ok()
    }
}

fn write_all(what: &str, mut sink: Sink, messages: &Receiver<Message>, lost: &AtomicU64) {
    let mut complained: Option<Instant> = None;
    let mut known = 0;
    for message in messages {
        let failure = match message {
            Message::Flush(done) => {
                // Whoever asked may have stopped waiting.
                let _ = done.send(());
                continue;
            }
            Message::Line(line) => sink.write(&line).err(),
        };
        if failure.is_some() {
            lost.fetch_add(1, Ordering::Relaxed);
        }
        let until_now = lost.load(Ordering::Relaxed);
        if until_now > known && complained.is_none_or(|last| last.elapsed() >= COMPLAINT) {
            (known, complained) = (until_now, Some(Instant::now()));
            let reason = failure.map_or_else(
                || "they come faster than they can be written".to_owned(),
                |error| error.to_string(),
            );
            log(&format!("{what} are lost, {until_now} until now: {reason}"));
        }
    }
}
