//! The metadata of a GGUF file.

use super::{Architecture, Bias, Config, Output};
use crate::engine::cpu::Heads;
use crate::engine::rope::{Pairing, Rope, Scaling};
use crate::error::{Error, Result};
use crate::format::{GgmlType, Gguf, Value};

/// Settings that are read below.
const APPLIED: [&str; 15] = [
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.factor",
    "rope.scaling.type",
];

/// Settings that change nothing in a forward pass.
const IDLE: [&str; 5] = [
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "tensor_data_layout",
    "vocab_size",
    "attention.causal",
];

/// Settings that change the arithmetic, with the value that does not.
const NEUTRAL: [(&str, f64); 14] = [
    ("attention.clamp_kqv", 0.0),
    ("attention.max_alibi_bias", 0.0),
    ("attention.scale", 0.0),
    ("attn_logit_softcapping", 0.0),
    ("embedding_scale", 1.0),
    ("expert_count", 0.0),
    ("expert_used_count", 0.0),
    ("final_logit_softcapping", 0.0),
    ("logit_scale", 1.0),
    ("residual_scale", 1.0),
    ("rope.scaling.attn_factor", 1.0),
    ("rope.scaling.yarn_log_multiplier", 0.0),
    ("use_parallel_residual", 0.0),
    ("pooling_type", 0.0),
];

/// Reads the metadata of `gguf`. The architecture is checked first.
pub(in crate::engine) fn from_gguf(gguf: &Gguf) -> Result<Config> {
    let architecture = match gguf.architecture()? {
        // Mistral models carry this name too, and no model has the name of its own.
        "mistral" => return Err(unsupported("mistral")),
        name => Architecture::of(name).map_err(|_| unsupported(name))?,
    };
    for tensor in gguf.tensors() {
        tensor.supported()?;
    }
    let prefix = architecture.name();
    let key = |name: &str| format!("{prefix}.{name}");
    let size = |name: &str| -> Result<Option<usize>> {
        Ok(gguf.u32(&key(name))?.map(|value| value as usize))
    };
    let need =
        |name: &str| -> Result<usize> { size(name)?.ok_or_else(|| gguf.missing(&key(name))) };
    let warnings = check_settings(gguf, prefix)?;

    let hidden = need("embedding_length")?;
    let query = need("attention.head_count")?;
    let dim = match size("attention.key_length")? {
        Some(dim) => dim,
        None if query > 0 => hidden / query,
        None => 0,
    };
    for (name, what) in [
        ("attention.value_length", "values as long as keys"),
        ("rope.dimension_count", "rotation of whole heads"),
    ] {
        if let Some(other) = size(name)?
            && other != dim
        {
            return Err(Error::Unsupported {
                what: "setting",
                found: format!("{} = {other} with heads of {dim}", key(name)),
                supported: what.into(),
            });
        }
    }
    // No value or 0 means full attention.
    let window = size("attention.sliding_window")?.filter(|&window| window > 0);
    let heads = Heads { query, kv: size("attention.head_count_kv")?.unwrap_or(query), dim, window };
    let pairing = match architecture {
        // The converter permutes queries and keys of this family.
        Architecture::Llama | Architecture::Mistral => Pairing::Neighbours,
        Architecture::Qwen2 | Architecture::Qwen3 => Pairing::Halves,
    };
    let theta = f64::from(gguf.f32(&key("rope.freq_base"))?.unwrap_or(10_000.0));
    let rope = Rope::new(pairing, dim, theta, &scaling(gguf, prefix)?)?;
    let vocab = gguf
        .tensor("token_embd.weight")
        .and_then(|tensor| tensor.dims.get(1))
        .and_then(|&dim| usize::try_from(dim).ok())
        .ok_or_else(|| {
            Error::file(
                gguf.path(),
                None,
                "tensor token_embd.weight is missing",
                "the file is incomplete or holds another model: fetch it again",
            )
        })?;
    let mut end_ids = Vec::new();
    for name in ["eos_token_id", "eot_token_id", "eom_token_id"] {
        if let Some(id) = gguf.u32(&format!("tokenizer.ggml.{name}"))?
            && !end_ids.contains(&id)
        {
            end_ids.push(id);
        }
    }
    let config = Config {
        architecture,
        hidden,
        intermediate: need("feed_forward_length")?,
        layers: need("block_count")?,
        heads,
        vocab,
        context: need("context_length")?,
        eps: gguf
            .f32(&key("attention.layer_norm_rms_epsilon"))?
            .ok_or_else(|| gguf.missing(&key("attention.layer_norm_rms_epsilon")))?,
        rope,
        output: Output::TiedUnlessStored,
        qkv_bias: match architecture {
            Architecture::Qwen2 => Bias::Present,
            _ => Bias::IfStored,
        },
        o_bias: Bias::IfStored,
        mlp_bias: Bias::IfStored,
        bos_id: gguf.u32("tokenizer.ggml.bos_token_id")?,
        end_ids,
        warnings,
    };
    config.check(gguf.path())?;
    Ok(config)
}

