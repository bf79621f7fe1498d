//! Where a model is to compute: the device flags as a placement.

use greenmark::Result;
use greenmark::document::visible::one_line;
use greenmark::engine::{BatchShape, DeviceChoice, DeviceDtype, Placement, SamplerPlace, devices};

use crate::args::DeviceArgs;
use crate::output::note;

/// What the flags ask for; no device is touched yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placing {
    device: DeviceChoice,
    dtype: DeviceDtype,
    sampler: SamplerPlace,
    batch: Option<BatchShape>,
}

/// A device that answered.
pub(crate) struct Opened {
    pub(crate) placement: Placement,
    /// The user left the choice to the program.
    pub(crate) is_own_choice: bool,
}

impl Placing {
    pub(crate) fn resolve(args: &DeviceArgs) -> Result<Self> {
        Ok(Self {
            device: parsed(args.device.as_deref())?.unwrap_or_default(),
            dtype: parsed(args.dtype.as_deref())?.unwrap_or_default(),
            sampler: parsed(args.sampler.as_deref())?.unwrap_or_default(),
            batch: parsed(args.deterministic.as_deref())?,
        })
    }

    /// With this shape of passes if the flags name none.
    pub(crate) fn or_batch(mut self, batch: BatchShape) -> Self {
        self.batch = self.batch.or(Some(batch));
        self
    }

    /// Opens the device, and refuses what cannot be done on it before any model is fetched.
    pub(crate) fn open(self) -> Result<Opened> {
        let placement = Placement {
            device: self.device.open()?,
            dtype: self.dtype,
            batch: self.batch.unwrap_or_default(),
            sampler: self.sampler,
        };
        placement.check()?;
        if self.device == DeviceChoice::Auto && placement.device.is_cpu() {
            note_broken_device();
        }
        Ok(Opened { placement, is_own_choice: self.device == DeviceChoice::Auto })
    }
}

/// Says why a device that is there is not used.
fn note_broken_device() {
    if !devices().devices.is_empty()
        && let Err(error) = DeviceChoice::Cuda(0).open()
    {
        note!("--device auto takes the CPU: {}", one_line(&error.to_string()));
    }
}

fn parsed<T: std::str::FromStr<Err = greenmark::Error>>(text: Option<&str>) -> Result<Option<T>> {
    text.map(str::parse).transpose()
}
