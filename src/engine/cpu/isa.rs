//! Which vector instructions the kernels may use.
//!
//! Every level computes the same bits: no kernel uses a fused multiply-add, integer sums are
//! exact, and the order of every floating-point sum is fixed by the data alone. A level only
//! decides how fast that is.

use std::fmt;

/// An instruction level that this processor has. A value exists only for levels that were
/// detected, so holding one is the proof that its kernels may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Isa(Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// The level without any instruction beyond the target's baseline.
    pub const PORTABLE: Self = Self(Level::Portable);

    /// The levels of this processor, slowest first; the first is [`Isa::PORTABLE`].
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut levels = vec![Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c") {
                levels.push(Self(Level::Avx2));
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vnni")
                {
                    levels.push(Self(Level::Avx512));
                }
            }
        }
        levels
    }

    /// The fastest level of this processor.
    #[must_use]
    pub fn best() -> Self {
        Self::available().pop().unwrap_or(Self::PORTABLE)
    }

    pub(super) fn level(self) -> Level {
        self.0
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "AVX-512 VNNI",
        })
    }
}
