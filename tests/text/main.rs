//! Model files and tokenizers, through the public interface.

#[path = "../support/mod.rs"]
mod support;

mod fixtures;
mod gguf;
mod ids;
