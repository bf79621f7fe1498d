//! greenmark embeds a watermark in text while a language model samples it, and detects it later
//! without the model.
//!
//! The modules are listed in the order of their dependencies: each uses only what stands above
//! it (`tests/architecture` holds that). Everything up to [`document`] is the detector and knows
//! nothing of candle; [`engine`] runs models and exists only with the feature `engine`; `server`
//! puts both behind HTTP.
//!
//! This crate does not decide who wrote a text. It reports how surprising a text would be if it
//! had been written without the key.

pub mod error;
pub mod token;

pub mod prf;
pub mod stats;

pub mod profile;
pub mod scheme;

pub mod detect;
pub mod sample;

pub mod format;
pub mod text;

pub mod document;
#[cfg(feature = "extract")]
pub mod extract;
#[cfg(feature = "signature")]
pub mod signature;
pub mod store;

#[cfg(feature = "engine")]
pub mod engine;

#[cfg(feature = "server")]
pub mod server;

pub use error::{Error, ErrorKind, Result};
