//! Readers of model files: GGUF and safetensors, over memory maps.
//!
//! For the engine (weights) and for [`crate::text`] (the tokenizer inside a GGUF). Every count,
//! length and offset in a file is checked against the bytes that are there before anything is
//! allocated, so that a crafted or cut file is refused quickly and cheaply.
//!
//! Nothing here computes with weights or knows an architecture; writing files is not offered.

mod ggml_type;
pub mod gguf;
mod gguf_reader;
mod gguf_value;
mod map;
pub mod safetensors;

pub use ggml_type::GgmlType;
pub use gguf::{Gguf, TensorInfo};
pub use gguf_value::{Array, Value, ValueType};
pub use map::Map;
pub use safetensors::{Checkpoint, Dtype, TensorView};

use std::path::Path;

use crate::error::Error;

/// First bytes of a Git LFS pointer file, which takes the place of a file that was not fetched.
const LFS_MAGIC: &[u8] = b"version https://git-lfs";

/// The error for the two ways in which a whole file is something else: empty, or a Git LFS
/// pointer. `None` when neither is the case.
pub(crate) fn wrong_file(path: &Path, bytes: &[u8]) -> Option<Error> {
    if bytes.is_empty() {
        return Some(Error::file(
            path,
            None,
            "the file is empty (0 bytes)",
            "the download did not finish: fetch the file again",
        ));
    }
    if bytes.starts_with(LFS_MAGIC) {
        // A pointer is three short lines; the third tells the size of the real file.
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(512)]);
        let size = head
            .lines()
            .find_map(|line| line.strip_prefix("size "))
            .map_or(String::new(), |size| format!(" of {} bytes", size.trim()));
        return Some(Error::file(
            path,
            None,
            format!(
                "this is a Git LFS pointer of {} bytes to a file{size}, not the file itself",
                bytes.len()
            ),
            "fetch the file itself, for example with `git lfs pull`",
        ));
    }
    None
}

/// The error for a file that ends too early.
fn truncated(path: &Path, expected: u128, have: usize) -> Error {
    Error::file(
        path,
        None,
        format!("truncated: expected {expected} bytes, have {have} bytes"),
        "the download did not finish: fetch the file again",
    )
}
