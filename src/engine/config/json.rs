//! `config.json` of a transformers checkpoint.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Architecture, Bias, Config, Output};
use crate::engine::cpu::Heads;
use crate::engine::defaults::ids;
use crate::engine::rope::{Pairing, Rope, Scaling};
use crate::error::{Error, Result};

/// Largest size of a configuration file in bytes; real ones have a few thousand.
const MAX_BYTES: u64 = 16 << 20;

/// A JSON object of a file, read field by field with errors that name file and field.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Object {
    path: PathBuf,
    /// Prefix of the fields in messages, for example `rope_scaling.`.
    prefix: String,
    fields: Map<String, Value>,
}

impl Object {
    /// Reads a file that holds one object.
    pub(in crate::engine) fn read(path: &Path) -> Result<Self> {
        let size = std::fs::metadata(path).map_err(|e| Error::io("read", path, e))?.len();
        if size > MAX_BYTES {
            return Err(Error::file(
                path,
                None,
                format!("{size} bytes are no configuration"),
                format!("at most {MAX_BYTES} bytes are read"),
            ));
        }
        let bytes = std::fs::read(path).map_err(|e| Error::io("read", path, e))?;
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let fields = serde_json::from_slice(text).map_err(|e| {
            Error::file(
                path,
                None,
                format!("not a JSON object: {e}"),
                "mend or fetch the file again",
            )
        })?;
        Ok(Self { path: path.to_path_buf(), prefix: String::new(), fields })
    }

    /// The value of a field; `null` counts as absent.
    fn value(&self, key: &str) -> Option<&Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&self, key: &str, value: &Value, expected: &str) -> Error {
        Error::file(
            &self.path,
            None,
            format!("{}{key} is {value}", self.prefix),
            format!("it must be {expected}"),
        )
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        self.value(key)
            .map(|value| read(value).ok_or_else(|| self.wrong(key, value, expected)))
            .transpose()
    }

    pub(in crate::engine) fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "true or false", Value::as_bool)
    }

    pub(in crate::engine) fn u64(&self, key: &str) -> Result<Option<u64>> {
        self.typed(key, "an integer from 0 on", Value::as_u64)
    }

    fn usize(&self, key: &str) -> Result<Option<usize>> {
        self.typed(key, "an integer from 0 on", |v| {
            v.as_u64().and_then(|v| usize::try_from(v).ok())
        })
    }

    pub(in crate::engine) fn f64(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a number", Value::as_f64)
    }

    fn str(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "a string", Value::as_str)
    }

    fn object(&self, key: &str) -> Result<Option<Self>> {
        let fields = self.typed(key, "an object", Value::as_object)?;
        Ok(fields.map(|fields| Self {
            path: self.path.clone(),
            prefix: format!("{}{key}.", self.prefix),
            fields: fields.clone(),
        }))
    }

    /// One id or a list of ids.
    pub(in crate::engine) fn ids(&self, key: &str) -> Result<Option<Vec<u32>>> {
        self.typed(key, "an id or a list of ids", ids)
    }

    fn required<T>(&self, key: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| {
            Error::file(
                &self.path,
                None,
                format!("{}{key} is missing", self.prefix),
                "give the complete configuration of the checkpoint",
            )
        })
    }

    fn need_usize(&self, key: &str) -> Result<usize> {
        self.required(key, self.usize(key)?)
    }

    fn need_f64(&self, key: &str) -> Result<f64> {
        self.required(key, self.f64(key)?)
    }
}

/// Fields that are read below.
const APPLIED: [&str; 24] = [
    "architectures",
    "attention_bias",
    "bos_token_id",
    "eos_token_id",
    "head_dim",
    "hidden_act",
    "hidden_size",
    "intermediate_size",
    "layer_types",
    "max_position_embeddings",
    "max_window_layers",
    "mlp_bias",
    "model_type",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "rms_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "sliding_window",
    "tie_word_embeddings",
    "use_sliding_window",
    "vocab_size",
];

/// Fields that change nothing in a forward pass.
const IDLE: [&str; 22] = [
    "_attn_implementation",
    "_from_model_config",
    "_name_or_path",
    "attention_dropout",
    "auto_map",
    "dtype",
    "id2label",
    "initializer_range",
    "is_llama_config",
    "label2id",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "pretraining_tp",
    "return_dict",
    "task_specific_params",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    "use_cache",
];

