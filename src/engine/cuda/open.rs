//! Finds and opens CUDA devices.

use candle_core::Device;
use candle_core::backend::BackendDevice;
use candle_core::cuda_backend::CudaDevice;
use candle_core::cuda_backend::cudarc::driver::{CudaContext, DriverError};

use super::launch;
use crate::engine::device::{CudaDeviceInfo, DeviceChoice, DeviceReport};
use crate::error::{Error, Result};

/// Number of devices, or why there is none.
fn count() -> std::result::Result<usize, String> {
    let none = |error: Option<DriverError>| {
        let answer = error.map_or(String::new(), |error| format!(" ({:?})", error.0));
        format!("no NVIDIA driver or device{answer}")
    };
    match CudaContext::device_count() {
        Ok(count) => usize::try_from(count).ok().filter(|count| *count > 0).ok_or(none(None)),
        Err(error) => Err(none(Some(error))),
    }
}

/// Opens a device by its number.
pub(in crate::engine) fn open(ordinal: usize) -> Result<Device> {
    open_cuda(ordinal).map(Device::Cuda)
}

fn open_cuda(ordinal: usize) -> Result<CudaDevice> {
    let unavailable = |reason: String, remedy: &str| Error::Unavailable {
        what: format!("device {}", DeviceChoice::Cuda(ordinal)),
        reason: format!("{reason}."),
        remedy: remedy.to_owned(),
    };
    let count = count().map_err(|reason| {
        let remedy = "Run on a machine with an NVIDIA GPU and its driver (`nvidia-smi` lists \
                      both), or with --device cpu";
        unavailable(reason, remedy)
    })?;
    if ordinal >= count {
        let last = DeviceChoice::Cuda(count - 1);
        let reason = format!("this machine has {count}, the last is {last}");
        return Err(unavailable(reason, "`wm doctor` lists the devices"));
    }
    let device = launch::device_with_own_stream(ordinal).map_err(|error| {
        let remedy = "The libraries of CUDA 13 (libcublas.so.13 among them) must be in \
                      LD_LIBRARY_PATH, and the device must have free memory";
        unavailable(first_line(&error.to_string()), remedy)
    })?;
    let context = device.cuda_stream().context().clone();
    let (major, minor) = context.compute_capability().map_err(|error| {
        unavailable(format!("it does not say what it is ({:?})", error.0), "`nvidia-smi` may")
    })?;
    // Kernels for a newer device load nowhere else, and the first of them would fail much later.
    let (own, needed) = (10 * major + minor, oldest());
    if own < needed {
        let reason = format!(
            "it has compute capability {major}.{minor}, this program was built for {}.{} and later",
            needed / 10,
            needed % 10
        );
        let remedy =
            format!("Build with CUDA_COMPUTE_CAP={own} tools/gpu-build, or run with --device cpu");
        return Err(unavailable(reason, &remedy));
    }
    Ok(device)
}

/// Ten times the oldest compute capability that candle's kernels were compiled for; our own are
/// for 8.0.
fn oldest() -> i32 {
    env!("GREENMARK_COMPUTE_CAPABILITY").parse().unwrap_or(80).max(80)
}

/// The same device with a stream of its own. What candle opens by default has one per thread, on
/// which the passes of a model that several threads use would overtake each other.
pub(super) fn with_own_stream(device: &Device) -> Result<CudaDevice> {
    match device {
        // Only devices opened here have no event tracking.
        Device::Cuda(device) if !device.is_event_tracking() => Ok(device.clone()),
        Device::Cuda(device) => open_cuda(device.cuda_stream().context().ordinal()),
        other => Err(Error::Unsupported {
            what: "device",
            found: format!("{:?}", other.location()),
            supported: "the CPU and CUDA devices".into(),
        }),
    }
}

/// The vendor's name of a device.
pub(super) fn name(device: &CudaDevice) -> String {
    device.cuda_stream().context().name().unwrap_or_else(|_| format!("{:?}", device.location()))
}

/// Looks for devices.
pub(in crate::engine) fn devices() -> DeviceReport {
    let mut report = DeviceReport {
        // 0 is what a driver says that is not there.
        driver: launch::driver_version()
            .ok()
            .filter(|version| *version > 0)
            .map(|version| format!("{}.{}", version / 1000, version % 1000 / 10)),
        ..DeviceReport::default()
    };
    let found = match count() {
        Ok(count) => (0..count).map(describe).collect(),
        Err(reason) => Err(reason),
    };
    match found {
        Ok(devices) => report.devices = devices,
        Err(reason) => report.reason = Some(reason),
    }
    report
}

fn describe(ordinal: usize) -> std::result::Result<CudaDeviceInfo, String> {
    let device = DeviceChoice::Cuda(ordinal).to_string();
    let read = || -> std::result::Result<CudaDeviceInfo, DriverError> {
        let context = CudaContext::new(ordinal)?;
        let (major, minor) = context.compute_capability()?;
        Ok(CudaDeviceInfo {
            device: device.clone(),
            name: context.name()?,
            compute_capability: (major.unsigned_abs(), minor.unsigned_abs()),
            total_memory: context.total_mem()? as u64,
            free_memory: context.mem_get_info().ok().map(|(free, _)| free as u64),
        })
    };
    read().map_err(|error| format!("{device} does not answer ({:?})", error.0))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
