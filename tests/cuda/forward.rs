//! The forward pass on a device against the one on the CPU.

use greenmark::engine::{BatchShape, DeviceDtype, LogitsAt, Model, Sequence};

use crate::device::{checkpoint_on_device, is_mock, on_device};
use crate::fixtures::{
    CHECKPOINTS, Noise, Tensors, bits, checkpoint, every, floats, greedy, ids, json_file, load,
    read_tensors, step, with_config, write_tensors,
};
use crate::support::default_model;

/// Largest difference between two matrices.
fn distance(a: &[Vec<f32>], b: &[Vec<f32>]) -> f32 {
    assert_eq!((a.len(), a[0].len()), (b.len(), b[0].len()));
    let pairs = a.iter().flatten().zip(b.iter().flatten());
    // A NaN must not be lost in a maximum.
    pairs.fold(0.0, |worst, (a, b)| {
        assert!(a.is_finite() && b.is_finite());
        (a - b).abs().max(worst)
    })
}

/// Logits at every position of every prompt, all in one batch.
pub(crate) fn together(model: &Model, prompts: &[Vec<u32>]) -> Vec<Vec<Vec<f32>>> {
    let mut caches: Vec<_> = prompts.iter().map(|_| model.new_cache(256).unwrap()).collect();
    let mut batch: Vec<Sequence<'_>> = prompts
        .iter()
        .zip(&mut caches)
        .map(|(ids, cache)| Sequence { ids, cache, logits: LogitsAt::Every })
        .collect();
    let logits = model.forward(&mut batch).unwrap();
    logits.iter().map(|l| (0..l.rows()).map(|i| l.row(i).unwrap().to_vec()).collect()).collect()
}

#[test]
fn logits_in_f32_are_those_of_the_cpu_and_of_transformers() {
    for name in CHECKPOINTS {
        let expected = json_file(checkpoint(name).join("expected.json"));
        let tokens = ids(&expected["ids"]);
        let found = every(&checkpoint_on_device(name), &tokens);
        let worst = distance(&found, &every(&load(checkpoint(name)), &tokens));
        assert!(worst <= 1e-4, "{name}: {worst}");
        for (position, logits) in expected["logits"].as_object().unwrap() {
            let row = &found[position.parse::<usize>().unwrap()];
            for (found, wanted) in row.iter().zip(floats(logits)) {
                assert!((f64::from(*found) - wanted).abs() <= 1e-3, "{name} {position}");
            }
        }
    }
}

#[test]
fn positions_beyond_a_tile_of_the_attention_are_those_of_the_cpu() {
    // Tiles are 128 positions: three of them, begun and ended inside, in pieces of a prompt.
    let tokens = Noise(5).ids(256, 300);
    for (name, window) in [("qwen3", None), ("mistral", Some(100))] {
        let folder = with_config(name, |config| {
            if let Some(window) = window {
                config["sliding_window"] = window.into();
            }
        });
        let wanted = every(&load(folder.path()), &tokens);
        let model = on_device(folder.path(), DeviceDtype::F32, BatchShape::Free);
        let mut cache = model.new_cache(256).unwrap();
        let mut found = Vec::new();
        for piece in [&tokens[..127], &tokens[127..129], &tokens[129..250], &tokens[250..]] {
            found.extend(step(&model, &mut cache, piece, LogitsAt::Every));
        }
        let worst = distance(&found, &wanted);
        assert!(worst <= 1e-4, "{name}: {worst}");
    }
}

#[test]
fn a_sliding_window_hides_what_is_older() {
    let window = 5;
    let folder = with_config("mistral", |config| config["sliding_window"] = window.into());
    let model = on_device(folder.path(), DeviceDtype::Auto, BatchShape::Free);
    let tokens = Noise(3).ids(40, 300);
    let slid = every(&model, &tokens);
    assert!(distance(&slid, &every(&load(folder.path()), &tokens)) <= 1e-4);
    // Two layers reach 2 * (window - 1) tokens back and no further.
    let reach = 2 * (window - 1);
    let mut other = tokens.clone();
    other[39 - reach - 1] = (other[39 - reach - 1] + 1) % 300;
    assert_eq!(bits(&every(&model, &other)[39..]), bits(&slid[39..]));
    other[39 - reach] = (other[39 - reach] + 1) % 300;
    assert_ne!(bits(&every(&model, &other)[39..]), bits(&slid[39..]));
}

