//! A loaded model and its forward pass.

use std::path::{Path, PathBuf};

use candle_core::Device;

use super::batch::{Logits, LogitsAt, Pass, Sequence, Span};
use super::cache::KvCache;
use super::config::{self, Architecture, Config};
use super::cpu::{CacheType, Cpu, Isa};
use super::defaults::GenerationDefaults;
use super::models::{self, Causal};
use super::weights::{Source, Weights};
use crate::error::{Error, Result};
use crate::format::{Checkpoint, Gguf};
use crate::token::check_ids;

/// Rows of one pass; longer batches are cut. Bounds the memory of activations, not the result.
const PASS_ROWS: usize = 512;

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
    /// The kernels in use, for example `CPU, AVX2`.
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
    info: ModelInfo,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("info", &self.info).finish_non_exhaustive()
    }
}

impl Model {
    /// Loads a GGUF file, or a folder with `config.json` and safetensors weights.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::File`] for files that are not there, cut, damaged or
    /// inconsistent; [`Error::Unsupported`], naming what was found, for an architecture, a
    /// tensor type, a setting or a device that this build cannot compute with.
    #[expect(clippy::needless_pass_by_value, reason = "a device is a handle, given by value")]
    pub fn load(path: impl AsRef<Path>, device: Device) -> Result<Self> {
        if !device.is_cpu() {
            return Err(Error::Unsupported {
                what: "device",
                found: format!("{:?}", device.location()),
                supported: "cpu".into(),
            });
        }
        Self::load_on_cpu(path, Isa::best())
    }

    /// Loads for the CPU with kernels of the given level. Every level gives the same bits.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn load_on_cpu(path: impl AsRef<Path>, isa: Isa) -> Result<Self> {
        let path = path.as_ref();
        let (source, config, folder) = open(path)?;
        let weights = Weights::new(&source);
        let causal = models::load(&Cpu::new(isa), &config, &weights)?;
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
            weights: weights.description(),
            cache_type: if weights.quantised() { CacheType::F16 } else { CacheType::F32 },
            kernels: format!("CPU, {isa}"),
            bos_id: config.bos_id.or(defaults.bos_id),
            end_ids,
            defaults,
            warnings,
        };
        Ok(Self { causal, info })
    }

    /// What the model is.
    #[must_use]
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// An empty cache with room for `capacity` tokens, at most the context length.
    ///
    /// # Errors
    /// [`Error::Parameter`] if `capacity` is 0.
    pub fn new_cache(&self, capacity: usize) -> Result<KvCache> {
        if capacity == 0 {
            return Err(Error::parameter("cache capacity", capacity, "at least 1 token"));
        }
        let info = &self.info;
        let capacity = capacity.min(info.context_length);
        Ok(KvCache::new(info.cache_type, info.layers, info.kv_heads, info.head_dim, capacity))
    }

    /// Runs the next tokens of several sequences through the model.
    ///
    /// Sequences may have any mix of lengths and positions: prompts, parts of prompts and single
    /// tokens. The logits of a row are the same, bit for bit, whatever else is in the batch,
    /// however a prompt is cut, and on any number of threads of the current rayon pool.
    ///
    /// Returns one [`Logits`] per sequence. Everything is checked before anything is computed:
    /// on such an error no cache has changed.
    ///
    /// # Errors
    /// [`Error::TokenOutOfRange`] for an id that the vocabulary does not have;
    /// [`Error::ContextLength`] if a sequence would outgrow its cache or the context;
    /// [`Error::Parameter`] for a cache of another model.
    pub fn forward(&self, batch: &mut [Sequence<'_>]) -> Result<Vec<Logits>> {
        let info = &self.info;
        for sequence in batch.iter() {
            let cache = &*sequence.cache;
            if cache.layers.len() != info.layers || cache.geometry != (info.kv_heads, info.head_dim)
            {
                return Err(Error::parameter(
                    "cache",
                    "made for another model",
                    "a cache of this model's new_cache",
                ));
            }
            check_ids(sequence.ids, info.vocab_size)?;
            let room = cache.capacity().saturating_sub(cache.len());
            if sequence.ids.len() > room {
                return Err(Error::ContextLength {
                    prompt: cache.len(),
                    requested: sequence.ids.len(),
                    context: cache.capacity(),
                });
            }
        }
        let mut logits: Vec<Logits> =
            batch.iter().map(|_| Logits { vocab: info.vocab_size, data: Vec::new() }).collect();
        // Inside a worker of the pool the parallel regions of a pass start without a hand-over.
        rayon::scope(|_| {
            let mut done = vec![0usize; batch.len()];
            while self.run_pass(batch, &mut done, &mut logits)? {}
            Ok(logits)
        })
    }

    /// Runs the next rows of the batch; `false` when there are none.
    fn run_pass(
        &self,
        batch: &mut [Sequence<'_>],
        done: &mut [usize],
        logits: &mut [Logits],
    ) -> Result<bool> {
        let mut pass =
            Pass { ids: Vec::new(), spans: Vec::new(), caches: Vec::new(), wanted: Vec::new() };
        // Sequence and number of rows of each span, and of each span's wanted rows.
        let mut taken = Vec::new();
        for (index, sequence) in batch.iter_mut().enumerate() {
            let rows = (sequence.ids.len() - done[index]).min(PASS_ROWS - pass.ids.len());
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
            taken.push((index, rows, pass.wanted.len() - before));
            pass.caches.push(&mut *sequence.cache);
        }
        if taken.is_empty() {
            return Ok(false);
        }
        let values = self.causal.forward(&mut pass)?;
        let mut rest = values.as_slice();
        for ((index, rows, wanted), cache) in taken.into_iter().zip(pass.caches) {
            cache.advance(rows);
            done[index] += rows;
            let (own, tail) = rest.split_at(wanted * self.info.vocab_size);
            logits[index].data.extend_from_slice(own);
            rest = tail;
        }
        Ok(true)
    }
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
