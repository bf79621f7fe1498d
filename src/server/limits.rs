//! Every limit of the service in one place.

use std::time::Duration;

/// What a client may ask of the service at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's body, exact, on every route.
    pub max_body: usize,
    /// Bytes of all request bodies that are held at the same time.
    pub bodies_in_memory: usize,
    /// Connections at the same time; further ones wait to be accepted.
    pub connections: usize,
    /// Time for the head of a request.
    pub head_time: Duration,
    /// Time for the body of a request.
    pub body_time: Duration,
    /// Time from the head of a request to the head of its reply.
    pub reply_time: Duration,
    /// Time for a client to take a further piece of its reply.
    pub write_time: Duration,
    /// Time that running requests get when the service is told to end.
    pub shutdown_time: Duration,
    /// Threads that judge texts.
    pub workers: usize,
    /// Texts that wait for a thread; further ones are refused with 429.
    pub waiting: usize,
    /// Texts in `inputs` of one request.
    pub inputs: usize,
    /// Tokens of a text that the model reads for `entropy`.
    pub entropy_tokens: usize,
}

impl Limits {
    /// The most that [`Limits::inputs`] can be: longer lists are not read to their end.
    pub const MOST_INPUTS: usize = 16_384;
}

impl Default for Limits {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            max_body: 10_000_000,
            bodies_in_memory: 256 << 20,
            connections: 1024,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_mins(1),
            reply_time: Duration::from_mins(10),
            write_time: Duration::from_mins(1),
            shutdown_time: Duration::from_secs(30),
            workers: cores,
            waiting: 1024,
            inputs: 1024,
            entropy_tokens: 2000,
        }
    }
}
