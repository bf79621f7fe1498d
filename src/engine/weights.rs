//! Tensors by their checkpoint names, out of a GGUF file or a safetensors checkpoint.
//!
//! Every tensor's shape is checked against the configuration before its data is touched.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use candle_core::quantized::GgmlDType;

use super::linear::{BlockKind, Storage};
use crate::error::{Error, Result};
use crate::format::{Checkpoint, Dtype, GgmlType, Gguf};

/// A tensor of a model file, its shape already checked.
#[derive(Clone, Debug)]
pub(super) struct Tensor<'a> {
    /// The name in the file.
    pub(super) name: String,
    /// Slowest-running dimension first.
    pub(super) shape: Vec<usize>,
    pub(super) storage: Storage,
    /// Little-endian values, as many as shape and storage say.
    pub(super) data: &'a [u8],
    path: PathBuf,
}

impl Tensor<'_> {
    /// An error about this tensor.
    pub(super) fn error(&self, problem: &str) -> Error {
        Error::file(
            &self.path,
            None,
            format!("tensor {} of shape {:?}: {problem}", self.name, self.shape),
            "the file does not hold the model it says it holds",
        )
    }

    /// The values of an unquantised tensor.
    pub(super) fn to_f32(&self) -> Result<Vec<f32>> {
        Ok(match self.storage {
            Storage::F32 => self
                .data
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect(),
            Storage::F16 => self
                .data
                .chunks_exact(2)
                .map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f32())
                .collect(),
            Storage::Bf16 => self
                .data
                .chunks_exact(2)
                .map(|b| half::bf16::from_le_bytes([b[0], b[1]]).to_f32())
                .collect(),
            Storage::Blocks(_) | Storage::Candle(_) => {
                return Err(self.error("quantised where numbers are expected"));
            }
        })
    }
}

/// An open model file.
#[derive(Debug)]
pub(super) enum Source {
    Gguf(Gguf),
    Checkpoint { folder: PathBuf, checkpoint: Checkpoint },
}

/// The tensors of a model file, counted as they are taken.
#[derive(Debug)]
pub(super) struct Weights<'a> {
    source: &'a Source,
    taken: RefCell<BTreeSet<String>>,
    kinds: RefCell<Vec<(Storage, usize)>>,
    quantised: Cell<bool>,
}

impl<'a> Weights<'a> {
    pub(super) fn new(source: &'a Source) -> Self {
        Self {
            source,
            taken: RefCell::default(),
            kinds: RefCell::default(),
            quantised: Cell::new(false),
        }
    }

