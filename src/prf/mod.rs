//! Keys, the way from a context to a seed, and the bit-exact generator behind every native
//! scheme.
//!
//! Knows nothing of schemes or statistics. Nothing here depends on platform, thread or device.

mod chacha;
mod hex;
mod key;
mod seed;
mod uniform;

pub use chacha::ChaCha8Stream;
pub(crate) use chacha::ChaCha8Sweep;
pub(crate) use hex::from_hex;
pub use hex::hex;
pub(crate) use key::open_private;
pub use key::{Key, KeyFingerprint};
pub use seed::{ContextSeeder, DRAW_TAG, PrfTag, draw_seed};
pub use uniform::{ln, neg_ln_one_minus_uniform, neg_ln_uniform};
