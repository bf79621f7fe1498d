//! What a caller may choose about a detection.

use std::num::NonZeroU64;

use crate::error::{Error, Result};
use crate::stats::{LogProbability, ln_normal_upper, normal_upper};

/// The rate of false accusations that is accepted: a text is flagged when its corrected p is at
/// most this.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alpha {
    value: f64,
    log: LogProbability,
}

impl Alpha {
    /// The z whose one-sided p is the default.
    pub const DEFAULT_Z: f64 = 4.0;

    /// Checks the range.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 0 < alpha < 1.
    pub fn new(alpha: f64) -> Result<Self> {
        if alpha > 0.0 && alpha < 1.0 {
            Ok(Self { value: alpha, log: LogProbability::from_ln(alpha.ln()) })
        } else {
            Err(Error::parameter("alpha", alpha, "a number above 0 and below 1"))
        }
    }

    /// The alpha that a normal test at threshold `z` would have: Q(z). Zero is a threshold like
    /// any other.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless -37 <= z <= 37.
    pub fn from_z(z: f64) -> Result<Self> {
        if (-37.0..=37.0).contains(&z) {
            Ok(Self::of_z(z))
        } else {
            Err(Error::parameter("z_threshold", z, "a number from -37 to 37"))
        }
    }

    fn of_z(z: f64) -> Self {
        Self { value: normal_upper(z), log: LogProbability::from_ln(ln_normal_upper(z)) }
    }

    /// An equal share of it for each of `tests` tests.
    #[must_use]
    pub fn shared(self, tests: u64) -> Self {
        let tests = tests.max(1) as f64;
        Self { value: self.value / tests, log: LogProbability::from_ln(self.log.ln() - tests.ln()) }
    }

    /// As a log probability.
    #[must_use]
    pub fn log(self) -> LogProbability {
        self.log
    }

    /// As a number.
    #[must_use]
    pub fn value(self) -> f64 {
        self.value
    }
}

impl Default for Alpha {
    fn default() -> Self {
        Self::of_z(Self::DEFAULT_Z)
    }
}

/// Whether the report lists every token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenDetails {
    /// Totals only.
    #[default]
    Omit,
    /// One entry per token, with offsets.
    Include,
}

/// Whether the stretches of a text are tested beside the whole of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowSearch {
    /// The whole text only.
    #[default]
    Off,
    /// Every window of scored tokens too, for half of alpha.
    On,
}

/// Whether every sentence is tested, as a reading aid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sentences {
    /// The text as a whole only.
    #[default]
    Omit,
    /// One entry per sentence, with offsets.
    Include,
}

/// The choices of one detection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DetectOptions {
    /// The accepted rate of false accusations.
    pub alpha: Alpha,
    /// Fewer scored tokens than this are `insufficient` whatever they show; shorter windows are not
    /// looked at.
    pub min_scored: u64,
    /// Whether every token is listed.
    pub details: TokenDetails,
    /// Whether windows are tested.
    pub windows: WindowSearch,
    /// Whether every sentence is tested; this never changes the verdict.
    pub sentences: Sentences,
    /// How many profiles the text is held against, this one included. Every test of the report
    /// pays for all of them, so that the chance that any of them flags an unmarked text is at most
    /// alpha; see [`join`](crate::detect::join).
    pub profiles: NonZeroU64,
}

impl Default for DetectOptions {
    fn default() -> Self {
        Self {
            alpha: Alpha::default(),
            min_scored: 1,
            details: TokenDetails::Omit,
            windows: WindowSearch::Off,
            sentences: Sentences::Omit,
            profiles: NonZeroU64::MIN,
        }
    }
}
