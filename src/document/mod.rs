//! From a text as a reader has it to a report.
//!
//! [`Detector`] joins a tokenizer, a profile and a key once and then judges any number of texts.
//! The command line and the service both use it; neither adds a rule of its own. It never loads a
//! model.

mod attack;
mod detector;
pub mod marked;
pub mod page;
mod passages;
mod repetition;
mod sentences;
mod sidecar;
pub mod visible;
mod warnings;

pub use attack::{Attack, AttackSeed, Share};
pub use detector::{Circumstances, Detector, identify, never_marked};
pub use passages::passages;
pub use repetition::distinct_ngrams;
pub use sentences::sentences;
pub use sidecar::{Sidecar, TokenEntropy, sha256_hex, sidecar_path};