/// Fields of related architectures that change the arithmetic, with the value that does not.
/// `None`: any value does.
fn neutral() -> [(&'static str, Option<Value>); 24] {
    [
        ("alibi", Some(false.into())),
        ("attention_multiplier", None),
        ("attn_logit_softcapping", None),
        ("clip_qkv", None),
        ("embedding_multiplier", Some(1.into())),
        ("final_logit_softcapping", None),
        ("logit_scale", Some(1.into())),
        ("logits_scaling", Some(1.into())),
        ("moe_intermediate_size", None),
        ("no_rope_layers", None),
        ("norm_type", None),
        ("num_experts", Some(0.into())),
        ("num_experts_per_tok", Some(0.into())),
        ("num_local_experts", Some(0.into())),
        ("partial_rotary_factor", Some(1.into())),
        ("qk_layernorm", Some(false.into())),
        ("quantization_config", None),
        ("query_pre_attn_scalar", None),
        ("residual_multiplier", Some(1.into())),
        ("rope_interleaved", Some(false.into())),
        ("scale_embedding", Some(false.into())),
        ("tie_encoder_decoder", Some(false.into())),
        ("use_mrope", Some(false.into())),
        ("use_qk_norm", Some(false.into())),
    ]
}

fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
        _ => a == b,
    }
}

/// Reads `config.json` of `folder`.
pub(in crate::engine) fn from_json(folder: &Path) -> Result<Config> {
    let path = folder.join("config.json");
    let o = Object::read(&path)?;
    let architecture = Architecture::of(o.required("model_type", o.str("model_type")?)?)?;
    if let Some(Value::Array(classes)) = o.value("architectures")
        && !classes.is_empty()
        && !classes.iter().any(|c| c.as_str() == Some(architecture.class()))
    {
        return Err(Error::Unsupported {
            what: "architecture",
            found: Value::Array(classes.clone()).to_string(),
            supported: Architecture::ALL.map(Architecture::class).join(", "),
        });
    }
    let mut unknown = Vec::new();
    let neutral = neutral();
    for (key, value) in o.fields.iter().filter(|(_, value)| !value.is_null()) {
        if let Some((_, harmless)) = neutral.iter().find(|(name, _)| name == key) {
            if !harmless.as_ref().is_some_and(|harmless| same(harmless, value)) {
                return Err(Error::Unsupported {
                    what: "setting",
                    found: format!("{key} = {value} in {}", path.display()),
                    supported: match harmless {
                        Some(harmless) => format!("{key} = {harmless}, or none"),
                        None => format!("models without {key}"),
                    },
                });
            }
        } else if !APPLIED.contains(&key.as_str()) && !IDLE.contains(&key.as_str()) {
            unknown.push(key.as_str());
        }
    }
    let warnings = if unknown.is_empty() {
        Vec::new()
    } else {
        vec![format!(
            "{} has fields that are not known here: {}",
            path.display(),
            unknown.join(", ")
        )]
    };
    if let Some(act) = o.str("hidden_act")?
        && act != "silu"
        && act != "swish"
    {
        return Err(Error::Unsupported {
            what: "hidden_act",
            found: act.to_owned(),
            supported: "silu".into(),
        });
    }

    let hidden = o.need_usize("hidden_size")?;
    let query = o.need_usize("num_attention_heads")?;
    let dim = match o.usize("head_dim")? {
        Some(dim) => dim,
        None if query > 0 && hidden.is_multiple_of(query) => hidden / query,
        None => {
            return Err(Error::file(
                &path,
                None,
                format!("hidden_size {hidden} is no multiple of {query} attention heads"),
                "add head_dim to the configuration",
            ));
        }
    };
    let heads = Heads {
        query,
        kv: o.usize("num_key_value_heads")?.unwrap_or(query),
        dim,
        window: window(&o, architecture)?,
    };
    let attention_bias = o.bool("attention_bias")?.unwrap_or(false);
    let (qkv_bias, o_bias) = match architecture {
        Architecture::Llama | Architecture::Qwen3 => (attention_bias, attention_bias),
        Architecture::Mistral | Architecture::Qwen2 => {
            let own = architecture == Architecture::Qwen2;
            if o.value("attention_bias").is_some() && attention_bias != own {
                return Err(Error::Unsupported {
                    what: "setting",
                    found: format!("attention_bias = {attention_bias} in {}", path.display()),
                    supported: format!("attention_bias = {own} for {}", architecture.name()),
                });
            }
            (own, false)
        }
    };
    let mlp_bias = o.bool("mlp_bias")?.unwrap_or(false);
    if mlp_bias && architecture != Architecture::Llama {
        return Err(Error::Unsupported {
            what: "setting",
            found: format!("mlp_bias = true in {}", path.display()),
            supported: format!("mlp_bias = false for {}", architecture.name()),
        });
    }
    let (theta, scaling) = rope(&o)?;
    #[expect(clippy::cast_possible_truncation, reason = "activations are f32")]
    let eps = o.need_f64("rms_norm_eps")? as f32;
    let config = Config {
        architecture,
        hidden,
        intermediate: o.need_usize("intermediate_size")?,
        layers: o.need_usize("num_hidden_layers")?,
        heads,
        vocab: o.need_usize("vocab_size")?,
        context: o.need_usize("max_position_embeddings")?,
        eps,
        rope: Rope::new(Pairing::Halves, dim, theta, &scaling)?,
        output: if o.bool("tie_word_embeddings")?.unwrap_or(false) {
            Output::Tied
        } else {
            Output::Separate
        },
        qkv_bias: qkv_bias.into(),
        o_bias: o_bias.into(),
        mlp_bias: Bias::from(mlp_bias),
        bos_id: o.ids("bos_token_id")?.and_then(|ids| ids.first().copied()),
        end_ids: o.ids("eos_token_id")?.unwrap_or_default(),
        warnings,
    };
    config.check(&path)?;
    Ok(config)
}

