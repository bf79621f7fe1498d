//! Qwen3 (Yang et al. 2025): the shape of Llama with every query and key head normalised before
//! its rotation, and a head size of its own. Mixtures of experts are refused where the
//! configuration is read.

use std::sync::Arc;

use super::{Causal, linear, vector};
use crate::engine::batch::Pass;
use crate::engine::config::{Bias, Config, Output};
use crate::engine::cpu::Heads;
use crate::engine::ops::Ops;
use crate::engine::rope::Rope;
use crate::engine::scores::Scores;
use crate::engine::weights::Weights;
use crate::error::Result;

struct DecoderLayer<O: Ops> {
    input_layernorm: O::Vector,
    q_proj: O::Linear,
    k_proj: O::Linear,
    v_proj: O::Linear,
    q_norm: O::Vector,
    k_norm: O::Vector,
    o_proj: O::Linear,
    post_attention_layernorm: O::Vector,
    gate_proj: O::Linear,
    up_proj: O::Linear,
    down_proj: O::Linear,
}

pub(super) struct Qwen3<O: Ops> {
    ops: O,
    embed_tokens: Arc<O::Linear>,
    layers: Vec<DecoderLayer<O>>,
    norm: O::Vector,
    /// The embedding table where the two are tied.
    lm_head: Arc<O::Linear>,
    rope: Rope,
    heads: Heads,
    eps: f32,
}

impl<O: Ops> Qwen3<O> {
    pub(super) fn load(ops: &O, config: &Config, weights: &Weights<'_>) -> Result<Self> {
        let hidden = config.hidden;
        let table = [config.vocab, hidden];
        let embed_tokens =
            Arc::new(linear(ops, weights, "model.embed_tokens", table, Bias::Absent)?);
        let layers = (0..config.layers)
            .map(|i| DecoderLayer::load(ops, config, weights, &format!("model.layers.{i}")))
            .collect::<Result<_>>()?;
        let separate = match config.output {
            Output::Tied => false,
            Output::Separate => true,
            Output::TiedUnlessStored => weights.has("lm_head.weight"),
        };
        let lm_head = if separate {
            Arc::new(linear(ops, weights, "lm_head", table, Bias::Absent)?)
        } else {
            embed_tokens.clone()
        };
        Ok(Self {
            ops: ops.clone(),
            embed_tokens,
            layers,
            norm: vector(ops, weights, "model.norm", hidden)?,
            lm_head,
            rope: config.rope.clone(),
            heads: config.heads,
            eps: config.eps,
        })
    }
}

impl<O: Ops> DecoderLayer<O> {
    fn load(ops: &O, config: &Config, weights: &Weights<'_>, prefix: &str) -> Result<Self> {
        let Heads { query, kv, dim, .. } = config.heads;
        let Config { hidden, intermediate, qkv_bias, o_bias, mlp_bias, .. } = *config;
        let matrix = |name: &str, shape: [usize; 2], bias: Bias| {
            linear(ops, weights, &format!("{prefix}.{name}"), shape, bias)
        };
        let norm = |name: &str, len| vector(ops, weights, &format!("{prefix}.{name}"), len);
        Ok(Self {
            input_layernorm: norm("input_layernorm", hidden)?,
            q_proj: matrix("self_attn.q_proj", [query * dim, hidden], qkv_bias)?,
            k_proj: matrix("self_attn.k_proj", [kv * dim, hidden], qkv_bias)?,
            v_proj: matrix("self_attn.v_proj", [kv * dim, hidden], qkv_bias)?,
            q_norm: norm("self_attn.q_norm", dim)?,
            k_norm: norm("self_attn.k_norm", dim)?,
            o_proj: matrix("self_attn.o_proj", [hidden, query * dim], o_bias)?,
            post_attention_layernorm: norm("post_attention_layernorm", hidden)?,
            gate_proj: matrix("mlp.gate_proj", [intermediate, hidden], mlp_bias)?,
            up_proj: matrix("mlp.up_proj", [intermediate, hidden], mlp_bias)?,
            down_proj: matrix("mlp.down_proj", [hidden, intermediate], mlp_bias)?,
        })
    }
}

impl<O: Ops> Causal for Qwen3<O> {
    fn forward(&self, pass: &mut Pass<'_>) -> Result<Scores> {
        let ops = &self.ops;
        let rotation = ops.rotation(&self.rope, pass)?;
        let mut xs = ops.embed(&self.embed_tokens, &pass.ids)?;
        for (index, layer) in self.layers.iter().enumerate() {
            let normed = ops.rms_norm(&xs, &layer.input_layernorm, self.eps)?;
            let [queries, keys, values] =
                ops.linear([&layer.q_proj, &layer.k_proj, &layer.v_proj], &normed)?;
            let mut queries = ops.rms_norm(&queries, &layer.q_norm, self.eps)?;
            let mut keys = ops.rms_norm(&keys, &layer.k_norm, self.eps)?;
            ops.rotate(&mut queries, &rotation)?;
            ops.rotate(&mut keys, &rotation)?;
            let mixed = ops.attention(pass, index, self.heads, &queries, &keys, &values)?;
            let [out] = ops.linear([&layer.o_proj], &mixed)?;
            ops.add(&mut xs, &out)?;

            let normed = ops.rms_norm(&xs, &layer.post_attention_layernorm, self.eps)?;
            let [gate, up] = ops.linear([&layer.gate_proj, &layer.up_proj], &normed)?;
            let [out] = ops.linear([&layer.down_proj], &ops.silu_mul(gate, &up)?)?;
            ops.add(&mut xs, &out)?;
        }
        if pass.wanted.is_empty() {
            return Ok(Scores::none());
        }
        let last = ops.select(&xs, &pass.wanted)?;
        let normed = ops.rms_norm(&last, &self.norm, self.eps)?;
        let [logits] = ops.linear([&self.lm_head], &normed)?;
        ops.to_scores(logits)
    }
}
