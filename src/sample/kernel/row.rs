//! The memory that host and device share: the twin of `src/engine/kernels/row.cuh`, field for
//! field. `tests/kernels` compares sizes and offsets with those of the C++ compiler.

use crate::sample::math;
use crate::token::TokenId;

/// A change of one token's logit: an addition, or a ban when it is NaN.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Entry {
    pub(crate) id: TokenId,
    pub(crate) change: f32,
}

impl Entry {
    /// Adds `change` (not NaN) to the token's logit, which stays finite.
    pub(crate) fn add(id: TokenId, change: f32) -> Self {
        Self { id, change }
    }

    /// Takes the token out of play.
    pub(crate) fn ban(id: TokenId) -> Self {
        Self { id, change: f32::NAN }
    }

    /// The addition; `None` for a ban.
    pub(crate) fn addition(self) -> Option<f32> {
        (!self.change.is_nan()).then_some(self.change)
    }
}

/// Tokens of a block of the grid.
pub const CHUNK: usize = 4096;
/// The most tokens of a row's list.
pub const LIST: usize = 2048;
/// Words of a row's histogram.
pub const HISTOGRAM: usize = 4096;
/// Bytes that the blocks of a row share; zero before the first launch.
pub const STATE_BYTES: usize = 128;
/// Bytes of a chunk's best token.
pub const BEST_BYTES: usize = 16;
/// Bytes of an entry of a row's list.
pub const LISTED_BYTES: usize = 8;

pub(super) const MAX_EDITS: usize = 10;
pub(super) const MAX_STAGES: usize = 10;
/// No bit set.
pub(super) const NONE: u32 = u32::MAX;

pub(super) const EDIT_LIST: u32 = 0;
pub(super) const EDIT_ALLOW: u32 = 1;
pub(super) const EDIT_REPETITION: u32 = 2;
pub(super) const EDIT_FREQUENCY: u32 = 3;
pub(super) const EDIT_PRESENCE: u32 = 4;

/// A member that changes single tokens.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Edit {
    pub(super) kind: u32,
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) value: f32,
}

/// What a truncation, or a temperature behind one, is to the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum StageKind {
    Temperature = 0,
    TopK = 1,
    TopP = 2,
    MinP = 3,
    Typical = 4,
    Epsilon = 5,
    Eta = 6,
    TopNSigma = 7,
    Xtc = 8,
}

/// A truncation, or a temperature behind one.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Stage {
    pub(super) kind: u32,
    pub(super) count: u32,
    pub(super) value: f64,
}

pub(super) const GREEDY: u32 = 0;
pub(super) const SAMPLED: u32 = 1;

pub(super) const KEEP: u32 = 0;
pub(super) const BIAS: u32 = 1;
pub(super) const RACE: u32 = 2;

pub(super) const MEMBERS_CHACHA8: u32 = 0;
pub(super) const MEMBERS_BITS: u32 = 1;

pub(super) const ALWAYS: u32 = 0;
pub(super) const ENTROPY_ABOVE: u32 = 1;
pub(super) const MAX_PROBABILITY_AT_MOST: u32 = 2;

pub(super) const NEEDS_TOTAL: u32 = 1;
pub(super) const NEEDS_SIGMA: u32 = 2;

/// How the kernels compute a row. The result does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Path {
    /// Nothing is truncated: all blocks of the row draw.
    Open = 0,
    /// The best tokens are listed; one block truncates and draws.
    List = 1,
    /// One block works on the whole row.
    Dense = 2,
}

/// What the kernels are told of a row.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Row {
    pub(super) history: u64,
    pub(super) gate_value: f64,
    pub(super) draw_key: [u32; 8],
    pub(super) mark_key: [u32; 8],
    pub(super) path: u32,
    pub(super) flags: u32,
    pub(super) decoding: u32,
    pub(super) action: u32,
    pub(super) gate: u32,
    pub(super) membership: u32,
    pub(super) members: u32,
    pub(super) never_marked: u32,
    pub(super) threshold: u32,
    pub(super) scope: u32,
    pub(super) delta: f32,
    pub(super) temperature: f32,
    pub(super) edits: u32,
    pub(super) stages: u32,
    pub(super) edit: [Edit; MAX_EDITS],
    pub(super) stage: [Stage; MAX_STAGES],
}

impl Row {
    /// Where the device keeps the row's history; 0 for none.
    #[must_use]
    pub fn history_address(&self) -> u64 {
        self.history
    }
}

// A row holds seeds derived from the secret key.
impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Row")
            .field("path", &self.path)
            .field("edits", &&self.edit[..self.edits as usize])
            .field("stages", &&self.stage[..self.stages as usize])
            .finish_non_exhaustive()
    }
}

pub(super) const OK: u32 = 0;
pub(super) const NON_FINITE: u32 = 1;

/// What the kernels answer for a row: the token, and sums that the host turns into logarithms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct RowResult {
    pub(super) status: u32,
    pub(super) token: u32,
    pub(super) survivors: u32,
    pub(super) nan: u32,
    pub(super) infinite: u32,
    pub(super) culprit: u32,
    pub(super) marked: u32,
    pub(super) path: u32,
    pub(super) raw_logit: f32,
    pub(super) unmarked_logit: f32,
    pub(super) logit: f32,
    pub(super) raw_max: f32,
    pub(super) unmarked_max: f32,
    pub(super) max: f32,
    pub(super) raw_total: u64,
    pub(super) raw_surprisal: u64,
    pub(super) unmarked_total: u64,
    pub(super) unmarked_surprisal: u64,
    pub(super) green: u64,
    pub(super) total: u64,
}

impl RowResult {
    /// Shannon entropy, in nats, of the model's own distribution: the logits as given.
    #[must_use]
    pub fn raw_entropy(&self) -> f64 {
        math::entropy(self.raw_total, self.raw_surprisal)
    }

    /// Whether one block had to work on the whole row although a list was tried.
    #[must_use]
    pub fn took_dense_path(&self) -> bool {
        self.path == Path::Dense as u32
    }
}

/// The memory layout, for the test that compares it with the C++ compiler's: sizes of `Row`,
/// `RowResult`, `Edit`, `Stage`, `Entry`, the offsets of some fields of the first two, and what
/// scratch memory is measured by.
#[must_use]
pub fn layout() -> [usize; 19] {
    use std::mem::{offset_of, size_of};
    [
        size_of::<Row>(),
        size_of::<RowResult>(),
        size_of::<Edit>(),
        size_of::<Stage>(),
        size_of::<Entry>(),
        offset_of!(Row, mark_key),
        offset_of!(Row, path),
        offset_of!(Row, delta),
        offset_of!(Row, edit),
        offset_of!(Row, stage),
        offset_of!(RowResult, raw_logit),
        offset_of!(RowResult, raw_total),
        offset_of!(RowResult, total),
        CHUNK,
        LIST,
        HISTOGRAM,
        STATE_BYTES,
        BEST_BYTES,
        LISTED_BYTES,
    ]
}
