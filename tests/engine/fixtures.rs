//! Checkpoints of `data/models`, and the means to write changed ones and GGUF files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use greenmark::engine::{Device, KvCache, LogitsAt, Model, Sequence};
use serde_json::{Value, json};

/// The checkpoints that have an `expected.json`.
pub(crate) const CHECKPOINTS: [&str; 5] = ["llama", "llama3-rope", "mistral", "qwen2", "qwen3"];

pub(crate) fn checkpoint(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/models").join(name)
}

pub(crate) fn load(path: impl AsRef<Path>) -> Model {
    Model::load(path, Device::Cpu).unwrap()
}

pub(crate) fn json_file(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub(crate) fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|v| u32::try_from(v.as_u64().unwrap()).unwrap()).collect()
}

pub(crate) fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// Logits of one sequence at every position, in one pass, by row.
pub(crate) fn every(model: &Model, ids: &[u32]) -> Vec<Vec<f32>> {
    let mut cache = model.new_cache(ids.len()).unwrap();
    step(model, &mut cache, ids, LogitsAt::Every)
}

/// Feeds `ids` and returns the rows of logits.
pub(crate) fn step(
    model: &Model,
    cache: &mut KvCache,
    ids: &[u32],
    logits: LogitsAt,
) -> Vec<Vec<f32>> {
    let mut batch = [Sequence { ids, cache, logits }];
    let logits = model.forward(&mut batch).unwrap().pop().unwrap();
    (0..logits.rows()).map(|i| logits.row(i).unwrap().to_vec()).collect()
}

pub(crate) fn argmax(row: &[f32]) -> u32 {
    let mut best = 0;
    for (i, v) in row.iter().enumerate() {
        if *v > row[best] {
            best = i;
        }
    }
    u32::try_from(best).unwrap()
}

pub(crate) fn logsumexp(row: &[f32]) -> f64 {
    let top = row.iter().copied().map(f64::from).fold(f64::NEG_INFINITY, f64::max);
    top + row.iter().map(|&v| (f64::from(v) - top).exp()).sum::<f64>().ln()
}

/// Greedy continuation, one token a pass.
pub(crate) fn greedy(model: &Model, prompt: &[u32], tokens: usize) -> Vec<u32> {
    let mut cache = model.new_cache(prompt.len() + tokens).unwrap();
    let mut last = step(model, &mut cache, prompt, LogitsAt::Last).pop().unwrap();
    let mut out = Vec::new();
    while out.len() < tokens {
        let id = argmax(&last);
        out.push(id);
        if out.len() < tokens {
            last = step(model, &mut cache, &[id], LogitsAt::Last).pop().unwrap();
        }
    }
    out
}

pub(crate) fn bits(rows: &[Vec<f32>]) -> Vec<Vec<u32>> {
    rows.iter().map(|row| row.iter().map(|v| v.to_bits()).collect()).collect()
}

/// A tensor of a safetensors file as f32, with its shape.
pub(crate) type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Reads a safetensors file of f32.
pub(crate) fn read_tensors(path: impl AsRef<Path>) -> Tensors {
    let bytes = std::fs::read(path).unwrap();
    let header = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let described: Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
    let data = &bytes[8 + header..];
    let mut tensors = Tensors::new();
    for (name, info) in described.as_object().unwrap() {
        if name == "__metadata__" {
            continue;
        }
        let size = |v: &Value| usize::try_from(v.as_u64().unwrap()).unwrap();
        let range = size(&info["data_offsets"][0])..size(&info["data_offsets"][1]);
        let shape = info["shape"].as_array().unwrap().iter().map(size).collect();
        let values = data[range]
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
            .collect();
        tensors.insert(name.clone(), (shape, values));
    }
    tensors
}

