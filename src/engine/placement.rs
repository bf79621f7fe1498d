//! Where a model computes, in which numbers, and in batches of which shape.

use std::fmt;
use std::str::FromStr;

use candle_core::Device;

use super::model::PASS_ROWS;
use crate::error::{Error, Result};

/// The numbers a device computes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceDtype {
    /// As the file suggests: f32 weights stay f32, f16 and bf16 ones become bf16, and quantised
    /// ones stay as they are, with activations in f32 between the products. candle rounds the
    /// activations to 8 bits for a product with quantised weights, where the CPU of this crate
    /// keeps 16, so tokens can differ from the CPU's.
    #[default]
    Auto,
    /// 32-bit floats; a quantised file is dequantised when it is loaded.
    F32,
    /// bfloat16, with sums in f32; a quantised file is dequantised when it is loaded.
    Bf16,
}

impl DeviceDtype {
    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        }
    }
}

impl fmt::Display for DeviceDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DeviceDtype {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        [Self::Auto, Self::F32, Self::Bf16]
            .into_iter()
            .find(|dtype| dtype.name() == text)
            .ok_or_else(|| Error::parameter("dtype", text, "auto, f32 or bf16"))
    }
}

/// How many rows, tokens of any sequences, a forward pass has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BatchShape {
    /// As many as there is work. On a device the library that multiplies matrices chooses its
    /// method by the number of rows, and methods round differently: the logits of a sequence then
    /// depend on its companions, in their last bits.
    #[default]
    Free,
    /// Exactly so many, 1 to 512, so that every matrix product always has the same shape and a
    /// sequence's logits do not depend on its companions or on how its prompt is cut.
    ///
    /// A pass with less work is filled up with rows that nobody reads, and more work is cut into
    /// passes of this many rows; the output layer too runs on all of them. So a step of `n` rows
    /// costs what `n` rounded up to a multiple would: take about the number of requests that run
    /// together.
    ///
    /// It rests on a matrix product of one shape giving a row the same bits in every place. All
    /// rows that lie in one tile of the product are summed in one way, so this is sure for small
    /// numbers; tiles of the library in use have 64 rows and more.
    ///
    /// On the CPU this is always so, and the number is ignored.
    Fixed(usize),
}

impl BatchShape {
    /// The rows that fall into one tile of a matrix product.
    const ONE_TILE: usize = 64;

    /// The fixed shape for so many sequences that run together: their number rounded up to a
    /// multiple of 8, and 64 at most.
    #[must_use]
    pub fn fixed_for(sequences: usize) -> Self {
        // Compared first: the largest numbers have no multiple above them.
        Self::Fixed(sequences.clamp(1, Self::ONE_TILE).next_multiple_of(8))
    }
}

impl FromStr for BatchShape {
    type Err = Error;

    /// `off`, `on` (64 rows), or a number of rows.
    fn from_str(text: &str) -> Result<Self> {
        let rows = |text: &str| {
            let rows: usize = text.parse().ok()?;
            ((1..=PASS_ROWS).contains(&rows) && rows.to_string() == text).then_some(rows)
        };
        match text {
            "off" => Ok(Self::Free),
            "on" => Ok(Self::Fixed(Self::ONE_TILE)),
            _ => rows(text).map(Self::Fixed).ok_or_else(|| {
                let allowed = format!("off, on (64 rows), or a number of rows, 1 to {PASS_ROWS}");
                Error::parameter("deterministic", text, allowed)
            }),
        }
    }
}

/// Where tokens are drawn from logits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SamplerPlace {
    /// Where the model computes: logits of a device never leave it. A chain that the device's
    /// kernels do not have is refused by name.
    #[default]
    Auto,
    /// On the CPU, whatever computed the logits.
    Cpu,
}

impl SamplerPlace {
    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
        }
    }
}

impl fmt::Display for SamplerPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SamplerPlace {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        [Self::Auto, Self::Cpu]
            .into_iter()
            .find(|place| place.name() == text)
            .ok_or_else(|| Error::parameter("sampler", text, "auto or cpu"))
    }
}

/// Where and how a model computes.
#[derive(Clone, Debug)]
pub struct Placement {
    /// The CPU or a CUDA device.
    pub device: Device,
    /// Only [`DeviceDtype::Auto`] on the CPU.
    pub dtype: DeviceDtype,
    /// The shape of every forward pass.
    pub batch: BatchShape,
    /// Where a session draws tokens.
    pub sampler: SamplerPlace,
}

impl From<Device> for Placement {
    fn from(device: Device) -> Self {
        Self {
            device,
            dtype: DeviceDtype::Auto,
            batch: BatchShape::Free,
            sampler: SamplerPlace::Auto,
        }
    }
}

impl Placement {
    /// Refuses what no model can be loaded with, as [`super::Model::load_with`] does too.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a fixed batch that is empty or larger than a pass;
    /// [`Error::Unsupported`] for numbers that the CPU does not compute in.
    pub fn check(&self) -> Result<()> {
        if let BatchShape::Fixed(rows) = self.batch
            && !(1..=PASS_ROWS).contains(&rows)
        {
            let allowed = format!("1 to {PASS_ROWS}");
            return Err(Error::parameter("rows of a fixed batch", rows, allowed));
        }
        if self.device.is_cpu() && self.dtype != DeviceDtype::Auto {
            return Err(Error::Unsupported {
                what: "dtype on the CPU",
                found: self.dtype.to_string(),
                supported: "auto: the CPU computes with the weights as they are stored".into(),
            });
        }
        Ok(())
    }
}
