//! Takes the place of the device flags in a build without the engine, where nothing computes.

use greenmark::Result;

use crate::args::DeviceArgs;

/// What the flags ask for: nothing that this build could do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placing;

impl Placing {
    #[expect(clippy::unnecessary_wraps, reason = "the form of the twin")]
    pub(crate) fn resolve(_args: &DeviceArgs) -> Result<Self> {
        Ok(Self)
    }
}
