//! The bytes of one connection, with what hyper leaves to its caller.
//!
//! - hyper answers a head that it cannot read by itself and without a body; clients of this
//!   service find the one shape of errors there too.
//! - A socket that is closed with unread bytes in it takes back the reply that was sent on it. A
//!   client that is refused in the middle of a long upload would see a broken connection and not
//!   why; so what it still sends is read and dropped for a while.
//! - A client that stops reading its reply does not hold the connection for ever.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use super::error::{ApiError, ErrorType};
use super::layers::{REQUEST_ID, fresh_id};
use super::listen::MAX_HEAD;

/// How long a closed connection waits for more to drop.
const QUIET: Duration = Duration::from_secs(1);

/// How long it drops at most.
const LINGER: Duration = Duration::from_secs(30);

/// Bytes of the pieces that are dropped.
const PIECE: usize = 8 << 10;

/// A connection.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    /// Time for a client to take some of its reply.
    write_time: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    replacement: Option<Replacement>,
    closing: Option<Closing>,
}

/// A reply in place of one of hyper's.
#[derive(Debug)]
struct Replacement {
    bytes: Vec<u8>,
    sent: usize,
}

#[derive(Debug)]
struct Closing {
    quiet: Pin<Box<Sleep>>,
    last: Instant,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, write_time: Duration) -> Self {
        Self { stream, write_time, stalled: None, replacement: None, closing: None }
    }

    /// Fails a write that has been pending for too long.
    fn bound<T>(&mut self, context: &mut Context<'_>, written: Poll<Result<T>>) -> Poll<Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.write_time;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client does not read its reply")))
    }

    /// Sends what stands in place of the `length` bytes of hyper's reply.
    fn replace(&mut self, context: &mut Context<'_>, length: usize) -> Poll<Result<usize>> {
        while let Some(Replacement { bytes, sent }) = &mut self.replacement {
            let Some(rest) = bytes.get(*sent..).filter(|rest| !rest.is_empty()) else {
                self.replacement = None;
                break;
            };
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                written => *sent += written,
            }
        }
        Poll::Ready(Ok(length))
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        if self.replacement.is_none() {
            self.replacement = replacement(bytes).map(|bytes| Replacement { bytes, sent: 0 });
        }
        let written = if self.replacement.is_some() {
            self.replace(context, bytes.len())
        } else {
            Pin::new(&mut self.stream).poll_write(context, bytes)
        };
        self.bound(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let mut filled = slices.iter().filter(|slice| !slice.is_empty());
        if let (Some(only), None) = (filled.next(), filled.next()) {
            return self.poll_write(context, only);
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.bound(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if self.closing.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            let (quiet, last) = (Box::pin(sleep(QUIET)), Instant::now() + LINGER);
            self.closing = Some(Closing { quiet, last });
        }
        let Self { stream, closing: Some(closing), .. } = &mut *self else {
            return Poll::Ready(Ok(()));
        };
        let mut piece = [0; PIECE];
        loop {
            let mut buffer = ReadBuf::new(&mut piece);
            match Pin::new(&mut *stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    let next = (Instant::now() + QUIET).min(closing.last);
                    closing.quiet.as_mut().reset(next);
                    if Instant::now() >= closing.last {
                        return Poll::Ready(Ok(()));
                    }
                }
                // The client is gone; how does not matter any more.
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => return closing.quiet.as_mut().poll(context).map(Ok),
            }
        }
    }
}

/// The reply in place of `bytes`, when they are a whole reply of hyper's own: a refusal without a
/// body. Replies of the service always have an id.
fn replacement(bytes: &[u8]) -> Option<Vec<u8>> {
    let head = bytes.strip_prefix(b"HTTP/1.1 4")?.strip_suffix(b"\r\n\r\n")?;
    if head.len() > 200 {
        return None;
    }
    let head = std::str::from_utf8(head).ok()?;
    let own = ["connection: close", "content-length: 0"];
    let mut lines = head.split("\r\n");
    let (digits, reason) = lines.next()?.split_once(' ')?;
    let mut lines: Vec<&str> = lines.collect();
    if !lines.contains(&own[1])
        || !lines.iter().all(|line| own.contains(line) || line.starts_with("date: "))
    {
        return None;
    }
    let status = StatusCode::from_bytes(format!("4{digits}").as_bytes()).ok()?;
    let (code, message) = match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => (
            "head_too_large",
            format!("the head of the request has more than {MAX_HEAD} bytes or 100 headers"),
        ),
        StatusCode::URI_TOO_LONG => {
            ("address_too_long", "the address of the request is too long".to_owned())
        }
        _ => ("malformed_request", "the head of the request is not valid HTTP/1.1".to_owned()),
    };
    let body = ApiError::new(status, ErrorType::InvalidRequest, code, message).body().to_string();
    let (length, id) = (body.len(), fresh_id());
    lines.retain(|line| *line != own[1]);
    let kept = lines.join("\r\n");
    let head = format!(
        "HTTP/1.1 4{digits} {reason}\r\n{kept}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{REQUEST_ID}: {id}\r\nx-content-type-options: nosniff\r\n\
         cache-control: no-store\r\n\r\n"
    );
    Some([head.into_bytes(), body.into_bytes()].concat())
}
