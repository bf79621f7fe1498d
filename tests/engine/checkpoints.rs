//! The small checkpoints of `data/models` against transformers, in every stored form.

use greenmark::engine::LogitsAt;
use serde_json::Value;

use crate::fixtures::{
    CHECKPOINTS, GgufFile, Noise, Tensors, argmax, bits, checkpoint, every, floats, greedy, ids,
    json_file, load, logsumexp, read_tensors, step, with_config, write_tensors,
};

/// Largest difference from `expected.json` in logits and log-sum-exps of the given checkpoint.
fn worst(rows: &[Vec<f32>], expected: &Value) -> f64 {
    let mut worst: f64 = 0.0;
    for (position, logits) in expected["logits"].as_object().unwrap() {
        let row = &rows[position.parse::<usize>().unwrap()];
        for (found, wanted) in row.iter().zip(floats(logits)) {
            worst = worst.max((f64::from(*found) - wanted).abs());
        }
    }
    for (row, wanted) in rows.iter().zip(floats(&expected["logsumexp"])) {
        worst = worst.max((logsumexp(row) - wanted).abs());
    }
    worst
}

#[test]
fn logits_argmax_and_greedy_equal_transformers() {
    for name in CHECKPOINTS {
        let model = load(checkpoint(name));
        let expected = json_file(checkpoint(name).join("expected.json"));
        let tokens = ids(&expected["ids"]);
        let rows = every(&model, &tokens);
        assert_eq!(rows.len(), 40, "{name}");
        let worst = worst(&rows, &expected);
        assert!(worst <= 1e-3, "{name}: {worst}");
        let found: Vec<u32> = rows.iter().map(|row| argmax(row)).collect();
        assert_eq!(found, ids(&expected["argmax"]), "{name}");
        let wanted = ids(&expected["greedy_from_first_12"]);
        // The list begins with the prompt.
        assert_eq!(wanted[..12], tokens[..12], "{name}");
        assert_eq!(greedy(&model, &tokens[..12], 24), wanted[12..], "{name}");
    }
}

#[test]
fn model_info_says_what_the_configuration_says() {
    let info = load(checkpoint("qwen3")).info().clone();
    assert_eq!(info.architecture.name(), "qwen3");
    assert_eq!((info.layers, info.hidden, info.intermediate), (2, 48, 96));
    assert_eq!((info.heads, info.kv_heads, info.head_dim), (4, 2, 16));
    assert_eq!((info.vocab_size, info.context_length), (300, 256));
    assert_eq!((info.bos_id, info.end_ids.as_slice()), (Some(1), [2].as_slice()));
    assert_eq!(info.warnings, Vec::<String>::new());
    assert!(info.weights.ends_with("F32"), "{}", info.weights);
}

#[test]
fn half_precision_and_shards_stay_close() {
    // Tolerances are those of rounding every weight once to 11 and 8 bits.
    for (name, dtype, tolerance) in
        [("llama", "F16", 0.02), ("qwen2", "BF16", 0.15), ("qwen3", "BF16", 0.15)]
    {
        let folder = tempfile::tempdir().unwrap();
        let tensors = read_tensors(checkpoint(name).join("model.safetensors"));
        let mut map = serde_json::Map::new();
        for (index, tensor) in tensors.keys().enumerate() {
            let shard = format!("model-0000{}-of-00002.safetensors", 1 + index % 2);
            map.insert(tensor.clone(), shard.into());
        }
        for shard in 1..=2 {
            let own = tensors.iter().enumerate().filter(|(i, _)| 1 + i % 2 == shard);
            let path = folder.path().join(format!("model-0000{shard}-of-00002.safetensors"));
            write_tensors(path, dtype, own.map(|(_, tensor)| tensor));
        }
        let index = serde_json::json!({ "metadata": {}, "weight_map": map });
        let file = folder.path().join("model.safetensors.index.json");
        std::fs::write(file, index.to_string()).unwrap();
        std::fs::copy(checkpoint(name).join("config.json"), folder.path().join("config.json"))
            .unwrap();

        let model = load(folder.path());
        assert!(model.info().weights.contains(dtype), "{}", model.info().weights);
        let expected = json_file(checkpoint(name).join("expected.json"));
        let worst = worst(&every(&model, &ids(&expected["ids"])), &expected);
        assert!(worst <= tolerance, "{name} {dtype}: {worst}");
        assert!(worst > 1e-5, "{name} {dtype}: rounding must show, {worst}");
    }
}

#[test]
fn old_and_new_forms_of_rope_settings_are_one() {
    let tokens = Noise(1).ids(40, 300);
    let new = every(&load(checkpoint("llama3-rope")), &tokens);
    let folder = with_config("llama3-rope", |config| {
        let fields = config.as_object_mut().unwrap();
        let mut rope = fields.remove("rope_parameters").unwrap();
        let theta = rope.as_object_mut().unwrap().remove("rope_theta").unwrap();
        fields.insert("rope_theta".into(), theta);
        fields.insert("rope_scaling".into(), rope);
    });
    assert_eq!(bits(&every(&load(folder.path()), &tokens)), bits(&new));
    // Without the scaling the model is another one.
    let folder = with_config("llama3-rope", |config| {
        config["rope_parameters"] =
            serde_json::json!({ "rope_type": "default", "rope_theta": 500_000.0 });
    });
    assert_ne!(bits(&every(&load(folder.path()), &tokens)), bits(&new));
}