fn sliding(layer_type: &&str) -> bool {
    *layer_type == "sliding_attention"
}

/// The sliding window, if one is in force.
fn window(o: &Object, architecture: Architecture) -> Result<Option<usize>> {
    let refuse = |found: String| {
        Err(Error::Unsupported {
            what: "setting",
            found: format!("{found} in {}", o.path.display()),
            supported: "full attention, or one sliding_window for all layers of a mistral".into(),
        })
    };
    let window = o.usize("sliding_window")?;
    let used = o.bool("use_sliding_window")?;
    let types = o.typed("layer_types", "a list of strings", |v| {
        v.as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>()
    })?;
    if let Some(types) = &types
        && let Some(other) = types.iter().find(|t| !sliding(t) && **t != "full_attention")
    {
        return refuse(format!("layer_types with {other}"));
    }
    match architecture {
        Architecture::Mistral => {
            // Without a list, every layer slides if there is a window.
            let all = types.as_ref().is_none_or(|t| t.iter().all(sliding));
            let none = types.as_ref().is_some_and(|t| !t.iter().any(sliding));
            match (window, all, none) {
                (None, ..) | (_, _, true) => Ok(None),
                (Some(window), true, _) => Ok(Some(window)),
                (Some(_), false, false) => refuse("layer_types with two kinds".into()),
            }
        }
        Architecture::Qwen2 | Architecture::Qwen3 => {
            if used == Some(true) || types.is_some_and(|t| t.iter().any(sliding)) {
                return refuse("use_sliding_window = true".into());
            }
            Ok(None)
        }
        Architecture::Llama => match window {
            Some(window) => refuse(format!("sliding_window = {window}")),
            None => Ok(None),
        },
    }
}

/// Base and scaling of the rotary embedding, from the new form (`rope_parameters`) or the old
/// one (`rope_theta` and `rope_scaling`).
fn rope(o: &Object) -> Result<(f64, Scaling)> {
    let (theta, parameters) = match (o.object("rope_parameters")?, o.object("rope_scaling")?) {
        (Some(new), Some(old)) if new.fields != old.fields => {
            return Err(Error::Unsupported {
                what: "setting",
                found: format!("rope_parameters and another rope_scaling in {}", o.path.display()),
                supported: "one of the two".into(),
            });
        }
        (Some(new), _) => {
            let theta = match (new.f64("rope_theta")?, o.f64("rope_theta")?) {
                (Some(theta), _) | (None, Some(theta)) => theta,
                (None, None) => 10_000.0,
            };
            (theta, Some(new))
        }
        (None, old) => (o.f64("rope_theta")?.unwrap_or(10_000.0), old),
    };
    let Some(p) = parameters else { return Ok((theta, Scaling::None)) };
    let kind = match (p.str("rope_type")?, p.str("type")?) {
        (Some(kind), _) | (None, Some(kind)) => kind,
        (None, None) => "default",
    };
    let (scaling, known): (_, &[&str]) = match kind {
        "default" => (Scaling::None, &[]),
        "linear" => (Scaling::Linear { factor: p.need_f64("factor")? }, &["factor"]),
        "llama3" => (
            Scaling::Llama3 {
                factor: p.need_f64("factor")?,
                low_freq_factor: p.need_f64("low_freq_factor")?,
                high_freq_factor: p.need_f64("high_freq_factor")?,
                original: p.need_f64("original_max_position_embeddings")?,
            },
            &["factor", "low_freq_factor", "high_freq_factor"],
        ),
        other => {
            return Err(Error::Unsupported {
                what: "rope scaling",
                found: format!("{other} in {}", o.path.display()),
                supported: "default, linear, llama3".into(),
            });
        }
    };
    for (key, value) in p.fields.iter().filter(|(_, value)| !value.is_null()) {
        let common = ["rope_theta", "rope_type", "type", "original_max_position_embeddings"];
        let whole = key == "partial_rotary_factor" && same(value, &1.into());
        if !common.contains(&key.as_str()) && !known.contains(&key.as_str()) && !whole {
            return Err(Error::Unsupported {
                what: "setting",
                found: format!("{}{key} = {value} in {}", p.prefix, o.path.display()),
                supported: format!("{kind} scaling without {key}"),
            });
        }
    }
    Ok((theta, scaling))
}