#[test]
fn heads_of_every_size_attend() {
    // Head sizes are the checkpoint's own (12 and 16) elsewhere; here a head is two elements per
    // thread of the attention's block, and one that fills it.
    for dim in [256, 128, 6] {
        let folder = with_config("llama", |config| config["head_dim"] = dim.into());
        let mut noise = Noise(40);
        let mut tensors = read_tensors(checkpoint("llama").join("model.safetensors"));
        let config = json_file(checkpoint("llama").join("config.json"));
        let size = |key: &str| usize::try_from(config[key].as_u64().unwrap()).unwrap();
        let (hidden, heads) = (size("hidden_size"), size("num_attention_heads"));
        let kv = size("num_key_value_heads");
        for (name, (shape, values)) in &mut tensors {
            let new = match name.rsplit('.').nth(1) {
                Some("q_proj") => [heads * dim, hidden],
                Some("k_proj" | "v_proj") => [kv * dim, hidden],
                Some("o_proj") => [hidden, heads * dim],
                _ => continue,
            };
            *shape = new.to_vec();
            *values = noise.take(new[0] * new[1]).iter().map(|v| v * 0.2).collect();
        }
        write_tensors(folder.path().join("model.safetensors"), "F32", &tensors);
        let tokens = Noise(41).ids(140, 300);
        let found = every(&on_device(folder.path(), DeviceDtype::Auto, BatchShape::Free), &tokens);
        let worst = distance(&found, &every(&load(folder.path()), &tokens));
        assert!(worst <= 1e-3, "{dim}: {worst}");
    }
}

#[test]
fn a_larger_head_is_refused_by_name() {
    let folder = with_config("llama", |config| config["head_dim"] = 258.into());
    let placement = crate::device::device().into();
    let error = Model::load_with(folder.path(), &placement).unwrap_err().to_string();
    assert!(error.contains("head size on a CUDA device 258") && error.contains("256"), "{error}");
}

#[test]
fn greedy_tokens_are_those_of_the_cpu() {
    let prompt = Noise(6).ids(12, 300);
    for name in CHECKPOINTS {
        let wanted = greedy(&load(checkpoint(name)), &prompt, 32);
        assert_eq!(greedy(&checkpoint_on_device(name), &prompt, 32), wanted, "{name}");
    }
}

/// The checkpoint with every tensor rounded to bf16.
fn in_bf16(name: &str) -> tempfile::TempDir {
    let folder = with_config(name, |_| {});
    let tensors: Tensors = read_tensors(checkpoint(name).join("model.safetensors"));
    write_tensors(folder.path().join("model.safetensors"), "BF16", &tensors);
    folder
}

/// Root mean square of the difference, relative to that of `b`.
fn relative(a: &[Vec<f32>], b: &[Vec<f32>]) -> f32 {
    let squares = |values: &mut dyn Iterator<Item = f32>| values.map(|v| v * v).sum::<f32>();
    let pairs = a.iter().flatten().zip(b.iter().flatten());
    (squares(&mut pairs.map(|(a, b)| a - b)) / squares(&mut b.iter().flatten().copied())).sqrt()
}

#[test]
fn bf16_stays_close() {
    // The device rounds every activation to 8 bits, as the file has rounded every weight. Each
    // of the two moves these models' logits by 1% to 2.2% of their size.
    for name in CHECKPOINTS {
        let folder = in_bf16(name);
        let tokens = Noise(7).ids(40, 300);
        let exact = every(&load(checkpoint(name)), &tokens);
        let rounded = every(&load(folder.path()), &tokens);
        let model = on_device(folder.path(), DeviceDtype::Auto, BatchShape::Free);
        assert!(model.info().kernels.ends_with("bf16"), "{}", model.info().kernels);
        let found = relative(&every(&model, &tokens), &rounded);
        println!("{name}: activations {found}, weights {}", relative(&rounded, &exact));
        assert!(found <= 0.03, "{name}: {found}");
        assert!(found >= 1e-3, "{name}: rounding must show, {found}");
        // The same from a file in f32, when asked for; and f32 from a file in bf16.
        let asked = on_device(checkpoint(name), DeviceDtype::Bf16, BatchShape::Free);
        let found = relative(&every(&asked, &tokens), &exact);
        assert!(found <= 0.05, "{name}: {found}");
        let wide = on_device(folder.path(), DeviceDtype::F32, BatchShape::Free);
        assert!(distance(&every(&wide, &tokens), &rounded) <= 1e-4, "{name}");
    }
}