fn unsupported(name: &str) -> Error {
    Error::Unsupported {
        what: "architecture",
        found: name.to_owned(),
        supported: "llama (also Mistral), qwen2, qwen3".into(),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(b) => Some(f64::from(u8::from(*b))),
        Value::Float(f) => Some(*f),
        other => other.as_u64().map(|v| v as f64),
    }
}

/// Refuses settings of other architectures that change the arithmetic; returns a warning about
/// settings that are not known here.
fn check_settings(gguf: &Gguf, prefix: &str) -> Result<Vec<String>> {
    let mut unknown = Vec::new();
    let mut keys: Vec<&str> = gguf.keys().collect();
    keys.sort_unstable();
    for key in keys {
        let Some(name) = key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.')) else {
            continue;
        };
        let Some(value) = gguf.metadata(key) else { continue };
        if let Some((_, neutral)) = NEUTRAL.iter().find(|(known, _)| *known == name) {
            if !number(value).is_some_and(|value| value.total_cmp(neutral).is_eq()) {
                return Err(Error::Unsupported {
                    what: "setting",
                    found: format!("{key} = {value:?} in {}", gguf.path().display()),
                    supported: format!("{key} = {neutral}, or none"),
                });
            }
        } else if !APPLIED.contains(&name) && !IDLE.contains(&name) {
            unknown.push(key);
        }
    }
    Ok(if unknown.is_empty() {
        Vec::new()
    } else {
        vec![format!(
            "{} has settings that are not known here: {}",
            gguf.path().display(),
            unknown.join(", ")
        )]
    })
}

/// How the rotary frequencies are scaled.
fn scaling(gguf: &Gguf, prefix: &str) -> Result<Scaling> {
    let key = |name: &str| format!("{prefix}.{name}");
    let factor = match gguf.f32(&key("rope.scaling.factor"))? {
        Some(factor) => Some(factor),
        None => gguf.f32(&key("rope.scale_linear"))?,
    };
    let by_type = match gguf.str(&key("rope.scaling.type"))? {
        None | Some("none") => None,
        Some("linear") => {
            Some(f64::from(factor.ok_or_else(|| gguf.missing(&key("rope.scaling.factor")))?))
        }
        Some(other) => {
            return Err(Error::Unsupported {
                what: "rope scaling",
                found: format!("{other} in {}", gguf.path().display()),
                supported: "none, linear, the tensor rope_freqs.weight".into(),
            });
        }
    };
    let Some(info) = gguf.tensor("rope_freqs.weight") else {
        return Ok(by_type.map_or(Scaling::None, |factor| Scaling::Linear { factor }));
    };
    if by_type.is_some() || info.ty != GgmlType::F32 {
        return Err(Error::Unsupported {
            what: "rope scaling",
            found: format!("rope_freqs.weight of type {} beside a scaling", info.ty),
            supported: "rope_freqs.weight of type F32 alone".into(),
        });
    }
    let values = gguf
        .data(info)?
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    Ok(Scaling::Divisors(values))
}
