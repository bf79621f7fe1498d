//! A llama of any size with weights that mean nothing, for the speed of a pass.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Map, json};

use crate::Result;
use crate::arguments::Arguments;
use crate::random::Random;

/// Dimensions of the model.
pub(crate) struct Shape {
    layers: usize,
    hidden: usize,
    intermediate: usize,
    heads: usize,
    kv_heads: usize,
    pub(crate) vocab: usize,
}

impl Shape {
    pub(crate) fn of(arguments: &Arguments) -> Self {
        Self {
            layers: arguments.number("layers", 16, 2),
            hidden: arguments.number("hidden", 2048, 64),
            intermediate: arguments.number("intermediate", 8192, 128),
            heads: arguments.number("heads", 32, 4),
            kv_heads: arguments.number("kv-heads", 8, 2),
            vocab: arguments.number("vocab", 128_256, 1000),
        }
    }

    fn head(&self) -> usize {
        self.hidden / self.heads
    }

    /// The tensors, a norm's with one dimension.
    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let Self { hidden, intermediate, .. } = *self;
        let kv = self.kv_heads * self.head();
        let mut tensors = vec![("model.embed_tokens".to_owned(), vec![self.vocab, hidden])];
        for layer in 0..self.layers {
            let parts = [
                ("input_layernorm", vec![hidden]),
                ("self_attn.q_proj", vec![hidden, hidden]),
                ("self_attn.k_proj", vec![kv, hidden]),
                ("self_attn.v_proj", vec![kv, hidden]),
                ("self_attn.o_proj", vec![hidden, hidden]),
                ("post_attention_layernorm", vec![hidden]),
                ("mlp.gate_proj", vec![intermediate, hidden]),
                ("mlp.up_proj", vec![intermediate, hidden]),
                ("mlp.down_proj", vec![hidden, intermediate]),
            ];
            tensors
                .extend(parts.map(|(part, shape)| (format!("model.layers.{layer}.{part}"), shape)));
        }
        tensors.push(("model.norm".to_owned(), vec![hidden]));
        tensors
    }

    /// Bytes of the weights in bf16, each read once in a step.
    pub(crate) fn bytes(&self) -> usize {
        self.tensors().iter().map(|(_, shape)| 2 * shape.iter().product::<usize>()).sum()
    }

    /// Writes the model in bf16 into `folder`. The embedding is the output layer too, and its
    /// weights are the larger ones: logits then spread as far as a model's, and the rest of the
    /// chain finds few candidates.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        let config = json!({
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
            "hidden_size": self.hidden, "intermediate_size": self.intermediate,
            "num_hidden_layers": self.layers, "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads, "head_dim": self.head(),
            "vocab_size": self.vocab, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
            "rope_theta": 500_000.0, "tie_word_embeddings": true, "bos_token_id": 1,
            "eos_token_id": 2,
        });
        fs::write(folder.join("config.json"), config.to_string())?;
        let tensors = self.tensors();
        let mut header = Map::new();
        let mut end = 0;
        for (name, shape) in &tensors {
            let start = end;
            end += 2 * shape.iter().product::<usize>();
            let entry = json!({ "dtype": "BF16", "shape": shape, "data_offsets": [start, end] });
            header.insert(format!("{name}.weight"), entry);
        }
        let header = serde_json::Value::Object(header).to_string();
        let mut file =
            BufWriter::with_capacity(1 << 20, File::create(folder.join("model.safetensors"))?);
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        let mut random = Random::new(1);
        for (name, shape) in &tensors {
            let count = shape.iter().product::<usize>();
            if shape.len() == 1 {
                file.write_all(&0x3f80_u16.to_le_bytes().repeat(count))?;
                continue;
            }
            // Of four bf16 numbers: signs, mantissas and the last bit of exponents are random, so
            // that magnitudes lie in [2^-7, 2^-5), or four times as high.
            let exponent: u64 = if name.ends_with("embed_tokens") { 0x3d00 } else { 0x3c00 };
            let exponents = exponent * 0x0001_0001_0001_0001;
            for _ in 0..count / 4 {
                let four = random.next() & 0x80ff_80ff_80ff_80ff | exponents;
                file.write_all(&four.to_le_bytes())?;
            }
        }
        Ok(file.flush()?)
    }
}