#[test]
fn companions_of_any_length_and_position_change_nothing() {
    for (name, dtype) in [
        ("llama", DeviceDtype::F32),
        ("llama3-rope", DeviceDtype::F32),
        ("qwen2", DeviceDtype::F32),
        ("qwen3", DeviceDtype::F32),
        ("qwen3", DeviceDtype::Bf16),
    ] {
        let model = on_device(checkpoint(name), dtype, BatchShape::Free);
        let mut noise = Noise(8);
        let prompts: Vec<Vec<u32>> =
            [30, 1, 17, 70, 3].iter().map(|&length| noise.ids(length, 300)).collect();
        let alone: Vec<_> = prompts.iter().map(|ids| every(&model, ids)).collect();
        // Pieces of prompts beside single tokens, until all are read.
        let mut caches: Vec<_> = prompts.iter().map(|_| model.new_cache(80).unwrap()).collect();
        let mut found = vec![Vec::new(); 5];
        let pieces = [7, 1, 5, 33, 1];
        while found.iter().zip(&prompts).any(|(rows, ids)| rows.len() < ids.len()) {
            let mut batch: Vec<Sequence<'_>> = prompts
                .iter()
                .zip(&mut caches)
                .zip(pieces)
                .map(|((ids, cache), piece)| {
                    let rest = &ids[cache.len()..];
                    let ids = &rest[..piece.min(rest.len())];
                    Sequence { ids, cache, logits: LogitsAt::Every }
                })
                .collect();
            for (rows, logits) in found.iter_mut().zip(model.forward(&mut batch).unwrap()) {
                rows.extend((0..logits.rows()).map(|i| logits.row(i).unwrap().to_vec()));
            }
        }
        for (found, alone) in found.iter().zip(&alone) {
            // Products of other shapes may round otherwise on a device, but not on the mock.
            if is_mock() {
                assert_eq!(bits(found), bits(alone), "{name} {dtype}");
            } else {
                let limit = if dtype == DeviceDtype::F32 { 1e-4 } else { 0.2 };
                assert!(distance(found, alone) <= limit, "{name} {dtype}");
            }
        }
    }
}

#[test]
fn a_cache_is_cut_back_and_used_again() {
    let model = checkpoint_on_device("qwen2");
    let tokens = Noise(9).ids(60, 300);
    let fresh = every(&model, &tokens);
    let mut cache = model.new_cache(60).unwrap();
    step(&model, &mut cache, &Noise(10).ids(60, 300), LogitsAt::None);
    assert_eq!(cache.len(), 60);
    cache.clear();
    assert!(cache.is_empty());
    let first = step(&model, &mut cache, &tokens[..40], LogitsAt::Every);
    cache.truncate(33);
    assert_eq!(cache.len(), 33);
    let rest = step(&model, &mut cache, &tokens[33..], LogitsAt::Every);
    assert!(distance(&first, &fresh[..40]) <= 1e-5);
    assert!(distance(&rest, &fresh[33..]) <= 1e-5);
}

#[test]
fn logits_come_where_they_are_asked_for() {
    let model = checkpoint_on_device("llama");
    let tokens = Noise(23).ids(20, 300);
    let all = every(&model, &tokens);
    let mut caches: Vec<_> = (0..4).map(|_| model.new_cache(20).unwrap()).collect();
    let wanted = [LogitsAt::None, LogitsAt::Last, LogitsAt::Every, LogitsAt::Last];
    let pieces = [&tokens[..], &tokens[..], &tokens[..], &[]];
    let mut batch: Vec<Sequence<'_>> = caches
        .iter_mut()
        .zip(wanted)
        .zip(pieces)
        .map(|((cache, logits), ids)| Sequence { ids, cache, logits })
        .collect();
    let logits = model.forward(&mut batch).unwrap();
    assert_eq!(
        logits.iter().map(greenmark::engine::Logits::rows).collect::<Vec<_>>(),
        [0, 1, 20, 0]
    );
    for row in [logits[1].last().unwrap(), logits[2].last().unwrap()] {
        assert!(distance(&[row.to_vec()], &all[19..]) <= 1e-5);
    }
}

#[test]
fn a_quantised_file_is_dequantised_when_asked() {
    // The CPU quantises activations to 16 bits; the device here does not.
    let prompt = [504, 9180, 282];
    let cpu = load(default_model());
    let wanted = greedy(&cpu, &prompt, 3);
    let model = on_device(default_model(), DeviceDtype::F32, BatchShape::Free);
    assert_eq!(model.info().weights, "210 Q4_1, 61 F32, 1 Q8_0");
    let worst = distance(&every(&model, &prompt), &every(&cpu, &prompt));
    println!("{worst}");
    assert!(worst <= 0.05, "{worst}");
    assert_eq!(greedy(&model, &prompt, 3), wanted);
}

#[test]
#[ignore = "needs candle's kernels for quantised weights: a real device, or a mock that has them"]
fn a_quantised_file_stays_quantised() {
    // One row at a time candle multiplies by dequantised blocks, else it dequantises the matrix;
    // its faster ways need objects that only the real nvcc makes.
    candle_core::quantized::cuda::set_force_dmmv(true);
    let prompt = [504, 9180, 282];
    let model = on_device(default_model(), DeviceDtype::Auto, BatchShape::Free);
    assert!(model.info().kernels.ends_with("f32"), "{}", model.info().kernels);
    let cpu = every(&load(default_model()), &prompt);
    let found = every(&model, &prompt);
    let mut cache = model.new_cache(3).unwrap();
    let single: Vec<Vec<f32>> =
        prompt.iter().flat_map(|id| step(&model, &mut cache, &[*id], LogitsAt::Last)).collect();
    for rows in [found, single] {
        let worst = distance(&rows, &cpu);
        println!("{worst}");
        assert!(worst <= 0.05, "{worst}");
    }
}
