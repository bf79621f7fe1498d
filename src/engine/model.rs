//! A loaded model and its forward pass.

use std::path::{Path, PathBuf};

use candle_core::Device;

use super::batch::{Logits, LogitsAt, Pass, Sequence, Span};
use super::cache::{CacheType, Geometry, KvCache, Store};
use super::config::{self, Architecture, Config};
use super::cpu::{Cpu, Isa};
use super::cuda;
use super::defaults::GenerationDefaults;
use super::models::{self, Causal};
use super::placement::{BatchShape, Placement, SamplerPlace};
use super::scores::Scores;
use super::weights::{Source, Weights};
use crate::error::{Error, Result};
use crate::format::{Checkpoint, Gguf};
use crate::token::check_ids;

/// Rows of one pass; longer batches are cut. Bounds the memory of activations, not the result.
pub(super) const PASS_ROWS: usize = 512;

/// What a model is, for callers and for people.
#[derive(Clone, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The file or folder.
    pub path: PathBuf,
    /// The family.
    pub architecture: Architecture,
    /// Number of layers.
    pub layers: usize,
    /// Width of a token's activations.
    pub hidden: usize,
    /// Width of the feed-forward network.
    pub intermediate: usize,
    /// Number of query heads.
    pub heads: usize,
    /// Number of key and value heads.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Number of ids, and of logits in a row.
    pub vocab_size: usize,
    /// Largest number of tokens in a sequence.
    pub context_length: usize,
    /// Number of latest tokens that a token sees; `None`: all.
    pub sliding_window: Option<usize>,
    /// How the weights are stored and computed with, for example `210 Q4_1, 61 F32, 1 Q8_0`.
    pub weights: String,
    /// How caches store keys and values.
    pub cache_type: CacheType,
    /// Where and how it computes, for example `CPU, AVX2` or `CUDA, NVIDIA H200, bf16`.
    pub kernels: String,
    /// Beginning-of-sequence id, if the model has one.
    pub bos_id: Option<u32>,
    /// Every id that ends a sequence, ascending.
    pub end_ids: Vec<u32>,
    /// What `generation_config.json` beside the weights says.
    pub defaults: GenerationDefaults,
    /// Things a careful user should know, such as settings that this build has never heard of.
    pub warnings: Vec<String>,
}

/// A causal language model, immutable and shared between threads.
pub struct Model {
    causal: Box<dyn Causal>,
    device: Device,
    caches: Caches,
    pass_rows: usize,
    sampler: SamplerPlace,
    batch: BatchShape,
    info: ModelInfo,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("info", &self.info).finish_non_exhaustive()
    }
}

impl Model {
    /// Loads a GGUF file, or a folder with `config.json` and safetensors weights, for `device`:
    /// the CPU or a CUDA device, which computes in the numbers that the file suggests.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::File`] for files that are not there, cut, damaged or
    /// inconsistent; [`Error::Unsupported`], naming what was found, for an architecture, a
    /// tensor type, a setting or a device that this build cannot compute with.
    pub fn load(path: impl AsRef<Path>, device: Device) -> Result<Self> {
        Self::load_with(path, &Placement::from(device))
    }

    /// Loads as [`Model::load`] does, with the numbers and the shape of batches that `placement`
    /// asks for.
    ///
    /// # Errors
    /// As [`Model::load`]; [`Error::Parameter`] for a fixed batch that is empty or too large;
    /// [`Error::Unavailable`] if the device has no memory for the weights.
    pub fn load_with(path: impl AsRef<Path>, placement: &Placement) -> Result<Self> {
        placement.check()?;
        let model = Self::load_by(path.as_ref(), |config, weights| {
            if placement.device.is_cpu() {
                load_for_cpu(Isa::best(), config, weights)
            } else {
                cuda::load(placement, config, weights)
            }
        })?;
        Ok(Self { sampler: placement.sampler, batch: placement.batch, ..model })
    }

