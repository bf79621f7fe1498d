//! From logits to a token: the sampling chain, its members and the draw.
//!
//! [`Chain`] applies the members of an [`Order`] to a model's logits, lets a scheme mark the
//! survivors and draws. Everything is computed by [`math`], whose results do not depend on
//! platform, thread count or order of summation. `docs/sampling.md` has the definitions, the
//! differences from other engines and the error bound of the draw.
//!
//! It runs no model and knows no key: logits come from the caller, the mark from a scheme as
//! data. Stop strings, streaming and lengths belong to the decode loop.

mod candidates;
mod chain;
mod draw;
mod history;
pub mod kernel;
pub mod math;
mod options;
mod order;
mod processors;
mod select;
mod uncertainty;

pub use chain::{Chain, Decoding, Effective, Outcome, Scratch, Stage, Trace};
pub use draw::Draw;
pub use history::{History, PenaltyScope};
pub use options::{
    Bias, DryOptions, GREEDY_BELOW, MirostatMode, MirostatOptions, SamplingOptions, XtcOptions,
};
pub use order::{Order, Preset};
pub use processors::{Kind, MEMBERS, Member, member};
