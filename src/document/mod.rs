//! From a text as a reader has it to a report.
//!
//! [`Detector`] joins a tokenizer, a profile and a key once and then judges any number of texts.
//! The command line and the service both use it; neither adds a rule of its own. It never loads a
//! model.

mod detector;
mod passages;
mod sidecar;

pub use detector::{Circumstances, Detector, identify, never_marked};
pub use passages::passages;
pub use sidecar::{Sidecar, TokenEntropy, sha256_hex, sidecar_path};
