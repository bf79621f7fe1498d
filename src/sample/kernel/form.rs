//! What a member is to the kernels.

use super::row::{Entry, StageKind};
use crate::token::TokenSet;

/// A member's part in one step, as the kernels compute it.
pub(crate) enum Form<'a> {
    /// It changes nothing in this step.
    Idle,
    /// Changes of single tokens that the host finds in the history.
    Entries(Vec<Entry>),
    /// Bans everything outside the set.
    Allow(&'a TokenSet),
    /// Divides positive and multiplies negative logits of tokens seen.
    Repetition(f32),
    /// Subtracts so much for each time a token was seen.
    Frequency(f32),
    /// Subtracts so much once.
    Presence(f32),
    /// Divides every logit.
    Temperature(f32),
    /// A truncation with its number: k, or how many tokens stay at least.
    Truncation { kind: StageKind, count: usize, value: f64 },
    /// The kernels do not have it.
    Absent,
}
