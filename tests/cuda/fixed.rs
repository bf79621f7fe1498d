//! Passes of a fixed shape: a sequence's bits do not depend on its companions, even where the
//! matrix products round by the number of rows.

use std::process::Command;

use greenmark::engine::{BatchShape, DeviceDtype, LogitsAt, Model, Sequence};

use crate::device::{is_mock, on_device};
use crate::fixtures::{Noise, argmax, bits, checkpoint, every, greedy, load, step};
use crate::forward::together;

const ROWS: usize = 8;

fn prompts() -> Vec<Vec<u32>> {
    let mut noise = Noise(50);
    [5, 1, 12, 30, 3, 8, 21].iter().map(|&length| noise.ids(length, 300)).collect()
}

/// The bits of every prompt's logits, with all prompts in one batch in the given order.
fn in_order(model: &Model, order: &[usize]) -> Vec<Vec<Vec<u32>>> {
    let prompts = prompts();
    let ordered: Vec<Vec<u32>> = order.iter().map(|&index| prompts[index].clone()).collect();
    let rows = together(model, &ordered);
    let mut found = vec![Vec::new(); prompts.len()];
    for (&index, rows) in order.iter().zip(&rows) {
        found[index] = bits(rows);
    }
    found
}

/// What must hold on every device, and on the mock in both of its ways to multiply.
fn companions_leave_no_trace(dtype: DeviceDtype) {
    for name in ["llama", "qwen2", "qwen3"] {
        let model = on_device(checkpoint(name), dtype, BatchShape::Fixed(ROWS));
        let alone: Vec<_> = prompts().iter().map(|ids| bits(&every(&model, ids))).collect();
        assert_eq!(in_order(&model, &[0, 1, 2, 3, 4, 5, 6]), alone, "{name}");
        assert_eq!(in_order(&model, &[6, 2, 0, 5, 1, 4, 3]), alone, "{name} in another order");
        // A prompt in pieces of one, whose rows stand at the head of every pass.
        let ids = &prompts()[3];
        let mut cache = model.new_cache(ids.len()).unwrap();
        let single: Vec<_> = ids
            .iter()
            .flat_map(|id| bits(&step(&model, &mut cache, &[*id], LogitsAt::Every)))
            .collect();
        assert_eq!(single, alone[3], "{name} one at a time");
    }
}

#[test]
fn companions_leave_no_trace_in_f32() {
    companions_leave_no_trace(DeviceDtype::F32);
}

#[test]
fn companions_leave_no_trace_in_bf16() {
    companions_leave_no_trace(DeviceDtype::Bf16);
}

#[test]
fn a_fixed_shape_computes_the_same_model() {
    // Filling rows must not be seen by the others, whatever they hold.
    for name in ["llama", "qwen3"] {
        let wanted = greedy(&load(checkpoint(name)), &prompts()[2], 20);
        for rows in [1, 3, 64] {
            let model = on_device(checkpoint(name), DeviceDtype::F32, BatchShape::Fixed(rows));
            assert_eq!(greedy(&model, &prompts()[2], 20), wanted, "{name} {rows}");
        }
    }
}

#[test]
fn decoding_beside_others_gives_the_same_tokens() {
    let model = on_device(checkpoint("qwen2"), DeviceDtype::F32, BatchShape::Fixed(4));
    let prompts = prompts();
    let alone: Vec<Vec<u32>> = prompts.iter().map(|ids| greedy(&model, ids, 12)).collect();
    // Seven sequences in passes of four rows, so that each is now in one pass, now in another.
    let mut caches: Vec<_> = prompts.iter().map(|_| model.new_cache(64).unwrap()).collect();
    let mut next = prompts.clone();
    let mut texts: Vec<Vec<u32>> = vec![Vec::new(); prompts.len()];
    for round in 0..12 {
        let mut batch: Vec<(usize, Sequence<'_>)> = next
            .iter()
            .zip(&mut caches)
            .map(|(ids, cache)| Sequence { ids, cache, logits: LogitsAt::Last })
            .enumerate()
            .collect();
        batch.rotate_left(round % 7);
        let order: Vec<usize> = batch.iter().map(|(index, _)| *index).collect();
        let mut batch: Vec<Sequence<'_>> =
            batch.into_iter().map(|(_, sequence)| sequence).collect();
        let logits = model.forward(&mut batch).unwrap();
        drop(batch);
        for (index, logits) in order.into_iter().zip(&logits) {
            next[index] = vec![argmax(logits.last().unwrap())];
            texts[index].extend(&next[index]);
        }
    }
    assert_eq!(texts, alone);
}

#[test]
fn shapes_that_cannot_be_are_refused() {
    for rows in [0, 513] {
        let placement = greenmark::engine::Placement {
            device: crate::device::device(),
            dtype: DeviceDtype::Auto,
            batch: BatchShape::Fixed(rows),
            sampler: greenmark::engine::SamplerPlace::Auto,
        };
        let error = Model::load_with(checkpoint("llama"), &placement).unwrap_err().to_string();
        assert!(error.contains(&format!("rows of a fixed batch: {rows}")), "{error}");
        assert!(error.contains("1 to 512"), "{error}");
    }
}

/// Runs one of the ignored tests below in a process of its own, with a mock whose products sum in
/// an order that depends on the number of rows.
fn with_split_products(test: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--include-ignored", "--nocapture", test])
        .env("MOCK_CUDA_SPLIT", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let faults = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{faults}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn products_that_depend_on_the_rows_change_nothing() {
    with_split_products("fixed::split_products");
}

#[test]
fn sessions_and_drawing_beside_others_too() {
    with_split_products("fixed::decoding_beside_others_gives_the_same_tokens");
    with_split_products("session::who_joins_or_leaves_changes_nothing");
}

#[test]
fn without_a_fixed_shape_they_do_change_bits() {
    // A real device may or may not, so this proves something on the mock only.
    if is_mock() {
        with_split_products("fixed::split_products_in_free_batches");
    }
}

#[test]
#[ignore = "run by the tests above, in an environment of its own"]
fn split_products() {
    companions_leave_no_trace(DeviceDtype::F32);
    companions_leave_no_trace(DeviceDtype::Bf16);
}

#[test]
#[ignore = "run by the tests above, in an environment of its own"]
fn split_products_in_free_batches() {
    let model = on_device(checkpoint("llama"), DeviceDtype::F32, BatchShape::Free);
    let alone: Vec<_> = prompts().iter().map(|ids| bits(&every(&model, ids))).collect();
    assert_ne!(in_order(&model, &[0, 1, 2, 3, 4, 5, 6]), alone);
}
