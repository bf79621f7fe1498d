//! What is refused, by what name, and that it is refused before anything is done.
//! Cases G02, G03, G08, G09, G12.

use std::path::Path;

use greenmark::engine::{Device, LogitsAt, Model, Sequence};
use greenmark::{Error, ErrorKind};
use serde_json::{Value, json};

use crate::checkpoints::gguf_of;
use crate::fixtures::{GgufFile, checkpoint, load, read_tensors, with_config, write_tensors};

/// The message of the refusal to load `path`, which must be the caller's to mend.
fn refusal(path: impl AsRef<Path>) -> String {
    let error = Model::load(path, Device::Cpu).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    error.to_string()
}

fn refused_config(name: &str, field: &str, value: Value) -> String {
    refusal(with_config(name, |config| config[field] = value).path())
}

#[test]
fn g02_other_architectures_are_named_before_tensors_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gemma.gguf");
    // A tensor of an unknown type would be the next thing to fail.
    GgufFile::default()
        .string("general.architecture", "gemma")
        .tensor("token_embd.weight", &[2, 32], 255, vec![0; 64])
        .write(&path);
    let message = refusal(&path);
    assert!(message.starts_with("unsupported architecture gemma; supported: llama"), "{message}");
    let message = refused_config("llama", "model_type", "gemma2".into());
    assert!(message.starts_with("unsupported architecture gemma2; supported: llama"), "{message}");
    let message =
        refused_config("llama", "architectures", json!(["LlamaForSequenceClassification"]));
    assert!(message.contains("LlamaForSequenceClassification"), "{message}");
}

#[test]
fn g03_tensor_types_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    for (kind, name) in [(20, "IQ4_NL"), (39, "MXFP4"), (255, "unknown 255")] {
        GgufFile::default()
            .string("general.architecture", "llama")
            .tensor("blk.0.attn_k.weight", &[2, 32], kind, vec![0; 64])
            .write(&path);
        let message = refusal(&path);
        assert!(message.contains("blk.0.attn_k.weight"), "{message}");
        assert!(message.contains(name), "{message}");
        assert!(message.contains("Q4_1"), "{message}");
    }
}

#[test]
fn g08_damaged_weights_say_what_they_are() {
    let folder = with_config("llama", |_| {});
    let file = folder.path().join("model.safetensors");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")
        .unwrap();
    assert!(refusal(folder.path()).contains("Git LFS pointer"));
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let message = refusal(folder.path());
    assert!(message.contains(&format!("expected {} bytes", whole.len())), "{message}");
    assert!(message.contains(&format!("have {} bytes", whole.len() / 2)), "{message}");
    std::fs::write(&file, []).unwrap();
    assert!(refusal(folder.path()).contains("empty"));
    let mut header = whole.clone();
    header[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    std::fs::write(&file, header).unwrap();
    refusal(folder.path());
    std::fs::remove_file(&file).unwrap();
    assert!(refusal(folder.path()).contains("model.safetensors"));

    let path = folder.path().join("model.gguf");
    let tensors = read_tensors(checkpoint("llama").join("model.safetensors"));
    gguf_of("llama", &tensors).write(&path);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 100_000]).unwrap();
    let message = refusal(&path);
    assert!(message.contains("truncated: expected"), "{message}");
    std::fs::write(&path, []).unwrap();
    refusal(&path);
    refusal(folder.path().join("nowhere.gguf"));
}

#[test]
fn g09_crafted_counts_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let mut bytes = b"GGUF".to_vec();
    bytes.extend(3u32.to_le_bytes());
    bytes.extend((1u64 << 32).to_le_bytes());
    bytes.extend((1u64 << 32).to_le_bytes());
    let start = std::time::Instant::now();
    std::fs::write(&path, &bytes).unwrap();
    refusal(&path);
    // A configuration that asks for what no file holds.
    for (field, value) in [
        ("vocab_size", json!(1u64 << 40)),
        ("hidden_size", json!(1u64 << 63)),
        ("num_hidden_layers", json!(u64::MAX)),
        ("num_hidden_layers", json!(1 << 27)),
        ("max_position_embeddings", json!(u64::MAX)),
        ("head_dim", json!(1 << 27)),
        ("vocab_size", json!(-1)),
        ("vocab_size", json!("300")),
        ("num_attention_heads", json!(0)),
        ("num_key_value_heads", json!(0)),
        ("num_key_value_heads", json!(3)),
        ("head_dim", json!(11)),
        ("rms_norm_eps", json!(-1.0)),
        ("intermediate_size", Value::Null),
    ] {
        let message = refused_config("llama", field, value.clone());
        assert!(!message.is_empty(), "{field} {value}");
    }
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

