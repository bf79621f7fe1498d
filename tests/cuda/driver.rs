//! The driver below candle: what a device, or the mock in its place, must do for the engine. The
//! mock itself is tested here: its products that depend on the batch, its log, its errors.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use candle_core::{D, DType, Device, IndexOp, Tensor};
use tempfile::NamedTempFile;

use crate::device::{device, is_mock};
use crate::fixtures::Noise;

/// A tensor of the given shape on the CPU, uniform in (-1, 1).
fn uniform(noise: &mut Noise, shape: &[usize]) -> Tensor {
    let count = shape.iter().product();
    Tensor::from_vec(noise.take(count), shape, &Device::Cpu).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_dtype(DType::F32).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

/// The same computation on both, within a tolerance.
fn agree(what: &str, tolerance: f32, inputs: &[Tensor], compute: impl Fn(&[Tensor]) -> Tensor) {
    let device = device();
    let there: Vec<Tensor> = inputs.iter().map(|t| t.to_device(&device).unwrap()).collect();
    let (wanted, found) = (compute(inputs), compute(&there));
    assert_eq!(wanted.dims(), found.dims(), "{what}");
    assert_eq!(wanted.dtype(), found.dtype(), "{what}");
    for (wanted, found) in values(&wanted).iter().zip(values(&found)) {
        assert!((wanted - found).abs() <= tolerance, "{what}: {wanted} and {found}");
    }
}

#[test]
fn tensors_come_back_as_they_went() {
    let device = device();
    let bytes: Vec<u8> = (0..=255).collect();
    let there = Tensor::from_slice(&bytes, (16, 16), &device).unwrap();
    assert_eq!(there.flatten_all().unwrap().to_vec1::<u8>().unwrap(), bytes);
    // A part that does not begin at the storage's start.
    assert_eq!(there.i((3, 2..5)).unwrap().to_vec1::<u8>().unwrap(), [50, 51, 52]);
    let ids = [0_u32, 1, u32::MAX, 151_935];
    assert_eq!(Tensor::new(&ids, &device).unwrap().to_vec1::<u32>().unwrap(), ids);
    let longs = [i64::MIN, -1, i64::MAX];
    assert_eq!(Tensor::new(&longs, &device).unwrap().to_vec1::<i64>().unwrap(), longs);
    let doubles = [f64::MIN_POSITIVE, -1.0 / 3.0, f64::NEG_INFINITY];
    assert_eq!(Tensor::new(&doubles, &device).unwrap().to_vec1::<f64>().unwrap(), doubles);
}

#[test]
fn products_equal_those_of_the_cpu() {
    let mut noise = Noise(1);
    // Activations by transposed weights, as every linear layer; one row, several, odd lengths.
    for (rows, width, features) in [(1, 64, 96), (5, 33, 7), (8, 1, 3), (3, 256, 130)] {
        let x = uniform(&mut noise, &[rows, width]);
        let weights = uniform(&mut noise, &[features, width]);
        for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::BF16, 0.05), (DType::F16, 0.01)] {
            let inputs = [x.to_dtype(dtype).unwrap(), weights.to_dtype(dtype).unwrap()];
            let what = format!("{rows} x {width} x {features} {dtype:?}");
            agree(&what, tolerance, &inputs, |t| t[0].matmul(&t[1].t().unwrap()).unwrap());
        }
    }
    // Batches of heads, the second matrix transposed or not, as attention.
    let q = uniform(&mut noise, &[2, 3, 4, 16]);
    let k = uniform(&mut noise, &[2, 3, 9, 16]);
    agree("q k", 1e-5, &[q, k.clone()], |t| t[0].matmul(&t[1].t().unwrap()).unwrap());
    let scores = uniform(&mut noise, &[2, 3, 4, 9]);
    agree("scores v", 1e-5, &[scores, k], |t| t[0].matmul(&t[1]).unwrap());
}

#[test]
fn rows_are_picked_and_types_converted_as_on_the_cpu() {
    let mut noise = Noise(2);
    let table = uniform(&mut noise, &[50, 24]);
    let ids = Tensor::new(&[49_u32, 0, 7, 7], &Device::Cpu).unwrap();
    agree("rows", 0.0, &[table.clone(), ids], |t| t[0].index_select(&t[1], 0).unwrap());
    let floats = [DType::F16, DType::BF16, DType::F32, DType::F64];
    for from in floats {
        for to in floats {
            // Both round to the nearest, so equality is exact.
            let input = [table.to_dtype(from).unwrap()];
            agree(&format!("{from:?} to {to:?}"), 0.0, &input, |t| t[0].to_dtype(to).unwrap());
        }
    }
    let whole = Tensor::arange(0_u32, 40, &Device::Cpu).unwrap();
    agree("u32 to f32", 0.0, &[whole], |t| t[0].to_dtype(DType::F32).unwrap());
}

