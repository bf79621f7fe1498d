//! Linear layers of every storage: values, and bits that depend on nothing but the row.

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use greenmark::engine::linear::{
    Activations, BlockKind, Isa, Linear, Rows, Storage, apply, linear,
};

use crate::fixtures::Noise;

const KINDS: [(Storage, Option<GgmlDType>); 13] = [
    (Storage::F32, None),
    (Storage::F16, None),
    (Storage::Bf16, None),
    (Storage::Blocks(BlockKind::Q4_0), Some(GgmlDType::Q4_0)),
    (Storage::Blocks(BlockKind::Q4_1), Some(GgmlDType::Q4_1)),
    (Storage::Blocks(BlockKind::Q8_0), Some(GgmlDType::Q8_0)),
    (Storage::Candle(GgmlDType::Q5_0), Some(GgmlDType::Q5_0)),
    (Storage::Candle(GgmlDType::Q5_1), Some(GgmlDType::Q5_1)),
    (Storage::Candle(GgmlDType::Q2K), Some(GgmlDType::Q2K)),
    (Storage::Candle(GgmlDType::Q3K), Some(GgmlDType::Q3K)),
    (Storage::Candle(GgmlDType::Q4K), Some(GgmlDType::Q4K)),
    (Storage::Candle(GgmlDType::Q5K), Some(GgmlDType::Q5K)),
    (Storage::Candle(GgmlDType::Q6K), Some(GgmlDType::Q6K)),
];

/// Columns: no multiple of 16, and one that candle's packed kernels take.
const SIZES: [(usize, usize); 2] = [(37, 256), (64, 512)];

/// The bytes of a random matrix in a storage and the values they stand for.
fn matrix(
    storage: Storage,
    dtype: Option<GgmlDType>,
    shape: (usize, usize),
) -> (Vec<u8>, Vec<f32>) {
    let values = Noise(7).take(shape.0 * shape.1);
    if let Some(dtype) = dtype {
        let tensor = Tensor::from_vec(values, shape, &Device::Cpu).unwrap();
        let tensor = QTensor::quantize(&tensor, dtype).unwrap();
        let exact = tensor.dequantize(&Device::Cpu).unwrap().flatten_all().unwrap();
        return (tensor.data().unwrap().to_vec(), exact.to_vec1().unwrap());
    }
    match storage {
        Storage::F16 => {
            let halves: Vec<half::f16> = values.iter().map(|&v| half::f16::from_f32(v)).collect();
            let bytes = halves.iter().flat_map(|h| h.to_le_bytes()).collect();
            (bytes, halves.iter().map(|h| h.to_f32()).collect())
        }
        Storage::Bf16 => {
            let halves: Vec<half::bf16> = values.iter().map(|&v| half::bf16::from_f32(v)).collect();
            let bytes = halves.iter().flat_map(|h| h.to_le_bytes()).collect();
            (bytes, halves.iter().map(|h| h.to_f32()).collect())
        }
        _ => (values.iter().flat_map(|v| v.to_le_bytes()).collect(), values),
    }
}

fn layer(
    isa: Isa,
    storage: Storage,
    dtype: Option<GgmlDType>,
    shape: (usize, usize),
) -> Box<dyn Linear> {
    linear(isa, storage, shape.0, shape.1, &matrix(storage, dtype, shape).0).unwrap()
}