    /// Loads for the CPU with kernels of the given level. Every level gives the same bits.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn load_on_cpu(path: impl AsRef<Path>, isa: Isa) -> Result<Self> {
        Self::load_by(path.as_ref(), |config, weights| load_for_cpu(isa, config, weights))
    }

    fn load_by(
        path: &Path,
        load: impl FnOnce(&Config, &Weights<'_>) -> Result<Loaded>,
    ) -> Result<Self> {
        let (source, config, folder) = open(path)?;
        let weights = Weights::new(&source);
        let Loaded { causal, device, caches, cache_type, kernels, pass_rows } =
            load(&config, &weights)?;
        weights.all_taken(&["lm_head.weight", "rope_freqs.weight"])?;
        let defaults = GenerationDefaults::read(&folder)?;
        let mut end_ids = config.end_ids.clone();
        end_ids.extend(defaults.end_ids.iter().flatten());
        end_ids.sort_unstable();
        end_ids.dedup();
        let mut warnings = config.warnings.clone();
        let outside = end_ids.iter().chain(&config.bos_id).find(|id| **id as usize >= config.vocab);
        if let Some(id) = outside {
            warnings.push(format!(
                "{}: id {id} is declared special but the vocabulary has {} ids",
                path.display(),
                config.vocab
            ));
        }
        end_ids.retain(|id| (*id as usize) < config.vocab);
        let info = ModelInfo {
            path: path.to_path_buf(),
            architecture: config.architecture,
            layers: config.layers,
            hidden: config.hidden,
            intermediate: config.intermediate,
            heads: config.heads.query,
            kv_heads: config.heads.kv,
            head_dim: config.heads.dim,
            vocab_size: config.vocab,
            context_length: config.context,
            sliding_window: config.heads.window,
            weights: weights.description(device.is_cpu()),
            cache_type,
            kernels,
            bos_id: config.bos_id.or(defaults.bos_id),
            end_ids,
            defaults,
            warnings,
        };
        Ok(Self {
            causal,
            device,
            caches,
            pass_rows,
            sampler: SamplerPlace::Auto,
            batch: BatchShape::Free,
            info,
        })
    }

    /// What the model is.
    #[must_use]
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// An empty cache with room for `capacity` tokens, at most the context length.
    ///
    /// # Errors
    /// [`Error::Parameter`] if `capacity` is 0; [`Error::Unavailable`] if the device has no memory
    /// for it.
    pub fn new_cache(&self, capacity: usize) -> Result<KvCache> {
        if capacity == 0 {
            return Err(Error::parameter("cache capacity", capacity, "at least 1 token"));
        }
        let capacity = capacity.min(self.info.context_length);
        match &self.caches {
            Caches::Cpu => Ok(KvCache::on_cpu(self.geometry(), capacity)),
            Caches::Device(caches) => caches.reserve(self.geometry(), capacity),
        }
    }

    /// The device that computes, with the stream on which it does; the CPU for a model there.
    ///
    /// All work on its memory has to be on that one stream, where nothing else orders it: tensors
    /// made on this device are, other streams made from its context are not.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Where a session was asked to draw tokens from this model's logits.
    #[must_use]
    pub fn sampler(&self) -> SamplerPlace {
        self.sampler
    }

    /// Whether a sequence's logits depend on nothing but the sequence: always on the CPU, and on a
    /// device with [`super::BatchShape::Fixed`].
    #[must_use]
    pub fn has_fixed_shape(&self) -> bool {
        self.device.is_cpu() || self.batch != BatchShape::Free
    }

    /// Whether sessions draw tokens on the device that computes the logits.
    #[must_use]
    pub fn draws_on_device(&self) -> bool {
        !self.device.is_cpu() && self.sampler == SamplerPlace::Auto
    }

    fn geometry(&self) -> Geometry {
        Geometry {
            layers: self.info.layers,
            heads: self.info.kv_heads,
            dim: self.info.head_dim,
            kind: self.info.cache_type,
        }
    }

    /// Runs the next tokens of several sequences through the model.
    ///
    /// Sequences may have any mix of lengths and positions: prompts, parts of prompts and single
    /// tokens. On the CPU the logits of a row are the same, bit for bit, whatever else is in the
    /// batch, however a prompt is cut, and on any number of threads of the current rayon pool; on
    /// a device with [`super::BatchShape::Fixed`].
    ///
    /// Returns one [`Logits`] per sequence. Everything is checked before anything is computed:
    /// on such an error no cache has changed.
    ///
    /// # Errors
    /// [`Error::TokenOutOfRange`] for an id that the vocabulary does not have;
    /// [`Error::ContextLength`] if a sequence would outgrow its cache or the context;
    /// [`Error::Parameter`] for a cache of another model.
    pub fn forward(&self, batch: &mut [Sequence<'_>]) -> Result<Vec<Logits>> {
        let vocab = self.info.vocab_size;
        let mut logits: Vec<Logits> =
            batch.iter().map(|_| Logits { vocab, data: Vec::new() }).collect();
        self.run(batch, |scores, wanted| {
            let values = scores.into_host()?;
            let mut rest = values.as_slice();
            for part in wanted {
                let (own, tail) = rest.split_at(part.rows * vocab);
                logits[part.sequence].data.extend_from_slice(own);
                rest = tail;
            }
            Ok(())
        })?;
        Ok(logits)
    }

    /// Does what [`Model::forward`] does and leaves the logits where they were computed: in the
    /// rows of one matrix, of which the second result names each sequence's own, if it wanted one.
    ///
    /// # Errors
    /// As [`Model::forward`]; [`Error::Parameter`] for a sequence that wants more than one row.
    pub(super) fn forward_scores(
        &self,
        batch: &mut [Sequence<'_>],
    ) -> Result<(Scores, Vec<Option<usize>>)> {
        if batch.iter().any(|s| s.logits == LogitsAt::Every && s.ids.len() > 1) {
            return Err(Error::parameter("logits", "every position", "the last position, or none"));
        }
        let mut rows = vec![None; batch.len()];
        let mut parts = Vec::new();
        let mut count = 0;
        self.run(batch, |scores, wanted| {
            for part in wanted.iter().filter(|part| part.rows > 0) {
                rows[part.sequence] = Some(count);
                count += 1;
            }
            parts.push(scores);
            Ok(())
        })?;
        Ok((Scores::join(parts)?, rows))
    }

    /// Checks the batch, then runs it in as many passes as it needs. `take` gets the logits of
    /// each pass, and whose they are.
    fn run(
        &self,
        batch: &mut [Sequence<'_>],
        mut take: impl FnMut(Scores, &[Wanted]) -> Result<()> + Send,
    ) -> Result<()> {
        for sequence in batch.iter() {
            let cache = &*sequence.cache;
            let here = match (&cache.store, &self.caches) {
                (Store::Cpu(_), Caches::Cpu) => true,
                (Store::Device(cache), Caches::Device(caches)) => caches.made(cache),
                _ => false,
            };
            if !here || cache.geometry() != self.geometry() {
                return Err(KvCache::foreign());
            }
            check_ids(sequence.ids, self.info.vocab_size)?;
            let room = cache.capacity().saturating_sub(cache.len());
            if sequence.ids.len() > room {
                return Err(Error::ContextLength {
                    prompt: cache.len(),
                    requested: sequence.ids.len(),
                    context: cache.capacity(),
                });
            }
        }
        // Inside a worker of the pool the parallel regions of a pass start without a hand-over.
        rayon::scope(|_| {
            let mut done = vec![0usize; batch.len()];
            while let Some((scores, wanted)) = self.run_pass(batch, &mut done)? {
                take(scores, &wanted)?;
            }
            Ok(())
        })
    }

    /// Runs the next rows of the batch: their logits, and how many rows of them each sequence
    /// has. `None` when there are no rows left.
    fn run_pass(
        &self,
        batch: &mut [Sequence<'_>],
        done: &mut [usize],
    ) -> Result<Option<(Scores, Vec<Wanted>)>> {
        let mut pass = Pass::default();
        // Sequence and number of rows of each span.
        let mut taken = Vec::new();
        let mut wanted = Vec::new();
        for (index, sequence) in batch.iter_mut().enumerate() {
            let rows = (sequence.ids.len() - done[index]).min(self.pass_rows - pass.ids.len());
            if rows == 0 {
                continue;
            }
            let first_row = pass.ids.len();
            let end = done[index] + rows;
            pass.ids.extend_from_slice(&sequence.ids[done[index]..end]);
            pass.spans.push(Span { first_row, rows, position: sequence.cache.len() });
            let before = pass.wanted.len();
            match sequence.logits {
                LogitsAt::None => {}
                LogitsAt::Last if end < sequence.ids.len() => {}
                LogitsAt::Last => pass.wanted.push(first_row + rows - 1),
                LogitsAt::Every => pass.wanted.extend(first_row..first_row + rows),
            }
            taken.push((index, rows));
            wanted.push(Wanted { sequence: index, rows: pass.wanted.len() - before });
            pass.caches.push(&mut *sequence.cache);
        }
        if taken.is_empty() {
            return Ok(None);
        }
        let scores = self.causal.forward(&mut pass)?;
        for ((index, rows), cache) in taken.into_iter().zip(pass.caches) {
            cache.advance(rows);
            done[index] += rows;
        }
        Ok(Some((scores, wanted)))
    }
}

/// The rows of a pass's logits that belong to one sequence; they follow each other.
struct Wanted {
    sequence: usize,
    rows: usize,
}

/// A model loaded for one place.
pub(super) struct Loaded {
    pub(super) causal: Box<dyn Causal>,
    pub(super) device: Device,
    pub(super) caches: Caches,
    pub(super) cache_type: CacheType,
    /// For people.
    pub(super) kernels: String,
    /// Rows of one pass.
    pub(super) pass_rows: usize,
}

/// Where a model's caches are made.
pub(super) enum Caches {
    Cpu,
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only a device has them"))]
    Device(cuda::Caches),
}

fn load_for_cpu(isa: Isa, config: &Config, weights: &Weights<'_>) -> Result<Loaded> {
    let causal = models::load(&Cpu::new(isa), config, weights)?;
    Ok(Loaded {
        causal,
        device: Device::Cpu,
        caches: Caches::Cpu,
        cache_type: if weights.quantised() { CacheType::F16 } else { CacheType::F32 },
        kernels: format!("CPU, {isa}"),
        pass_rows: PASS_ROWS,
    })
}

/// Opens a model file or folder: its tensors, its configuration, and where its
/// `generation_config.json` would be.
fn open(path: &Path) -> Result<(Source, Config, PathBuf)> {
    if path.is_dir() {
        let config = config::from_json(path)?;
        let checkpoint = Checkpoint::open(path)?;
        return Ok((
            Source::Checkpoint { folder: path.to_path_buf(), checkpoint },
            config,
            path.to_path_buf(),
        ));
    }
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    if path.extension().is_some_and(|extension| extension == "safetensors") {
        let config = config::from_json(&folder)?;
        let checkpoint = Checkpoint::open(path)?;
        return Ok((Source::Checkpoint { folder: path.to_path_buf(), checkpoint }, config, folder));
    }
    let gguf = Gguf::open(path)?;
    let config = config::from_gguf(&gguf)?;
    Ok((Source::Gguf(gguf), config, folder))
}
