//! Draws the tokens of a step: on the host, row by row, or on the device, all rows at once.
//!
//! Both are the same chain with the same result. What the host measures beside the tokens (the
//! chances of a mark, the most likely alternatives) needs whole rows, which do not leave a device:
//! the chances are then not known, and a request for alternatives is drawn on the host.

use rayon::prelude::*;

use super::{Choice, Request, Slot};
use crate::engine::cuda::{DeviceHistory, DeviceSampler};
use crate::engine::scores::Scores;
use crate::engine::{Device, Model};
use crate::error::{Error, Result};
use crate::sample::kernel::Batch;

/// Where the rows of a session are drawn.
#[derive(Debug)]
pub(super) enum Sampler {
    /// On the host.
    Host,
    /// On the device, with a sampler that the first request makes.
    Device { device: Device, vocab: usize, sampler: Option<Box<DeviceSampler>> },
}

/// Where the tokens of one request are drawn.
#[derive(Debug)]
pub(super) enum Place {
    /// On the host.
    Host,
    /// On the device, which counts its tokens if a penalty needs it.
    Device(Option<DeviceHistory>),
}

/// What a slot got in one step: `None` while its prompt is being read.
type Chosen = Result<Option<Choice>>;

impl Sampler {
    pub(super) fn of(model: &Model) -> Self {
        if !model.draws_on_device() {
            return Self::Host;
        }
        let vocab = model.info().vocab_size;
        Self::Device { device: model.device().clone(), vocab, sampler: None }
    }

    /// Where a request is drawn.
    pub(super) fn place(&mut self, request: &Request) -> Result<Place> {
        let Self::Device { device, vocab, sampler } = self else { return Ok(Place::Host) };
        request.chain.check_kernels()?;
        if request.observe.alternatives > 0 {
            return Ok(Place::Host);
        }
        let sampler = match sampler {
            Some(sampler) => sampler,
            None => sampler.insert(Box::new(DeviceSampler::new(device, *vocab)?)),
        };
        let most = request.prompt.len().saturating_add(request.max_tokens);
        let shape = request.chain.history_shape().map(|shape| shape.for_tokens(most));
        let history = shape.map(|shape| sampler.history(shape, &request.prompt)).transpose()?;
        Ok(Place::Device(history))
    }

    /// Draws a token for each slot that has a row of `scores`.
    ///
    /// # Errors
    /// Those of the device; a fault of one row is that slot's alone.
    pub(super) fn choose(
        &mut self,
        scores: Scores,
        rows: &[Option<usize>],
        slots: &mut [Slot<'_>],
    ) -> Result<Vec<Chosen>> {
        match (self, scores) {
            (Self::Device { vocab, sampler: Some(sampler), .. }, Scores::Device(logits)) => {
                choose_on_device(sampler, *vocab, &logits, rows, slots)
            }
            (Self::Host | Self::Device { .. }, scores) => {
                let values = scores.into_host()?;
                let count = rows.iter().flatten().count().max(1);
                let width = values.len() / count;
                let draw = |(slot, row): (&mut Slot<'_>, &Option<usize>)| {
                    row.map(|row| slot.draw(&values[row * width..][..width])).transpose()
                };
                Ok(slots.par_iter_mut().zip(rows).map(draw).collect())
            }
        }
    }
}

fn choose_on_device(
    sampler: &mut DeviceSampler,
    vocab: usize,
    logits: &candle_core::Tensor,
    rows: &[Option<usize>],
    slots: &mut [Slot<'_>],
) -> Result<Vec<Chosen>> {
    let failed = |what: &'static str| move |error| Error::backend(what, error);
    let mut chosen: Vec<Chosen> = Vec::with_capacity(slots.len());
    let mut batch = Batch::new(vocab);
    // Of each row of the batch, its row of the logits and its slot.
    let mut picked = Vec::new();
    let mut owners = Vec::new();
    for (index, (slot, row)) in slots.iter_mut().zip(rows).enumerate() {
        let Some(row) = *row else {
            chosen.push(Ok(None));
            continue;
        };
        let Place::Device(history) = &slot.place else {
            let own = logits.narrow(0, row, 1).and_then(|own| own.flatten_all()?.to_vec1());
            let own: Vec<f32> = own.map_err(failed("copying a row of logits from the device"))?;
            chosen.push(slot.draw(&own).map(Some));
            continue;
        };
        let address = history.as_ref().map_or(0, DeviceHistory::address);
        let (step, draw) = slot.next_draw();
        let Slot { request, history, .. } = &*slot;
        match batch.push(&request.chain, history, &step, draw, address) {
            Ok(()) => {
                picked.push(row);
                owners.push(index);
                // Filled in below.
                chosen.push(Ok(None));
            }
            Err(error) => chosen.push(Err(error)),
        }
    }
    if owners.is_empty() {
        return Ok(chosen);
    }
    let whole = picked.len() == logits.dims().first().copied().unwrap_or(0)
        && picked.iter().enumerate().all(|(place, &row)| place == row);
    let logits = if whole { logits.clone() } else { gather(logits, &picked)? };
    let histories: Vec<&DeviceHistory> = owners
        .iter()
        .filter_map(|&index| match &slots[index].place {
            Place::Device(history) => history.as_ref(),
            Place::Host => None,
        })
        .collect();
    let prepared = sampler.prepare(&batch)?;
    sampler.launch(&logits, &prepared, &histories)?;
    let results = sampler.results(owners.len())?;
    for (place, (&index, result)) in owners.iter().zip(&results).enumerate() {
        let choice = |outcome| Choice { outcome, chances: None, alternatives: Vec::new() };
        chosen[index] = batch.outcome(place, result).map(|outcome| Some(choice(outcome)));
    }
    Ok(chosen)
}

/// The rows that the device draws, where others are drawn on the host.
fn gather(logits: &candle_core::Tensor, rows: &[usize]) -> Result<candle_core::Tensor> {
    let ids: Vec<u32> = rows.iter().map(|&row| u32::try_from(row).unwrap_or(u32::MAX)).collect();
    let count = ids.len();
    candle_core::Tensor::from_vec(ids, count, logits.device())
        .and_then(|ids| logits.index_select(&ids, 0))
        .map_err(|error| Error::backend("gathering logits on the device", error))
}