#[test]
fn g12_rope_scalings_are_applied_or_refused_by_name() {
    for kind in ["yarn", "dynamic", "longrope", "su", "mrope", "brand-new"] {
        for field in ["rope_type", "type"] {
            let message = refused_config(
                "llama",
                "rope_parameters",
                json!({ field: kind, "factor": 4.0, "rope_theta": 10_000.0 }),
            );
            assert!(message.contains(&format!("unsupported rope scaling {kind}")), "{message}");
        }
        let folder = with_config("qwen2", |config| {
            let fields = config.as_object_mut().unwrap();
            fields.remove("rope_parameters");
            fields.insert("rope_scaling".into(), json!({ "type": kind, "factor": 4.0 }));
        });
        let message = refusal(folder.path());
        assert!(message.contains(&format!("unsupported rope scaling {kind}")), "{message}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let tensors = read_tensors(checkpoint("llama").join("model.safetensors"));
    gguf_of("llama", &tensors).string("llama.rope.scaling.type", "yarn").write(&path);
    assert!(refusal(&path).contains("unsupported rope scaling yarn"));
    // Incomplete or contradictory settings.
    for rope in [
        json!({ "rope_type": "llama3", "factor": 8.0, "rope_theta": 10_000.0 }),
        json!({ "rope_type": "linear", "rope_theta": 10_000.0 }),
        json!({ "rope_type": "linear", "factor": 0.0, "rope_theta": 10_000.0 }),
        json!({ "rope_type": "default", "rope_theta": -1.0 }),
        json!({ "rope_type": "default", "attention_factor": 1.2, "rope_theta": 10_000.0 }),
        json!({ "full_attention": { "rope_type": "default" } }),
        json!("linear"),
    ] {
        let message = refused_config("llama", "rope_parameters", rope.clone());
        assert!(message.contains("rope"), "{rope}: {message}");
    }
}

#[test]
fn g12_settings_that_change_the_arithmetic_are_refused_by_name() {
    for (name, field, value) in [
        ("llama", "hidden_act", json!("gelu")),
        ("llama", "partial_rotary_factor", json!(0.5)),
        ("llama", "logit_scale", json!(0.0625)),
        ("llama", "logits_scaling", json!(8.0)),
        ("llama", "embedding_multiplier", json!(12.0)),
        ("llama", "residual_multiplier", json!(0.22)),
        ("llama", "attention_multiplier", json!(0.1)),
        ("llama", "final_logit_softcapping", json!(30.0)),
        ("llama", "num_local_experts", json!(8)),
        ("llama", "rope_interleaved", json!(true)),
        ("llama", "quantization_config", json!({ "bits": 4 })),
        ("llama", "sliding_window", json!(16)),
        ("qwen2", "use_sliding_window", json!(true)),
        ("qwen2", "attention_bias", json!(false)),
        ("qwen2", "mlp_bias", json!(true)),
        ("qwen3", "layer_types", json!(["full_attention", "sliding_attention"])),
        ("qwen3", "layer_types", json!(["full_attention", "linear_attention"])),
        ("mistral", "attention_bias", json!(true)),
    ] {
        let message = refused_config(name, field, value);
        assert!(message.contains("unsupported"), "{message}");
        let named = if field == "layer_types" { "attention" } else { field };
        assert!(message.contains(named), "{field}: {message}");
    }
    // The same fields with values that change nothing are fine.
    for (field, value) in [
        ("partial_rotary_factor", json!(1.0)),
        ("logit_scale", Value::Null),
        ("rope_interleaved", json!(false)),
        ("num_experts", json!(0)),
        ("hidden_act", json!("swish")),
    ] {
        let model = load(with_config("llama", |config| config[field] = value).path());
        assert_eq!(model.info().warnings, Vec::<String>::new(), "{field}");
    }
    // What nobody has heard of is a warning.
    let model = load(with_config("llama", |config| config["mystery_gain"] = json!(2)).path());
    let warnings = &model.info().warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("mystery_gain"), "{warnings:?}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let tensors = read_tensors(checkpoint("llama").join("model.safetensors"));
    for key in ["llama.logit_scale", "llama.attention.clamp_kqv", "llama.final_logit_softcapping"] {
        gguf_of("llama", &tensors).f32(key, 0.5).write(&path);
        let message = refusal(&path);
        assert!(message.contains(key), "{message}");
    }
    for (key, value) in [("llama.expert_count", 8), ("llama.rope.dimension_count", 6)] {
        gguf_of("llama", &tensors).u32(key, value).write(&path);
        let message = refusal(&path);
        assert!(message.contains(key), "{message}");
    }
    gguf_of("llama", &tensors).f32("llama.mystery_gain", 2.0).write(&path);
    let warnings = load(&path).info().warnings.clone();
    assert!(warnings.len() == 1 && warnings[0].contains("llama.mystery_gain"), "{warnings:?}");
}

#[test]
fn shapes_are_checked_before_use() {
    let folder = with_config("qwen3", |_| {});
    let file = folder.path().join("model.safetensors");
    let tensors = read_tensors(checkpoint("qwen3").join("model.safetensors"));
    for (name, (shape, _)) in &tensors {
        let mut changed = tensors.clone();
        let mut other = shape.clone();
        *other.last_mut().unwrap() += 2;
        changed.insert(name.clone(), (other.clone(), vec![0.0; other.iter().product()]));
        write_tensors(&file, "F32", &changed);
        let message = refusal(folder.path());
        assert!(message.contains(name.as_str()), "{message}");
        assert!(message.contains(&format!("{other:?}")), "{message}");
        assert!(message.contains(&format!("{shape:?}")), "{message}");

        changed.remove(name);
        write_tensors(&file, "F32", &changed);
        let message = refusal(folder.path());
        assert!(message.contains(&format!("tensor {name} is missing")), "{message}");
    }
    // A transposed square passes no check of sizes alone, a flat one neither.
    let mut changed = tensors.clone();
    let (shape, _) = changed.get_mut("model.norm.weight").unwrap();
    *shape = vec![1, 48];
    write_tensors(&file, "F32", &changed);
    assert!(refusal(folder.path()).contains("[1, 48]"));
}

#[test]
fn tensors_without_a_place_are_refused() {
    let folder = with_config("llama", |_| {});
    let file = folder.path().join("model.safetensors");
    let mut tensors = read_tensors(checkpoint("llama").join("model.safetensors"));
    tensors.insert("model.layers.0.self_attn.rotary_emb.inv_freq".into(), (vec![6], vec![1.0; 6]));
    write_tensors(&file, "F32", &tensors);
    load(folder.path());
    tensors.insert("model.layers.0.self_attn.q_norm.weight".into(), (vec![12], vec![1.0; 12]));
    write_tensors(&file, "F32", &tensors);
    let message = refusal(folder.path());
    assert!(message.contains("self_attn.q_norm.weight"), "{message}");
}

#[test]
fn forward_checks_everything_before_it_computes() {
    let model = load(checkpoint("llama"));
    assert!(model.new_cache(0).is_err());
    let mut a = model.new_cache(10).unwrap();
    let mut b = model.new_cache(1 << 40).unwrap();
    assert_eq!((a.capacity(), b.capacity()), (10, 256));
    let mut run = |first: &[u32], second: &[u32]| {
        let mut batch = [
            Sequence { ids: first, cache: &mut a, logits: LogitsAt::Last },
            Sequence { ids: second, cache: &mut b, logits: LogitsAt::Last },
        ];
        let result = model.forward(&mut batch).map(|logits| logits.len());
        (result, a.len(), b.len())
    };
    let (error, ..) = run(&[1, 2], &[299, 300]);
    assert!(
        matches!(error, Err(Error::TokenOutOfRange { position: 1, id: 300, vocab: 300 })),
        "{error:?}"
    );
    let (error, left, right) = run(&[1; 11], &[1]);
    assert!(
        matches!(error, Err(Error::ContextLength { prompt: 0, requested: 11, context: 10 })),
        "{error:?}"
    );
    // Nothing entered either cache.
    assert_eq!((left, right), (0, 0));
    let (fine, left, right) = run(&[1; 10], &[1; 256]);
    assert_eq!((fine.unwrap(), left, right), (2, 10, 256));
    let (error, ..) = run(&[], &[1]);
    assert!(
        matches!(error, Err(Error::ContextLength { prompt: 256, requested: 1, context: 256 })),
        "{error:?}"
    );
    // A cache of another geometry.
    let mut foreign = load(checkpoint("mistral")).new_cache(10).unwrap();
    let mut batch = [Sequence { ids: &[1], cache: &mut foreign, logits: LogitsAt::Last }];
    assert!(model.forward(&mut batch).unwrap_err().to_string().contains("another model"));
    assert!(model.forward(&mut []).unwrap().is_empty());
}
