//! The device's sampler by itself: what it is given in the wrong place it refuses, and never
//! follows.

use std::sync::Arc;

use greenmark::engine::{Device, DeviceHistory, DeviceSampler};
use greenmark::sample::kernel::Batch;
use greenmark::sample::{Chain, Draw, History, SamplingOptions, Scratch};
use greenmark::scheme::Step;
use greenmark::token::TokenSet;

use crate::device::device;

const VOCAB: usize = 120;
const DRAW: Draw = Draw { seed: 3, sample: 0, step: 0 };

fn chain(vocab: usize) -> Chain {
    let options = SamplingOptions { presence_penalty: Some(0.5), ..SamplingOptions::default() };
    Chain::new(options, vocab, &[], Arc::new(TokenSet::empty(vocab))).unwrap()
}

fn history(sampler: &DeviceSampler, vocab: usize) -> DeviceHistory {
    sampler.history(chain(vocab).history_shape().unwrap(), &[1, 2, 3]).unwrap()
}

/// As many rows as addresses.
fn batch(addresses: &[u64]) -> Batch {
    let mut batch = Batch::new(VOCAB);
    for &address in addresses {
        batch.push(&chain(VOCAB), &History::new(&[1, 2, 3]), &Step::KEEP, DRAW, address).unwrap();
    }
    batch
}

fn logits(device: &Device, rows: usize) -> candle_core::Tensor {
    let values: Vec<f32> = (0..rows * VOCAB).map(|i| (i * 37 % 101) as f32 / 10.0).collect();
    candle_core::Tensor::from_vec(values, (rows, VOCAB), device).unwrap()
}

#[test]
fn a_history_belongs_to_one_row_and_one_vocabulary() {
    let device = device();
    let mut sampler = DeviceSampler::new(&device, VOCAB).unwrap();
    let (own, other) = (history(&sampler, VOCAB), history(&sampler, VOCAB));
    let mut refused = |addresses: &[u64], histories: &[&DeviceHistory]| {
        let rows = sampler.prepare(&batch(addresses)).unwrap();
        let error = sampler.launch(&logits(&device, addresses.len()), &rows, histories);
        error.unwrap_err().to_string()
    };
    let twice = refused(&[own.address(), own.address()], &[&own, &own]);
    assert!(twice.contains("not there, or not its own"), "{twice}");
    let unknown = refused(&[other.address()], &[&own]);
    assert!(unknown.contains("not there"), "{unknown}");
    let foreign = history(&DeviceSampler::new(&device, 90).unwrap(), 90);
    let foreign = refused(&[foreign.address()], &[&foreign]);
    assert!(foreign.contains("not there"), "{foreign}");
    let rows = sampler.prepare(&batch(&[own.address(), other.address()])).unwrap();
    sampler.launch(&logits(&device, 2), &rows, &[&own, &other]).unwrap();
    assert_eq!(sampler.results(2).unwrap().len(), 2);
    let error = sampler.results(3).unwrap_err().to_string();
    assert!(error.contains("no launch of 3 rows"), "{error}");
}

#[test]
fn a_penalty_without_its_history_is_refused() {
    let pushed = Batch::new(VOCAB).push(&chain(VOCAB), &History::new(&[]), &Step::KEEP, DRAW, 0);
    assert!(pushed.unwrap_err().to_string().contains("history"));
}

#[test]
fn devices_with_a_stream_per_thread_and_the_cpu_are_refused() {
    device();
    for device in [Device::new_cuda(0).unwrap(), Device::Cpu] {
        DeviceSampler::new(&device, VOCAB).unwrap_err();
    }
}

/// Rows that begin 4 bytes behind a multiple of 16 are read number by number.
#[test]
fn logits_may_begin_anywhere() {
    let device = device();
    let mut sampler = DeviceSampler::new(&device, VOCAB).unwrap();
    let whole = logits(&device, 3).flatten_all().unwrap();
    let shifted = whole.narrow(0, 1, 2 * VOCAB).unwrap().reshape((2, VOCAB)).unwrap();
    let (a, b) = (history(&sampler, VOCAB), history(&sampler, VOCAB));
    let batch = batch(&[a.address(), b.address()]);
    let rows = sampler.prepare(&batch).unwrap();
    sampler.launch(&shifted, &rows, &[&a, &b]).unwrap();
    let results = sampler.results(2).unwrap();
    for (index, row) in shifted.to_vec2::<f32>().unwrap().iter().enumerate() {
        let history = History::new(&[1, 2, 3]);
        let expected = chain(VOCAB).step(row, &history, Step::KEEP, DRAW, &mut Scratch::new());
        assert_eq!(batch.outcome(index, &results[index]).unwrap(), expected.unwrap());
    }
}
