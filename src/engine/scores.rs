//! The logits of a pass, on the host or left on the device that computed them.

use candle_core::Tensor;

use crate::error::{Error, Result};

/// Logits of some rows: rows x vocabulary, row-major, f32.
#[derive(Debug)]
pub(super) enum Scores {
    /// On the host.
    Host(Vec<f32>),
    /// On the device: a contiguous tensor of rows x vocabulary.
    Device(Tensor),
}

impl Scores {
    /// Of no row.
    pub(super) fn none() -> Self {
        Self::Host(Vec::new())
    }

    /// The logits on the host; waits for a device to compute them.
    pub(super) fn into_host(self) -> Result<Vec<f32>> {
        match self {
            Self::Host(values) => Ok(values),
            Self::Device(tensor) => tensor
                .flatten_all()
                .and_then(|tensor| tensor.to_vec1())
                .map_err(|e| Error::backend("copying logits from the device", e)),
        }
    }

    /// The rows of all parts, one part after the other.
    pub(super) fn join(mut parts: Vec<Self>) -> Result<Self> {
        parts.retain(|part| !matches!(part, Self::Host(values) if values.is_empty()));
        if parts.len() <= 1 {
            return Ok(parts.pop().unwrap_or_else(Self::none));
        }
        let mut tensors = Vec::new();
        let mut values = Vec::new();
        for part in parts {
            match part {
                Self::Host(part) => values.extend(part),
                Self::Device(tensor) => tensors.push(tensor),
            }
        }
        // The parts of one model are all in one place.
        if tensors.is_empty() {
            return Ok(Self::Host(values));
        }
        Tensor::cat(&tensors, 0)
            .map(Self::Device)
            .map_err(|e| Error::backend("joining logits on the device", e))
    }
}