#[test]
fn the_operations_of_a_model_equal_those_of_the_cpu() {
    let mut noise = Noise(3);
    let x = uniform(&mut noise, &[3, 5, 40]);
    let y = uniform(&mut noise, &[40]);
    let one = [x.clone()];
    let two = [x.clone(), y];
    agree("sum", 1e-5, &two, |t| t[0].broadcast_add(&t[1]).unwrap());
    agree("product", 1e-6, &two, |t| t[0].broadcast_mul(&t[1]).unwrap());
    agree("affine", 1e-6, &one, |t| t[0].affine(0.5, -2.0).unwrap());
    agree("silu", 1e-5, &one, |t| t[0].silu().unwrap());
    agree("exp", 1e-5, &one, |t| t[0].exp().unwrap());
    agree("total", 1e-4, &one, |t| t[0].sum_keepdim(D::Minus1).unwrap());
    agree("largest", 0.0, &one, |t| t[0].max_keepdim(D::Minus1).unwrap());
    agree("place of the largest", 0.0, &one, |t| t[0].argmax(D::Minus1).unwrap());
    agree("narrow", 0.0, &one, |t| t[0].narrow(2, 3, 17).unwrap().contiguous().unwrap());
    agree("transposed", 0.0, &one, |t| t[0].transpose(0, 2).unwrap().contiguous().unwrap());
    agree("joined", 0.0, &one, |t| Tensor::cat(&[&t[0], &t[0]], 1).unwrap());
    agree("chosen", 0.0, &one, |t| {
        let zeros = t[0].zeros_like().unwrap();
        t[0].ge(&zeros).unwrap().where_cond(&t[0], &zeros).unwrap()
    });
    agree("sorted", 0.0, &one, |t| t[0].sort_last_dim(true).unwrap().0);
    agree("half sum", 0.0, &one, |t| {
        let half = t[0].to_dtype(DType::BF16).unwrap();
        (&half + &half).unwrap()
    });
}

#[test]
fn random_numbers_have_their_mean_and_spread() {
    let device = device();
    let drawn = values(&Tensor::randn(3.0_f32, 0.5, 20_000, &device).unwrap());
    let mean = drawn.iter().sum::<f32>() / 20_000.0;
    let variance = drawn.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / 20_000.0;
    // Six standard deviations of the estimates.
    assert!((mean - 3.0).abs() < 0.022, "{mean}");
    assert!((variance - 0.25).abs() < 0.016, "{variance}");
    let flat = values(&Tensor::rand(-1.0_f32, 1.0, 20_000, &device).unwrap());
    assert!(flat.iter().all(|x| (-1.0..=1.0).contains(x)));
    assert!((flat.iter().sum::<f32>() / 20_000.0).abs() < 0.025);
}

