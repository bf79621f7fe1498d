//! A probability that may be far below the smallest double, and how a report shows it.

use serde::Serialize;

/// The natural logarithm of a probability, at most 0.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct LogProbability(f64);

impl LogProbability {
    /// Certainty.
    pub const ONE: Self = Self(0.0);

    /// From a natural logarithm; values above 0 (rounding) become 0 and NaN becomes certainty,
    /// which accuses nobody.
    #[must_use]
    pub fn from_ln(ln: f64) -> Self {
        Self(if ln < 0.0 { ln } else { 0.0 })
    }

    /// The natural logarithm.
    #[must_use]
    pub fn ln(self) -> f64 {
        self.0
    }

    /// The decimal logarithm, always finite: an impossible event is shown as the smallest double.
    #[must_use]
    pub fn log10(self) -> f64 {
        (self.0 / std::f64::consts::LN_10).max(f64::MIN) + 0.0
    }

    /// Bonferroni's bound for the best of `looks` tests.
    #[must_use]
    pub fn corrected(self, looks: u64) -> Self {
        Self::from_ln(self.0 + (looks.max(1) as f64).ln())
    }

    /// The value for a report.
    #[must_use]
    pub fn p_value(self) -> PValue {
        // Below 1e-300 a double loses digits and then everything.
        if self.log10() < -300.0 { PValue::Underflow } else { PValue::Value(self.0.exp()) }
    }
}

/// A p-value as a number, or the statement that a double cannot hold it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PValue {
    /// At least 1e-300.
    Value(f64),
    /// Below 1e-300: only the logarithm is given.
    Underflow,
}

impl PValue {
    /// The number, when there is one.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Value(value) => Some(value),
            Self::Underflow => None,
        }
    }

    /// The status a report gives in place of a number.
    #[must_use]
    pub fn status(self) -> Option<&'static str> {
        match self {
            Self::Value(_) => None,
            Self::Underflow => Some("underflow"),
        }
    }
}

impl Serialize for PValue {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}
