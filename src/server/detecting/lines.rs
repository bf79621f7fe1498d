//! The lines of a body while it arrives: bounded in bytes, time and common memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{BodyDataStream, Bytes};
use axum::extract::Request;
use futures_util::StreamExt;
use tokio::time::{Instant, timeout, timeout_at};

use crate::server::body::{STEP, broken_off, declared_length, take_room, too_large, too_slow};
use crate::server::error::ApiError;
use crate::server::state::{Room, State};

/// The lines of one body, without those that hold white space only.
#[derive(Debug)]
pub(in crate::server) struct Lines {
    state: State,
    body: BodyDataStream,
    /// What of the last piece is not yet part of a line.
    piece: Bytes,
    /// The start of a line whose end has not come.
    start: Vec<u8>,
    /// Bytes of the body so far.
    read: usize,
    /// Bytes of the lines that are done with.
    done: Arc<AtomicUsize>,
    rooms: Vec<Room>,
    reserved: usize,
    deadline: Instant,
    ended: bool,
}

/// A line. Its bytes count as held until it is dropped.
#[derive(Debug)]
pub(in crate::server) struct Line {
    bytes: Bytes,
    done: Arc<AtomicUsize>,
}

impl Line {
    pub(in crate::server) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.done.fetch_add(self.bytes.len(), Ordering::Relaxed);
    }
}

impl Lines {
    /// The lines of the body of `request`.
    ///
    /// # Errors
    /// 413 when the head declares a longer body than the limit.
    pub(in crate::server) fn new(request: Request, state: &State) -> Result<Self, ApiError> {
        declared_length(&request, state.limits().max_body)?;
        Ok(Self {
            state: state.clone(),
            body: request.into_body().into_data_stream(),
            piece: Bytes::new(),
            start: Vec::new(),
            read: 0,
            done: Arc::default(),
            rooms: Vec::new(),
            reserved: 0,
            deadline: Instant::now() + state.limits().reply_time,
            ended: false,
        })
    }

    /// The next line, or why there is none; nothing follows an error.
    pub(in crate::server) async fn next(&mut self) -> Option<Result<Line, ApiError>> {
        while !self.ended {
            match self.step().await {
                Ok(None) => {}
                Ok(Some(line)) if line.bytes.iter().all(u8::is_ascii_whitespace) => {}
                Ok(Some(line)) => return Some(Ok(line)),
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    /// A line that is complete, or a step towards it.
    async fn step(&mut self) -> Result<Option<Line>, ApiError> {
        if let Some(end) = self.piece.iter().position(|&byte| byte == b'\n') {
            let rest = self.piece.split_to(end + 1);
            return Ok(Some(self.line(rest)));
        }
        self.start.extend_from_slice(&self.piece);
        self.piece.clear();
        match self.receive().await? {
            Some(piece) => self.piece = piece,
            None => self.ended = true,
        }
        Ok(self.ended.then(|| self.line(Bytes::new())))
    }

    /// The line that ends with `rest`.
    fn line(&mut self, rest: Bytes) -> Line {
        let bytes = if self.start.is_empty() {
            rest
        } else {
            self.start.extend_from_slice(&rest);
            std::mem::take(&mut self.start).into()
        };
        Line { bytes, done: Arc::clone(&self.done) }
    }

    async fn receive(&mut self) -> Result<Option<Bytes>, ApiError> {
        let limits = self.state.limits();
        let next = timeout(limits.body_time, self.body.next());
        let Ok(Ok(next)) = timeout_at(self.deadline, next).await else {
            return Err(too_slow(limits));
        };
        let Some(piece) = next else { return Ok(None) };
        let piece = piece.map_err(|_| broken_off())?;
        self.read += piece.len();
        if self.read > limits.max_body {
            return Err(too_large(self.read as u64, limits.max_body));
        }
        let held = self.read - self.done.load(Ordering::Relaxed);
        if held > self.reserved {
            let more = (held - self.reserved).max(STEP);
            self.rooms.push(take_room(&self.state, more).await?);
            self.reserved += more;
        }
        Ok(Some(piece))
    }
}