/// Writes a safetensors file; `dtype` is `F32`, `F16` or `BF16`.
pub(crate) fn write_tensors<'a>(
    path: impl AsRef<Path>,
    dtype: &str,
    tensors: impl IntoIterator<Item = (&'a String, &'a (Vec<usize>, Vec<f32>))>,
) {
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    for (name, (shape, values)) in tensors {
        let start = data.len();
        for &value in values {
            match dtype {
                "F32" => data.extend(value.to_le_bytes()),
                "F16" => data.extend(half::f16::from_f32(value).to_le_bytes()),
                "BF16" => data.extend(half::bf16::from_f32(value).to_le_bytes()),
                other => panic!("{other}"),
            }
        }
        header.insert(
            name.clone(),
            json!({ "dtype": dtype, "shape": shape, "data_offsets": [start, data.len()] }),
        );
    }
    let header = serde_json::to_vec(&header).unwrap();
    let mut bytes = u64::try_from(header.len()).unwrap().to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend(data);
    std::fs::write(path, bytes).unwrap();
}

/// A copy of a checkpoint whose `config.json` has been changed.
pub(crate) fn with_config(name: &str, change: impl FnOnce(&mut Value)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let from = checkpoint(name);
    let mut config = json_file(from.join("config.json"));
    change(&mut config);
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    std::fs::copy(from.join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
    folder
}

/// A GGUF file in the making.
#[derive(Default)]
pub(crate) struct GgufFile {
    metadata: Vec<u8>,
    keys: u64,
    tensors: Vec<(String, Vec<usize>, u32, Vec<u8>)>,
}

impl GgufFile {
    fn key(&mut self, key: &str, kind: u32) {
        put_string(&mut self.metadata, key);
        self.metadata.extend(kind.to_le_bytes());
        self.keys += 1;
    }

    pub(crate) fn u32(mut self, key: &str, value: usize) -> Self {
        self.key(key, 4);
        self.metadata.extend(u32::try_from(value).unwrap().to_le_bytes());
        self
    }

    pub(crate) fn f32(mut self, key: &str, value: f32) -> Self {
        self.key(key, 6);
        self.metadata.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn string(mut self, key: &str, value: &str) -> Self {
        self.key(key, 8);
        put_string(&mut self.metadata, value);
        self
    }

    /// `shape` is row-major, `kind` ggml's number of the type.
    pub(crate) fn tensor(mut self, name: &str, shape: &[usize], kind: u32, data: Vec<u8>) -> Self {
        self.tensors.push((name.into(), shape.to_vec(), kind, data));
        self
    }

    pub(crate) fn tensor_f32(self, name: &str, shape: &[usize], values: &[f32]) -> Self {
        let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.tensor(name, shape, 0, data)
    }

    pub(crate) fn write(self, path: impl AsRef<Path>) {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3u32.to_le_bytes());
        bytes.extend(u64::try_from(self.tensors.len()).unwrap().to_le_bytes());
        bytes.extend(self.keys.to_le_bytes());
        bytes.extend(self.metadata);
        let mut data = Vec::new();
        for (name, shape, kind, tensor) in self.tensors {
            put_string(&mut bytes, &name);
            bytes.extend(u32::try_from(shape.len()).unwrap().to_le_bytes());
            for size in shape.iter().rev() {
                bytes.extend(u64::try_from(*size).unwrap().to_le_bytes());
            }
            bytes.extend(kind.to_le_bytes());
            bytes.extend(u64::try_from(data.len()).unwrap().to_le_bytes());
            data.extend(tensor);
            data.resize(data.len().next_multiple_of(32), 0);
        }
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        bytes.extend(data);
        std::fs::write(path, bytes).unwrap();
    }
}

fn put_string(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend(u64::try_from(text.len()).unwrap().to_le_bytes());
    bytes.extend(text.as_bytes());
}

/// A fixed sequence of numbers in -1..1 for weights and inputs.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> f32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let top = i32::try_from(self.0 >> 40).unwrap() - (1 << 23);
        #[expect(clippy::cast_precision_loss, reason = "24 bits fit an f32")]
        let value = top as f32 / 8_388_608.0;
        value
    }

    pub(crate) fn take(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next()).collect()
    }

    pub(crate) fn ids(&mut self, count: usize, vocab: u32) -> Vec<u32> {
        (0..count)
            .map(|_| {
                self.next();
                u32::try_from((self.0 >> 33) % u64::from(vocab)).unwrap()
            })
            .collect()
    }
}
