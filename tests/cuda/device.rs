//! Opening devices, and what the other tests need of one.

use greenmark::engine::{
    BatchShape, Device, DeviceChoice, DeviceDtype, LogitsAt, Model, Placement, Sequence, devices,
};

use crate::fixtures::{checkpoint, load, step};

/// The first device.
///
/// # Panics
/// If there is none; the message says how to run these tests.
pub(crate) fn device() -> Device {
    DeviceChoice::Cuda(0).open().unwrap_or_else(|error| {
        panic!(
            "{error}\nThese tests need a CUDA device, or the mock driver in LD_LIBRARY_PATH; \
             `tools/gpu-check` builds the mock and runs them on it"
        )
    })
}

pub(crate) fn on_device(
    path: impl AsRef<std::path::Path>,
    dtype: DeviceDtype,
    batch: BatchShape,
) -> Model {
    let placement = Placement { dtype, batch, ..Placement::from(device()) };
    Model::load_with(path, &placement).unwrap()
}

/// A model of `data/models` in f32, with passes of any shape.
pub(crate) fn checkpoint_on_device(name: &str) -> Model {
    on_device(checkpoint(name), DeviceDtype::Auto, BatchShape::Free)
}

/// Whether the device is the mock, whose matrix products round as the tests have chosen.
pub(crate) fn is_mock() -> bool {
    devices().devices.first().is_some_and(|device| device.name.contains("mock"))
}

#[test]
fn devices_are_described() {
    device();
    let report = devices();
    assert_eq!(report.reason, None);
    let driver = report.driver.unwrap();
    let (major, _) = driver.split_once('.').unwrap();
    assert!(major.parse::<u32>().unwrap() >= 12, "{driver}");
    let first = &report.devices[0];
    assert_eq!(first.device, "cuda:0");
    assert!(!first.name.is_empty());
    assert!(first.compute_capability >= (8, 0), "{:?}", first.compute_capability);
    assert!(first.total_memory > 1 << 30, "{}", first.total_memory);
    assert!(first.free_memory.is_none_or(|free| free <= first.total_memory));
}

#[test]
fn a_device_beyond_the_last_is_refused_and_auto_takes_the_first() {
    let count = devices().devices.len();
    let error = DeviceChoice::Cuda(count).open().unwrap_err().to_string();
    assert!(error.contains(&format!("device cuda:{count} is not available")), "{error}");
    assert!(error.contains(&format!("the last is cuda:{}", count - 1)), "{error}");
    assert!(DeviceChoice::Auto.open().unwrap().is_cuda());
    assert!(DeviceChoice::Cpu.open().unwrap().is_cpu());
}

#[test]
fn a_model_says_where_it_computes() {
    let device = devices().devices.remove(0);
    let info = |dtype, batch| on_device(checkpoint("llama"), dtype, batch).info().clone();
    let found = info(DeviceDtype::Auto, BatchShape::Free);
    assert_eq!(found.kernels, format!("CUDA, {}, f32", device.name));
    assert!(found.weights.ends_with("F32"), "{}", found.weights);
    let found = info(DeviceDtype::Bf16, BatchShape::Fixed(8));
    assert_eq!(found.kernels, format!("CUDA, {}, bf16, 8 rows a pass", device.name));
    assert_eq!(found.cache_type.bytes(), 2);
}

#[test]
fn candles_own_device_is_accepted() {
    // Its stream is one per thread; the model must not use it.
    let model = Model::load(checkpoint("qwen3"), Device::new_cuda(0).unwrap()).unwrap();
    assert!(model.device().is_cuda());
    let mut cache = model.new_cache(8).unwrap();
    let row = step(&model, &mut cache, &[1, 2, 3], LogitsAt::Last).pop().unwrap();
    assert!(row.iter().all(|v| v.is_finite()));
}

#[test]
fn a_cache_of_another_place_is_refused() {
    let (cpu, gpu) = (load(checkpoint("llama")), checkpoint_on_device("llama"));
    // Each model has a device of its own, and so its own caches.
    let other = checkpoint_on_device("llama");
    let refused = |model: &Model, maker: &Model| {
        let mut cache = maker.new_cache(8).unwrap();
        let mut batch = [Sequence { ids: &[1], cache: &mut cache, logits: LogitsAt::Last }];
        let error = model.forward(&mut batch).unwrap_err().to_string();
        assert!(error.contains("made for another model"), "{error}");
    };
    refused(&gpu, &cpu);
    refused(&cpu, &gpu);
    refused(&gpu, &other);
    let mut cache = gpu.new_cache(8).unwrap();
    assert_eq!((cache.capacity(), step(&gpu, &mut cache, &[1], LogitsAt::Last).len()), (8, 1));
    // The first id that does not fit is refused although the room is rounded up to 32.
    let ids = [1; 8];
    let mut batch = [Sequence { ids: &ids, cache: &mut cache, logits: LogitsAt::Last }];
    assert!(gpu.forward(&mut batch).unwrap_err().to_string().contains("context of 8"));
}