fn forward(layer: &dyn Linear, xs: &Rows) -> Rows {
    layer.forward(&Activations::new(xs)).unwrap()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn products_are_close_to_exact_ones() {
    for (storage, dtype) in KINDS {
        for shape in SIZES {
            let (bytes, exact) = matrix(storage, dtype, shape);
            let layer = linear(Isa::best(), storage, shape.0, shape.1, &bytes).unwrap();
            assert_eq!((layer.out_features(), layer.in_features()), shape);
            let xs = Rows::from_vec(shape.1, Noise(8).take(5 * shape.1));
            let ys = forward(&*layer, &xs);
            assert_eq!((ys.len(), ys.width()), (5, shape.0));
            // candle rounds activations to 8 bits, our kernels to 16: half a step of 1 for each
            // of the inputs, with random signs, at weights of at most 1.
            let rounding = match storage {
                Storage::Candle(_) => 0.5 / 127.0,
                Storage::Blocks(_) => 0.5 / 32_512.0,
                _ => 0.0,
            };
            #[expect(clippy::cast_precision_loss, reason = "hundreds")]
            let tolerance = 1e-4 + 5.0 * rounding * (shape.1 as f64 / 3.0).sqrt();
            for row in 0..5 {
                for (column, &y) in ys.row(row).iter().enumerate() {
                    let weights = &exact[column * shape.1..][..shape.1];
                    let sum: f64 = weights
                        .iter()
                        .zip(xs.row(row))
                        .map(|(&w, &x)| f64::from(w) * f64::from(x))
                        .sum();
                    let error = (f64::from(y) - sum).abs();
                    assert!(error <= tolerance, "{storage:?} {shape:?}: {error}");
                }
            }
            let mut weights = vec![0.0; shape.1];
            layer.weight_row(shape.0 - 1, &mut weights).unwrap();
            let last = &exact[(shape.0 - 1) * shape.1..];
            for (w, e) in weights.iter().zip(last) {
                assert!((w - e).abs() <= 1e-6, "{storage:?}: {w} {e}");
            }
        }
    }
}

#[test]
fn a_row_is_the_same_in_every_batch() {
    for (storage, dtype) in KINDS {
        for shape in SIZES {
            let layer = layer(Isa::best(), storage, dtype, shape);
            let xs = Noise(9).take(70 * shape.1);
            let alone: Vec<Vec<u32>> = xs
                .chunks(shape.1)
                .map(|row| bits(forward(&*layer, &Rows::from_vec(shape.1, row.to_vec())).data()))
                .collect();
            for batch in [2, 3, 8, 33, 70] {
                for (i, rows) in xs.chunks(batch * shape.1).enumerate() {
                    let ys = forward(&*layer, &Rows::from_vec(shape.1, rows.to_vec()));
                    for row in 0..ys.len() {
                        let expected = &alone[i * batch + row];
                        assert_eq!(&bits(ys.row(row)), expected, "{storage:?} {shape:?} {batch}");
                    }
                }
            }
        }
    }
}

#[test]
fn every_instruction_level_gives_the_same_bits() {
    let levels = Isa::available();
    assert_eq!(levels[0], Isa::PORTABLE);
    for (storage, dtype) in KINDS.into_iter().filter(|(s, _)| !matches!(s, Storage::Candle(_))) {
        for shape in SIZES {
            // Extreme values on purpose: signs and saturation are where kernels differ.
            let mut xs = Noise(10).take(7 * shape.1);
            for (i, x) in xs.iter_mut().enumerate().filter(|(i, _)| i % 5 == 0) {
                *x = if i % 2 == 0 { 1e6 } else { -1e6 };
            }
            let xs = Rows::from_vec(shape.1, xs);
            let portable = forward(&*layer(Isa::PORTABLE, storage, dtype, shape), &xs);
            for &level in &levels[1..] {
                let ys = forward(&*layer(level, storage, dtype, shape), &xs);
                assert_eq!(bits(ys.data()), bits(portable.data()), "{storage:?} {level}");
            }
        }
    }
}

#[test]
fn extreme_weight_integers_give_the_same_bits() {
    for (kind, head, low) in [
        (BlockKind::Q8_0, 0x3c00u16, None),
        (BlockKind::Q4_0, 0x3c00, None),
        (BlockKind::Q4_1, 0x3c00, Some(0xbc00u16)),
    ] {
        // -128 and 127 as 8-bit weights, 0 and 15 as 4-bit ones, against activations of +-127.
        let mut bytes = Vec::new();
        for column in 0..16u8 {
            bytes.extend(head.to_le_bytes());
            bytes.extend(low.into_iter().flat_map(u16::to_le_bytes));
            let elements = kind.bytes() - 2 - if low.is_some() { 2 } else { 0 };
            bytes.extend((0..elements).map(|i| match (column % 4, i % 2) {
                (0, _) => 0x80,
                (1, _) => 0x7f,
                (2, 0) => 0xff,
                _ => 0x00,
            }));
        }
        let xs: Vec<f32> = [1.0, -1.0]
            .into_iter()
            .flat_map(|sign| (0..32).map(move |i| if i % 3 == 0 { -sign } else { sign }))
            .collect();
        let xs = Rows::from_vec(32, xs);
        let product =
            |isa| forward(&*linear(isa, Storage::Blocks(kind), 16, 32, &bytes).unwrap(), &xs);
        let portable = product(Isa::PORTABLE);
        if kind == BlockKind::Q8_0 {
            // Column 0 is -128 everywhere; the activations are 21 ones and 11 minus ones.
            assert!((portable.row(0)[0] + 128.0 * 10.0).abs() < 1e-3, "{:?}", portable.row(0));
        }
        for level in Isa::available() {
            assert_eq!(bits(product(level).data()), bits(portable.data()), "{kind:?} {level}");
        }
    }
}

#[test]
fn layers_applied_together_equal_layers_applied_alone() {
    let shape = (64, 512);
    let layers: Vec<Box<dyn Linear>> = KINDS
        .into_iter()
        .filter(|(s, _)| !matches!(s, Storage::Candle(_)))
        .map(|(storage, dtype)| layer(Isa::best(), storage, dtype, shape))
        .collect();
    let all: Vec<&dyn Linear> = layers.iter().map(|layer| &**layer).collect();
    for rows in [0, 1, 2, 40] {
        let xs = Rows::from_vec(shape.1, Noise(11).take(rows * shape.1));
        let together = apply(&all, &Activations::new(&xs)).unwrap();
        for (layer, together) in all.iter().zip(&together) {
            let alone = forward(*layer, &xs);
            assert_eq!((together.len(), together.width()), (rows, shape.0));
            assert_eq!(bits(alone.data()), bits(together.data()));
        }
    }
}

#[test]
fn numbers_that_are_none_are_not_lost() {
    for (storage, dtype) in KINDS.into_iter().filter(|(s, _)| !matches!(s, Storage::Candle(_))) {
        let layer = layer(Isa::best(), storage, dtype, (37, 256));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut xs = Noise(12).take(2 * 256);
            xs[100] = bad;
            let ys = forward(&*layer, &Rows::from_vec(256, xs));
            assert!(ys.row(0).iter().all(|y| !y.is_finite()), "{storage:?} {bad}");
            assert!(ys.row(1).iter().all(|y| y.is_finite()), "{storage:?} {bad}");
        }
        let zeros = forward(&*layer, &Rows::zeros(1, 256));
        assert!(zeros.data().iter().all(|&y| y == 0.0), "{storage:?}");
    }
}