    /// The file or folder.
    pub(super) fn path(&self) -> &'a Path {
        match self.source {
            Source::Gguf(gguf) => gguf.path(),
            Source::Checkpoint { folder, .. } => folder,
        }
    }

    /// The name in this kind of file of the tensor that transformers calls `name`.
    fn own_name(&self, name: &str) -> String {
        match self.source {
            Source::Gguf(_) => gguf_name(name),
            Source::Checkpoint { .. } => name.to_owned(),
        }
    }

    /// Whether the tensor that transformers calls `name` is there.
    pub(super) fn has(&self, name: &str) -> bool {
        let own = self.own_name(name);
        match self.source {
            Source::Gguf(gguf) => gguf.tensor(&own).is_some(),
            Source::Checkpoint { checkpoint, .. } => checkpoint.tensor(&own).is_some(),
        }
    }

    /// The tensor that transformers calls `name`, which must have the given shape.
    pub(super) fn tensor(&self, name: &str, shape: &[usize]) -> Result<Tensor<'a>> {
        let own = self.own_name(name);
        let missing = || {
            Error::file(
                self.path(),
                None,
                format!("tensor {own} is missing"),
                "the file is incomplete or holds another model: fetch it again",
            )
        };
        let (found, storage, data) = match self.source {
            Source::Gguf(gguf) => {
                let info = gguf.tensor(&own).ok_or_else(missing)?;
                info.supported()?;
                let found: Vec<usize> = info
                    .dims
                    .iter()
                    .rev()
                    // A size beyond the address space cannot be the expected one.
                    .map(|&d| usize::try_from(d).unwrap_or(usize::MAX))
                    .collect();
                let storage = storage_of(info.ty).ok_or_else(|| Error::Unsupported {
                    what: "tensor type",
                    found: format!("{} of {own}", info.ty),
                    supported: GgmlType::supported_names(),
                })?;
                (found, storage, gguf.data(info)?)
            }
            Source::Checkpoint { checkpoint, .. } => {
                let view = checkpoint.tensor(&own).ok_or_else(missing)?;
                (view.shape.to_vec(), storage_of_dtype(view.dtype), view.data)
            }
        };
        if found != shape {
            return Err(Error::file(
                self.path(),
                None,
                format!("tensor {own} has shape {found:?}, the configuration asks for {shape:?}"),
                "the file does not hold the model it says it holds",
            ));
        }
        let inputs = *shape.last().unwrap_or(&0);
        let columns = shape[..shape.len().saturating_sub(1)].iter().product();
        if storage.bytes(columns, inputs) != Some(data.len()) {
            return Err(Error::file(
                self.path(),
                None,
                format!("tensor {own} has {} bytes, which its shape {shape:?} denies", data.len()),
                "the file is damaged: fetch it again",
            ));
        }
        if self.taken.borrow_mut().insert(own.clone()) {
            let mut kinds = self.kinds.borrow_mut();
            // Few kinds, and a map would need an order that they do not have.
            match kinds.iter_mut().find(|(kind, _)| *kind == storage) {
                Some((_, count)) => *count += 1,
                None => kinds.push((storage, 1)),
            }
        }
        if matches!(storage, Storage::Blocks(_) | Storage::Candle(_)) {
            self.quantised.set(true);
        }
        Ok(Tensor {
            name: own,
            shape: shape.to_vec(),
            storage,
            data,
            path: self.path().to_path_buf(),
        })
    }

    /// The same, `None` if it is not there.
    pub(super) fn optional(&self, name: &str, shape: &[usize]) -> Result<Option<Tensor<'a>>> {
        if self.has(name) { self.tensor(name, shape).map(Some) } else { Ok(None) }
    }

    /// Refuses a file with tensors that the model did not take: it would be another model.
    ///
    /// `idle` are names that change nothing.
    pub(super) fn all_taken(&self, idle: &[&str]) -> Result<()> {
        let taken = self.taken.borrow();
        let names: Vec<&str> = match self.source {
            Source::Gguf(gguf) => gguf.tensors().map(|t| t.name.as_str()).collect(),
            Source::Checkpoint { checkpoint, .. } => checkpoint.names().collect(),
        };
        let idle: Vec<String> = idle.iter().map(|name| self.own_name(name)).collect();
        let extra: Vec<&str> = names
            .into_iter()
            .filter(|name| {
                // Frequencies that old checkpoints store beside the configuration's.
                !taken.contains(*name)
                    && !name.ends_with("rotary_emb.inv_freq")
                    && !idle.iter().any(|idle| idle == name)
            })
            .collect();
        if extra.is_empty() {
            return Ok(());
        }
        Err(Error::file(
            self.path(),
            None,
            format!(
                "{} tensors have no place in this architecture, the first is {}",
                extra.len(),
                extra[0]
            ),
            "the file holds a variant of the architecture that is not supported",
        ))
    }

    /// Whether any weight taken so far is quantised.
    pub(super) fn quantised(&self) -> bool {
        self.quantised.get()
    }

    /// How the matrices of the file are stored: what a device chooses its numbers by. Those the
    /// model does not take are among them.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only a device asks"))]
    pub(super) fn matrices(&self) -> Vec<Storage> {
        match self.source {
            Source::Gguf(gguf) => gguf
                .tensors()
                .filter(|tensor| tensor.dims.len() > 1)
                .filter_map(|tensor| storage_of(tensor.ty))
                .collect(),
            Source::Checkpoint { checkpoint, .. } => checkpoint
                .names()
                .filter_map(|name| checkpoint.tensor(name))
                .filter(|view| view.shape.len() > 1)
                .map(|view| storage_of_dtype(view.dtype))
                .collect(),
        }
    }

    /// How the weights are stored and, on the CPU, computed with, for people.
    pub(super) fn description(&self, on_cpu: bool) -> String {
        let kinds = self.kinds.borrow();
        let mut kinds: Vec<(String, usize)> =
            kinds.iter().map(|&(kind, count)| (storage_name(kind, on_cpu), count)).collect();
        kinds.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
    }
}