/// Runs one of the tests below that are ignored, in a process with these settings of the mock;
/// what it printed.
pub(crate) fn in_process(test: &str, settings: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    for name in ["SPLIT", "LAUNCHES", "MEMORY", "WORKERS", "ORDER"] {
        command.env_remove(format!("MOCK_CUDA_{name}"));
    }
    let output = command.envs(settings.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    text
}

/// The lines of a test that begin with a word, without it.
fn lines(text: &str, word: &str) -> Vec<String> {
    let found: Vec<_> = text.lines().filter_map(|line| line.split_once(word)).collect();
    assert!(!found.is_empty(), "no {word:?} in {text}");
    found.into_iter().map(|(_, rest)| rest.trim().to_owned()).collect()
}

#[test]
#[ignore = "run by another test, in a process with other settings"]
fn one_row_in_batches() {
    let device = device();
    let mut noise = Noise(4);
    let weights = uniform(&mut noise, &[4, 1000]).to_device(&device).unwrap();
    let row = uniform(&mut noise, &[1, 1000]);
    for rows in 1..=7 {
        let others = uniform(&mut noise, &[rows, 1000]);
        let batch = Tensor::cat(&[&row, &others], 0).unwrap().narrow(0, 0, rows).unwrap();
        let product = batch.to_device(&device).unwrap().matmul(&weights.t().unwrap()).unwrap();
        let bits: Vec<u32> = values(&product.i(0).unwrap()).iter().map(|x| x.to_bits()).collect();
        println!("\nproduct {bits:?}");
    }
}

/// Without it no test could tell a mode that is deterministic from one that is not.
#[test]
fn split_products_depend_on_the_batch_and_others_do_not() {
    device();
    if !is_mock() {
        return println!("skipped: only the mock can be told how to sum");
    }
    let distinct = |settings: &[(&str, &str)]| -> usize {
        let products = lines(&in_process("driver::one_row_in_batches", settings), "product ");
        assert_eq!(products.len(), 7);
        products.into_iter().collect::<BTreeSet<_>>().len()
    };
    assert_eq!(distinct(&[]), 1);
    // Sums of a thousand numbers in another order: most differ in the last bit of one of four.
    assert!(distinct(&[("MOCK_CUDA_SPLIT", "1")]) >= 4);
    // The order of blocks and threads changes nothing.
    assert_eq!(distinct(&[("MOCK_CUDA_ORDER", "7"), ("MOCK_CUDA_WORKERS", "2")]), 1);
}

#[test]
#[ignore = "run by another test, in a process with other settings"]
fn a_few_operations() {
    let device = device();
    let x = Tensor::ones((2, 3), DType::F32, &device).unwrap();
    let weights = Tensor::ones((5, 3), DType::F32, &device).unwrap();
    let product = x.matmul(&weights.t().unwrap()).unwrap().affine(2.0, 1.0).unwrap();
    assert_eq!(product.to_vec2::<f32>().unwrap(), [[7.0; 5]; 2]);
}

/// Launches and bytes back to the host can be counted: the log has each, with its size.
#[test]
fn the_mock_logs_what_it_is_asked_to_do() {
    device();
    if !is_mock() {
        return println!("skipped: only the mock has a log");
    }
    let file = NamedTempFile::new().unwrap();
    in_process(
        "driver::a_few_operations",
        &[("MOCK_CUDA_LAUNCHES", file.path().to_str().unwrap())],
    );
    let log = std::fs::read_to_string(file.path()).unwrap();
    let mut counts = BTreeMap::new();
    for line in log.lines() {
        *counts.entry(line).or_insert(0) += 1;
    }
    assert_eq!(counts.get("gemm m 5 n 2 k 3 batch 1 type f32"), Some(&1), "{log}");
    // Ten results of four bytes, and nothing else comes back.
    let back: Vec<_> = counts.iter().filter(|(line, _)| line.contains("dtoh")).collect();
    assert_eq!(back, [(&"copy dtoh 40", &1)], "{log}");
    let launched = log.lines().filter(|line| line.starts_with("launch affine_f32 grid")).count();
    assert_eq!(launched, 1, "{log}");
}

#[test]
#[ignore = "run by another test, in a process with other settings"]
fn more_than_there_is() {
    let device = device();
    let error = Tensor::zeros(1 << 20, DType::F32, &device).unwrap_err();
    println!("\nrefused: {}", error.to_string().replace('\n', " "));
    // What was refused holds nothing.
    Tensor::zeros(1000, DType::F32, &device).unwrap();
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    device();
    if !is_mock() {
        return println!("skipped: only the mock's memory can be made small");
    }
    let text = in_process("driver::more_than_there_is", &[("MOCK_CUDA_MEMORY", "1000000")]);
    let refused = lines(&text, "refused:");
    assert!(refused[0].contains("CUDA_ERROR_OUT_OF_MEMORY"), "{text}");
}

/// What the mock lacks is an error of the driver: a test that needs it fails and does not crash.
#[test]
fn a_function_that_the_mock_lacks_answers_an_error() {
    use candle_core::cuda_backend::cudarc::driver::sys::CUstreamCaptureMode;

    let Device::Cuda(device) = device() else { unreachable!("a CUDA device was opened") };
    if !is_mock() {
        return println!("skipped: a real driver lacks nothing");
    }
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let error = device.cuda_stream().begin_capture(mode).unwrap_err();
    assert!(format!("{error:?}").contains("NOT_SUPPORTED"), "{error:?}");
}
