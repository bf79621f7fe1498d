//! What `wm doctor` says of the engine: processors and devices.

use greenmark::engine::linear::Isa;
use greenmark::engine::{CudaDeviceInfo, DeviceChoice, devices};

use crate::commands::doctor::{Check, EngineState};

pub(super) fn look() -> EngineState {
    let report = devices();
    let mut checks = vec![processor()];
    if let Some(reason) = &report.reason {
        // The CPU serves; that there is nothing else is no fault.
        checks.push(Check::note("devices", reason));
    }
    checks.extend(report.devices.iter().map(|info| device(info, report.driver.as_deref())));
    EngineState { checks, devices: serde_json::to_value(&report).ok() }
}

fn processor() -> Check {
    let (best, threads) = (Isa::best(), rayon::current_num_threads());
    let text = format!("{best} kernels, {threads} threads");
    if best == Isa::PORTABLE {
        return Check::note("CPU", format!("{text}: this processor has no faster ones"));
    }
    Check::ok("CPU", text)
}

/// A device that the driver lists, once it was opened as a model would open it.
fn device(info: &CudaDeviceInfo, driver: Option<&str>) -> Check {
    let gibibytes = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let (major, minor) = info.compute_capability;
    let free =
        info.free_memory.map_or(String::new(), |free| format!(", {:.1} free", gibibytes(free)));
    let driver = driver.map_or(String::new(), |version| format!("; driver for CUDA {version}"));
    let text = format!(
        "{}: {}, compute capability {major}.{minor}, {:.1} GiB{free}{driver}",
        info.device,
        info.name,
        gibibytes(info.total_memory)
    );
    match info.device.parse::<DeviceChoice>().and_then(DeviceChoice::open) {
        Ok(_) => Check::ok("devices", text),
        Err(error) => Check::problem_of("devices", &error),
    }
}
