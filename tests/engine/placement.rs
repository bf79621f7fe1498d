//! Where a model computes, by name; and what the CPU refuses.

use greenmark::engine::{BatchShape, Device, DeviceChoice, DeviceDtype, Model, Placement};

use crate::fixtures::{Noise, bits, checkpoint, every, load};

#[test]
fn devices_are_named_in_one_way_each() {
    for (text, choice) in [
        ("auto", DeviceChoice::Auto),
        ("cpu", DeviceChoice::Cpu),
        ("cuda:0", DeviceChoice::Cuda(0)),
        ("cuda:13", DeviceChoice::Cuda(13)),
    ] {
        assert_eq!(text.parse::<DeviceChoice>().unwrap(), choice);
        assert_eq!(choice.to_string(), text);
    }
    for text in ["cuda", "cuda:", "cuda:+1", "cuda:01", "cuda:-1", "CPU", "gpu", ""] {
        let error = text.parse::<DeviceChoice>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("device: {text} is not allowed")), "{error}");
        assert!(error.contains("auto, cpu, or cuda:N"), "{error}");
    }
}

#[test]
fn numbers_are_named_in_one_way_each() {
    for dtype in [DeviceDtype::Auto, DeviceDtype::F32, DeviceDtype::Bf16] {
        assert_eq!(dtype.to_string().parse::<DeviceDtype>().unwrap(), dtype);
    }
    let error = "f16".parse::<DeviceDtype>().unwrap_err().to_string();
    assert_eq!(error, "dtype: f16 is not allowed; allowed: auto, f32 or bf16");
}

#[test]
fn the_shape_of_batches_is_named_in_one_way_each() {
    for (text, shape) in [
        ("off", BatchShape::Free),
        ("on", BatchShape::Fixed(64)),
        ("1", BatchShape::Fixed(1)),
        ("512", BatchShape::Fixed(512)),
    ] {
        assert_eq!(text.parse::<BatchShape>().unwrap(), shape);
    }
    for text in ["0", "513", "064", "+8", "-1", "true", "", "99999999999999999999"] {
        let error = text.parse::<BatchShape>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("deterministic: {text} is not allowed")), "{error}");
        assert!(error.contains("off, on (64 rows), or a number of rows, 1 to 512"), "{error}");
    }
    for (sequences, rows) in [(0, 8), (1, 8), (8, 8), (9, 16), (64, 64), (65, 64), (usize::MAX, 64)]
    {
        assert_eq!(BatchShape::fixed_for(sequences), BatchShape::Fixed(rows), "{sequences}");
    }
}

#[test]
fn the_cpu_is_always_there_and_computes_with_what_is_stored() {
    let device = DeviceChoice::Cpu.open().unwrap();
    assert!(device.is_cpu());
    let placed = |dtype, batch| {
        let placement = Placement { dtype, batch, ..Placement::from(Device::Cpu) };
        Model::load_with(checkpoint("llama"), &placement)
    };
    for dtype in [DeviceDtype::F32, DeviceDtype::Bf16] {
        let error = placed(dtype, BatchShape::Free).unwrap_err().to_string();
        assert!(error.starts_with(&format!("unsupported dtype on the CPU {dtype}")), "{error}");
    }
    // A fixed shape promises what the CPU does anyway.
    let ids = Noise(60).ids(20, 300);
    let fixed = placed(DeviceDtype::Auto, BatchShape::Fixed(4)).unwrap();
    assert_eq!(bits(&every(&fixed, &ids)), bits(&every(&load(checkpoint("llama")), &ids)));
    let error = placed(DeviceDtype::Auto, BatchShape::Fixed(0)).unwrap_err().to_string();
    assert!(error.contains("rows of a fixed batch: 0"), "{error}");
}

#[cfg(not(feature = "cuda"))]
#[test]
fn a_build_without_cuda_says_so() {
    assert!(DeviceChoice::Auto.open().unwrap().is_cpu());
    let error = DeviceChoice::Cuda(0).open().unwrap_err().to_string();
    assert!(error.starts_with("unsupported device cuda:0"), "{error}");
    assert!(error.contains("this build has no CUDA"), "{error}");
    let report = greenmark::engine::devices();
    assert_eq!((report.devices.len(), report.driver), (0, None));
    assert!(report.reason.unwrap().contains("this build has no CUDA"));
}