fn storage_name(storage: Storage, on_cpu: bool) -> String {
    match storage {
        Storage::F32 => "F32".into(),
        Storage::F16 if on_cpu => "F16 (converted to F32)".into(),
        Storage::F16 => "F16".into(),
        Storage::Bf16 if on_cpu => "BF16 (kept, multiplied in F32)".into(),
        Storage::Bf16 => "BF16".into(),
        Storage::Blocks(kind) => format!("{kind:?}"),
        Storage::Candle(dtype) => format!("{dtype:?}"),
    }
}

fn storage_of_dtype(dtype: Dtype) -> Storage {
    match dtype {
        Dtype::F32 => Storage::F32,
        Dtype::F16 => Storage::F16,
        Dtype::BF16 => Storage::Bf16,
    }
}

fn storage_of(ty: GgmlType) -> Option<Storage> {
    Some(match ty {
        GgmlType::F32 => Storage::F32,
        GgmlType::F16 => Storage::F16,
        GgmlType::BF16 => Storage::Bf16,
        GgmlType::Q4_0 => Storage::Blocks(BlockKind::Q4_0),
        GgmlType::Q4_1 => Storage::Blocks(BlockKind::Q4_1),
        GgmlType::Q8_0 => Storage::Blocks(BlockKind::Q8_0),
        GgmlType::Q5_0 => Storage::Candle(GgmlDType::Q5_0),
        GgmlType::Q5_1 => Storage::Candle(GgmlDType::Q5_1),
        GgmlType::Q2_K => Storage::Candle(GgmlDType::Q2K),
        GgmlType::Q3_K => Storage::Candle(GgmlDType::Q3K),
        GgmlType::Q4_K => Storage::Candle(GgmlDType::Q4K),
        GgmlType::Q5_K => Storage::Candle(GgmlDType::Q5K),
        GgmlType::Q6_K => Storage::Candle(GgmlDType::Q6K),
        _ => return None,
    })
}

/// The GGUF name of a tensor that transformers calls `name`.
fn gguf_name(name: &str) -> String {
    const LAYER: [(&str, &str); 11] = [
        ("self_attn.q_proj.", "attn_q."),
        ("self_attn.k_proj.", "attn_k."),
        ("self_attn.v_proj.", "attn_v."),
        ("self_attn.o_proj.", "attn_output."),
        ("self_attn.q_norm.", "attn_q_norm."),
        ("self_attn.k_norm.", "attn_k_norm."),
        ("input_layernorm.", "attn_norm."),
        ("post_attention_layernorm.", "ffn_norm."),
        ("mlp.gate_proj.", "ffn_gate."),
        ("mlp.up_proj.", "ffn_up."),
        ("mlp.down_proj.", "ffn_down."),
    ];
    match name {
        "model.embed_tokens.weight" => return "token_embd.weight".into(),
        "model.norm.weight" => return "output_norm.weight".into(),
        "lm_head.weight" => return "output.weight".into(),
        _ => {}
    }
    if let Some((layer, rest)) =
        name.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.'))
        && let Some((from, to)) = LAYER.iter().find(|(from, _)| rest.starts_with(from))
    {
        return format!("blk.{layer}.{to}{}", &rest[from.len()..]);
    }
    name.to_owned()
}