#[test]
fn bytes_may_stand_at_any_address() {
    let shape = SIZES[0];
    for (storage, dtype) in KINDS {
        let (bytes, _) = matrix(storage, dtype, shape);
        let xs = Rows::from_vec(shape.1, Noise(13).take(shape.1));
        let expected = forward(&*layer(Isa::best(), storage, dtype, shape), &xs);
        let mut shifted = vec![0; 1];
        shifted.extend(&bytes);
        for start in [0, 1] {
            let bytes = if start == 0 { &bytes[..] } else { &shifted[1..] };
            let layer = linear(Isa::best(), storage, shape.0, shape.1, bytes).unwrap();
            assert_eq!(bits(forward(&*layer, &xs).data()), bits(expected.data()), "{storage:?}");
        }
    }
}

#[test]
fn wrong_sizes_are_refused() {
    let error = linear(Isa::best(), Storage::Blocks(BlockKind::Q4_1), 2, 64, &[0; 79]).unwrap_err();
    assert!(error.to_string().contains("79 bytes"), "{error}");
    assert!(error.to_string().contains("80 bytes"), "{error}");
    let error = linear(Isa::best(), Storage::Blocks(BlockKind::Q8_0), 2, 33, &[0; 68]).unwrap_err();
    assert!(error.to_string().contains("multiple of 32"), "{error}");
    let layer = linear(Isa::best(), Storage::F32, 1, 2, &[0; 8]).unwrap();
    let error = layer.forward(&Activations::new(&Rows::zeros(1, 3))).unwrap_err();
    assert!(error.to_string().contains("rows of 3"), "{error}");
}