#[test]
fn linear_rope_scaling_is_the_same_in_all_three_forms() {
    let folder = with_config("llama", |config| {
        config["rope_parameters"] =
            serde_json::json!({ "rope_type": "linear", "factor": 2.0, "rope_theta": 10_000.0 });
    });
    let tokens = Noise(2).ids(40, 300);
    let by_config = every(&load(folder.path()), &tokens);
    let tensors = read_tensors(checkpoint("llama").join("model.safetensors"));
    let by_key = folder.path().join("key.gguf");
    gguf_of("llama", &tensors)
        .string("llama.rope.scaling.type", "linear")
        .f32("llama.rope.scaling.factor", 2.0)
        .write(&by_key);
    let by_tensor = folder.path().join("tensor.gguf");
    gguf_of("llama", &tensors).tensor_f32("rope_freqs.weight", &[6], &[2.0; 6]).write(&by_tensor);
    let plain = every(&load(checkpoint("llama")), &tokens);
    // Position 0 never turns.
    assert_eq!(bits(&plain[..1]), bits(&by_config[..1]));
    for path in [by_key, by_tensor] {
        let rows = every(&load(&path), &tokens);
        let far = |a: &[Vec<f32>], b: &[Vec<f32>]| {
            a.concat().iter().zip(b.concat()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
        };
        assert!(far(&rows, &by_config) < 1e-4, "{}", path.display());
        assert!(far(&rows, &plain) > 1e-2, "{}", path.display());
    }
}

#[test]
fn sliding_window_hides_what_is_older() {
    let window = 5;
    let folder = with_config("mistral", |config| config["sliding_window"] = window.into());
    let model = load(folder.path());
    assert_eq!(model.info().sliding_window, Some(window));
    let full = load(checkpoint("mistral"));
    let tokens = Noise(3).ids(40, 300);
    let (slid, all) = (every(&model, &tokens), every(&full, &tokens));
    // Equal as long as everything is in the window, then different.
    assert_eq!(bits(&slid[..window]), bits(&all[..window]));
    assert_ne!(bits(&slid[window..=window]), bits(&all[window..=window]));
    // Two layers reach 2 * (window - 1) tokens back and no further.
    let reach = 2 * (window - 1);
    let mut other = tokens.clone();
    other[39 - reach - 1] = (other[39 - reach - 1] + 1) % 300;
    assert_eq!(bits(&every(&model, &other)[39..]), bits(&slid[39..]));
    other[39 - reach] = (other[39 - reach] + 1) % 300;
    assert_ne!(bits(&every(&model, &other)[39..]), bits(&slid[39..]));
    // The same one token at a time.
    let mut cache = model.new_cache(40).unwrap();
    for (position, &id) in tokens.iter().enumerate() {
        let row = step(&model, &mut cache, &[id], LogitsAt::Last);
        assert_eq!(bits(&row), bits(&slid[position..=position]), "{position}");
    }
}

#[test]
fn biases_of_llama_are_applied() {
    let folder = with_config("llama", |config| {
        config["attention_bias"] = true.into();
        config["mlp_bias"] = true.into();
    });
    let mut tensors = read_tensors(checkpoint("llama").join("model.safetensors"));
    let weights: Vec<(String, usize)> = tensors
        .iter()
        .filter(|(name, _)| name.contains("_proj."))
        .map(|(name, (shape, _))| (name.replace(".weight", ".bias"), shape[0]))
        .collect();
    let file = folder.path().join("model.safetensors");
    let error = greenmark::engine::Model::load(folder.path(), greenmark::engine::Device::Cpu);
    assert!(error.unwrap_err().to_string().contains("q_proj.bias is missing"));
    for (name, len) in &weights {
        tensors.insert(name.clone(), (vec![*len], vec![0.0; *len]));
    }
    write_tensors(&file, "F32", &tensors);
    let tokens = Noise(4).ids(10, 300);
    let plain = every(&load(checkpoint("llama")), &tokens);
    assert_eq!(every(&load(folder.path()), &tokens), plain);
    for (name, _) in &weights {
        let mut changed = tensors.clone();
        changed.get_mut(name).unwrap().1[0] = 1.0;
        write_tensors(&file, "F32", &changed);
        assert_ne!(every(&load(folder.path()), &tokens), plain, "{name}");
    }
}

/// The GGUF name of a transformers tensor.
fn gguf_name(name: &str) -> String {
    [
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("model.layers.", "blk."),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ]
    .iter()
    .fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

/// Rows of queries and keys as the llama converter permutes them: halves become neighbours.
fn neighbours(shape: &[usize], values: &[f32], dim: usize) -> Vec<f32> {
    let inputs = shape[1];
    let row = |i: usize| &values[i * inputs..][..inputs];
    let half = dim / 2;
    (0..shape[0])
        .flat_map(|to| {
            let (head, within) = (to / dim, to % dim);
            row(head * dim + within / 2 + half * (within % 2)).to_vec()
        })
        .collect()
}

pub(crate) fn gguf_of(name: &str, tensors: &Tensors) -> GgufFile {
    let config = json_file(checkpoint(name).join("config.json"));
    let arch = if name.starts_with("qwen") { name } else { "llama" };
    let size = |key: &str| usize::try_from(config[key].as_u64().unwrap()).unwrap();
    let dim = config["head_dim"]
        .as_u64()
        .map_or(size("hidden_size") / size("num_attention_heads"), |d| usize::try_from(d).unwrap());
    #[expect(clippy::cast_possible_truncation, reason = "GGUF stores f32")]
    let theta = config["rope_parameters"]["rope_theta"].as_f64().unwrap() as f32;
    let mut file = GgufFile::default()
        .string("general.architecture", arch)
        .u32(&format!("{arch}.block_count"), size("num_hidden_layers"))
        .u32(&format!("{arch}.embedding_length"), size("hidden_size"))
        .u32(&format!("{arch}.feed_forward_length"), size("intermediate_size"))
        .u32(&format!("{arch}.context_length"), size("max_position_embeddings"))
        .u32(&format!("{arch}.attention.head_count"), size("num_attention_heads"))
        .u32(&format!("{arch}.attention.head_count_kv"), size("num_key_value_heads"))
        .u32(&format!("{arch}.attention.key_length"), dim)
        .u32(&format!("{arch}.attention.value_length"), dim)
        .f32(&format!("{arch}.attention.layer_norm_rms_epsilon"), 1e-5)
        .f32(&format!("{arch}.rope.freq_base"), theta)
        .u32("tokenizer.ggml.eos_token_id", 2)
        .u32("tokenizer.ggml.eot_token_id", 7);
    for (tensor, (shape, values)) in tensors {
        let permuted = arch == "llama" && (tensor.contains("q_proj") || tensor.contains("k_proj"));
        let values = if permuted { neighbours(shape, values, dim) } else { values.clone() };
        file = file.tensor_f32(&gguf_name(tensor), shape, &values);
    }
    if name == "llama3-rope" {
        // What the converter writes for the Llama 3.1 rule with factor 8, 1, 4 and 64 tokens.
        let divisors: Vec<f32> = (0..dim / 2)
            .map(|i| {
                #[expect(clippy::cast_precision_loss, reason = "a handful")]
                let frequency = f64::from(theta).powf(-2.0 * i as f64 / dim as f64);
                let wavelength = std::f64::consts::TAU / frequency;
                let divisor = if wavelength > 64.0 {
                    8.0
                } else if wavelength < 16.0 {
                    1.0
                } else {
                    let smooth = (64.0 / wavelength - 1.0) / 3.0;
                    1.0 / ((1.0 - smooth) / 8.0 + smooth)
                };
                #[expect(clippy::cast_possible_truncation, reason = "GGUF stores f32")]
                let divisor = divisor as f32;
                divisor
            })
            .collect();
        file = file.tensor_f32("rope_freqs.weight", &[dim / 2], &divisors);
    }
    file
}

#[test]
fn gguf_files_of_the_checkpoints_give_the_same_logits() {
    for name in CHECKPOINTS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        let tensors = read_tensors(checkpoint(name).join("model.safetensors"));
        gguf_of(name, &tensors).write(&path);
        let model = load(&path);
        assert_eq!(model.info().end_ids, [2, 7], "{name}");
        let expected = json_file(checkpoint(name).join("expected.json"));
        let worst = worst(&every(&model, &ids(&expected["ids"])), &expected);
        assert!(worst <= 1e-3, "{name}: {worst}");
    }
}

#[test]
fn generation_config_is_read_and_merged() {
    let folder = with_config("llama", |_| {});
    let write = |text: &str| {
        std::fs::write(folder.path().join("generation_config.json"), text).unwrap();
    };
    // S20: an integer, a list and nothing are all accepted.
    write(r#"{"eos_token_id": [2, 0], "temperature": 0.6, "top_p": 0.9, "do_sample": false}"#);
    let model = load(folder.path());
    let defaults = &model.info().defaults;
    assert_eq!(model.info().end_ids, [0, 2]);
    assert_eq!(
        (defaults.temperature, defaults.top_p, defaults.top_k),
        (Some(0.6), Some(0.9), None)
    );
    assert_eq!(defaults.do_sample, Some(false));
    assert_eq!(defaults.file.as_deref(), Some(&*folder.path().join("generation_config.json")));
    write(r#"{"eos_token_id": 5}"#);
    assert_eq!(load(folder.path()).info().end_ids, [2, 5]);
    write("{}");
    assert_eq!(load(folder.path()).info().end_ids, [2]);
    write(r#"{"temperature": "hot"}"#);
    let error = greenmark::engine::Model::load(folder.path(), greenmark::engine::Device::Cpu)
        .unwrap_err()
        .to_string();
    assert!(error.contains("temperature is \"hot\"; it must be a number"), "{error}");
}
