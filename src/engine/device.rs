//! Which device computes, by the names people give: `auto`, `cpu`, `cuda:0`.

use std::fmt;
use std::str::FromStr;

use candle_core::Device;

use super::cuda;
use crate::error::{Error, Result};

/// A device by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first CUDA device if there is one that answers, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The CUDA device of this number, from 0.
    Cuda(usize),
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = |text: &str| {
            // `parse` alone would take a sign and leading zeros, so that one device had many names.
            text.parse().ok().filter(|number: &usize| number.to_string() == text)
        };
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            _ => text.strip_prefix("cuda:").and_then(number).map(Self::Cuda).ok_or_else(|| {
                Error::parameter(
                    "device",
                    text,
                    "auto, cpu, or cuda:N with the number of a device, such as cuda:0",
                )
            }),
        }
    }
}

impl DeviceChoice {
    /// Opens the device.
    ///
    /// # Errors
    /// Only for [`DeviceChoice::Cuda`]: [`Error::Unsupported`] in a build without CUDA,
    /// [`Error::Unavailable`] where the build has it and the machine has no such device.
    pub fn open(self) -> Result<Device> {
        match self {
            Self::Auto => Ok(cuda::open(0).unwrap_or(Device::Cpu)),
            Self::Cpu => Ok(Device::Cpu),
            Self::Cuda(ordinal) => cuda::open(ordinal),
        }
    }
}

/// A CUDA device of this machine.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct CudaDeviceInfo {
    /// The name that [`DeviceChoice`] knows it by, for example `cuda:0`.
    pub device: String,
    /// The vendor's name.
    pub name: String,
    /// Major and minor number.
    pub compute_capability: (u32, u32),
    /// Bytes of memory.
    pub total_memory: u64,
    /// Bytes of memory that nobody uses; `None` if the driver does not say.
    pub free_memory: Option<u64>,
}

/// The CUDA devices of this machine, or why there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct DeviceReport {
    /// The CUDA version that the driver supports, for example `13.0`.
    pub driver: Option<String>,
    /// In the order of their numbers.
    pub devices: Vec<CudaDeviceInfo>,
    /// Why there is no device, or no more of them.
    pub reason: Option<String>,
}

/// Looks for CUDA devices.
#[must_use]
pub fn devices() -> DeviceReport {
    cuda::devices()
}
