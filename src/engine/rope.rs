//! Rotary position embedding (Su et al. 2021, "RoFormer"): frequencies and their scalings.
//!
//! Angles are computed in f64 for the positions of a batch, so there is no table to size and
//! no position limit here.

use crate::error::{Error, Result};

/// Which elements of a head are rotated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairing {
    /// Element i with element i + dim/2, as transformers checkpoints and most GGUF files have it.
    Halves,
    /// Element 2i with element 2i + 1, as GGUF files of the llama family have it.
    Neighbours,
}

/// How frequencies are changed to reach positions beyond the training length.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scaling {
    /// Not at all.
    None,
    /// Every frequency is divided by the factor (Chen et al. 2023, "position interpolation").
    Linear {
        /// The factor, above 0.
        factor: f64,
    },
    /// The Llama 3.1 rule: long wavelengths are divided by the factor, short ones kept, and
    /// those between are interpolated.
    Llama3 {
        /// The factor, above 0.
        factor: f64,
        /// Wavelengths above `original / low_freq_factor` are scaled fully.
        low_freq_factor: f64,
        /// Wavelengths below `original / high_freq_factor` are kept.
        high_freq_factor: f64,
        /// The training length in tokens.
        original: f64,
    },
    /// A divisor per frequency, from the tensor `rope_freqs.weight` of a GGUF file.
    Divisors(Vec<f32>),
}

/// Angles per position of one model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rope {
    pub(super) pairing: Pairing,
    /// Radians per position of each pair.
    frequencies: Vec<f64>,
}

/// Cosines and sines for the rows of a batch: rows x (dim / 2).
#[derive(Clone, Debug)]
pub(super) struct Rotation {
    pub(super) pairing: Pairing,
    pub(super) cos: Vec<f32>,
    pub(super) sin: Vec<f32>,
}

impl Rope {
    /// Frequencies `theta^(-2i/dim)` of a head of `dim` elements, scaled.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an odd or absurd `dim`, a base or factor that is not above 0, or a list of
    /// divisors of another length than `dim / 2`.
    pub(super) fn new(pairing: Pairing, dim: usize, theta: f64, scaling: &Scaling) -> Result<Self> {
        let positive = |name: &'static str, value: f64| {
            if value.is_finite() && value > 0.0 {
                Ok(value)
            } else {
                Err(Error::parameter(name, value, "a finite number above 0"))
            }
        };
        // Checked before a list of that length is made.
        if dim == 0 || !dim.is_multiple_of(2) || dim > 1 << 16 {
            return Err(Error::parameter("head_dim", dim, "an even number from 2 to 65536"));
        }
        let theta = positive("rope_theta", theta)?;
        let mut frequencies: Vec<f64> =
            (0..dim / 2).map(|i| theta.powf(-2.0 * i as f64 / dim as f64)).collect();
        match scaling {
            Scaling::None => {}
            Scaling::Linear { factor } => {
                let factor = positive("rope_scaling.factor", *factor)?;
                for f in &mut frequencies {
                    *f /= factor;
                }
            }
            Scaling::Llama3 { factor, low_freq_factor, high_freq_factor, original } => {
                let factor = positive("rope_scaling.factor", *factor)?;
                let low = positive("rope_scaling.low_freq_factor", *low_freq_factor)?;
                let high = positive("rope_scaling.high_freq_factor", *high_freq_factor)?;
                let original =
                    positive("rope_scaling.original_max_position_embeddings", *original)?;
                if high <= low {
                    return Err(Error::parameter(
                        "rope_scaling.high_freq_factor",
                        high,
                        format!("above low_freq_factor, which is {low}"),
                    ));
                }
                for f in &mut frequencies {
                    let wavelength = std::f64::consts::TAU / *f;
                    if wavelength > original / low {
                        *f /= factor;
                    } else if wavelength >= original / high {
                        let smooth = (original / wavelength - low) / (high - low);
                        *f = (1.0 - smooth) * *f / factor + smooth * *f;
                    }
                }
            }
            Scaling::Divisors(divisors) => {
                if divisors.len() != frequencies.len() {
                    return Err(Error::parameter(
                        "rope_freqs.weight",
                        format!("{} values", divisors.len()),
                        format!("{} values", frequencies.len()),
                    ));
                }
                for (f, &divisor) in frequencies.iter_mut().zip(divisors) {
                    *f /= positive("rope_freqs.weight", f64::from(divisor))?;
                }
            }
        }
        Ok(Self { pairing, frequencies })
    }

    /// The rotation of each position.
    #[expect(clippy::cast_possible_truncation, reason = "f32 is the activations' type")]
    pub(super) fn rotation(&self, positions: impl IntoIterator<Item = usize>) -> Rotation {
        let mut cos = Vec::new();
        let mut sin = Vec::new();
        for position in positions {
            for frequency in &self.frequencies {
                let (s, c) = (position as f64 * frequency).sin_cos();
                cos.push(c as f32);
                sin.push(s as f32);
            }
        }
        Rotation { pairing: self.pairing, cos, sin }
    }
}
