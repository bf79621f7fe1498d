//! Model files and tokenizers, through the public interface.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../support/mod.rs"]
mod support;

mod chat;
mod fixtures;
mod gguf;
mod hygiene;
mod ids;
mod load;
mod long;
mod normalize;
mod safetensors;
mod stream;
