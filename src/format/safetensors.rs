//! A safe reader of safetensors checkpoints: one file, or shards with an index.
//!
//! Layout of a file: header length u64, header (a JSON object of name to dtype, shape and data
//! offsets), data. Only the header is read; tensors are views into the map.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use super::{Map, truncated, wrong_file};
use crate::error::{Error, Result};

/// Longest header in bytes; the reference implementation has the same bound.
const MAX_HEADER: u64 = 100_000_000;
/// Name of the index of a sharded checkpoint.
const INDEX: &str = "model.safetensors.index.json";
/// Name of the only file of an unsharded one.
const SINGLE: &str = "model.safetensors";
/// Most files of a checkpoint.
const MAX_SHARDS: usize = 4096;

/// Type of the values of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// 32-bit floats.
    F32,
    /// 16-bit IEEE floats.
    F16,
    /// 16-bit floats with the exponent of `f32`.
    BF16,
}

impl Dtype {
    /// Bytes of one value.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::BF16 => "BF16",
        })
    }
}

/// A tensor of a checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a> {
    /// Type of the values.
    pub dtype: Dtype,
    /// Sizes, slowest-running dimension first (row-major).
    pub shape: &'a [usize],
    /// The values, little-endian; as long as dtype and shape say. Not necessarily aligned to
    /// the size of a value.
    pub data: &'a [u8],
}

#[derive(Debug)]
struct Entry {
    file: usize,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Range<usize>,
}

/// An open checkpoint.
#[derive(Debug)]
pub struct Checkpoint {
    files: Vec<Map>,
    entries: BTreeMap<String, Entry>,
}

/// A tensor as the header describes it.
#[derive(serde::Deserialize)]
struct Described {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// The members of a header in order. A JSON map would keep the last of equal names silently.
struct Header(Vec<(String, serde_json::Value)>);

impl<'de> serde::Deserialize<'de> for Header {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> serde::de::Visitor<'de> for Members {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Header, A::Error> {
                let mut members = Vec::new();
                let mut names = HashSet::new();
                while let Some((name, value)) = map.next_entry::<String, serde_json::Value>()? {
                    if !names.insert(name.clone()) {
                        let text = format!("tensor {name} appears twice");
                        return Err(serde::de::Error::custom(text));
                    }
                    members.push((name, value));
                }
                Ok(Header(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

#[derive(serde::Deserialize)]
struct Index {
    weight_map: HashMap<String, String>,
}

impl Checkpoint {
    /// Opens a `.safetensors` file, an index file, or a folder that holds one of them.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be opened; [`Error::File`] for an empty file, a Git LFS
    /// pointer, a cut file, a header that contradicts itself or a shard outside the folder;
    /// [`Error::Unsupported`] for a dtype other than F32, F16 and BF16.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            let single = path.join(SINGLE);
            let index = path.join(INDEX);
            return match (index.is_file(), single.is_file()) {
                (true, _) => Self::open_shards(&index),
                (false, true) => Self::open_files(vec![single]),
                (false, false) => Err(Error::file(
                    path,
                    None,
                    format!("the folder holds neither {SINGLE} nor {INDEX}"),
                    "give the folder of a safetensors checkpoint",
                )),
            };
        }
        if path.extension().is_some_and(|extension| extension == "json") {
            return Self::open_shards(path);
        }
        Self::open_files(vec![path.to_path_buf()])
    }

    /// The tensor of a name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        let entry = self.entries.get(name)?;
        let data = self.files.get(entry.file)?.get(entry.bytes.clone())?;
        Some(TensorView { dtype: entry.dtype, shape: &entry.shape, data })
    }

    /// All names in alphabetical order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The files that were opened.
    pub fn files(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.files.iter().map(Map::path)
    }

    fn open_files(paths: Vec<PathBuf>) -> Result<Self> {
        let mut checkpoint = Self { files: Vec::new(), entries: BTreeMap::new() };
        for path in paths {
            let map = Map::open(&path)?;
            let file = checkpoint.files.len();
            for (name, entry) in read_header(&map, file)? {
                if checkpoint.entries.contains_key(&name) {
                    return Err(damaged(&path, None, format!("tensor {name} appears twice")));
                }
                checkpoint.entries.insert(name, entry);
            }
            checkpoint.files.push(map);
        }
        Ok(checkpoint)
    }

    fn open_shards(index: &Path) -> Result<Self> {
        let map = Map::open(index)?;
        if let Some(error) = wrong_file(index, &map) {
            return Err(error);
        }
        let parsed: Index = serde_json::from_slice(&map)
            .map_err(|e| damaged(index, None, format!("not a checkpoint index: {e}")))?;
        let mut names: Vec<&String> = parsed.weight_map.values().collect();
        names.sort();
        names.dedup();
        if names.len() > MAX_SHARDS {
            let problem = format!("{} shards; at most {MAX_SHARDS} are accepted", names.len());
            return Err(damaged(index, None, problem));
        }
        let folder = index.parent().unwrap_or(Path::new(""));
        let mut paths = Vec::new();
        for name in names {
            let mut components = Path::new(name).components();
            let plain = matches!(
                (components.next(), components.next()),
                (Some(Component::Normal(_)), None)
            );
            if !plain {
                return Err(Error::file(
                    index,
                    None,
                    format!("shard {name:?} is not a plain file name"),
                    "shards must lie in the folder of the index",
                ));
            }
            paths.push(folder.join(name));
        }
        let checkpoint = Self::open_files(paths)?;
        for (name, shard) in &parsed.weight_map {
            let found = checkpoint.entries.get(name).map(|e| checkpoint.files[e.file].path());
            if found.is_none_or(|path| path.file_name() != Path::new(shard).file_name()) {
                return Err(damaged(
                    index,
                    None,
                    format!("tensor {name} is not in the shard {shard} that the index names"),
                ));
            }
        }
        Ok(checkpoint)
    }
}

fn damaged(path: &Path, at: Option<u64>, problem: String) -> Error {
    Error::file(path, at, problem, "the file is damaged: fetch it again")
}

fn read_header(map: &Map, file: usize) -> Result<Vec<(String, Entry)>> {
    let path = map.path();
    if let Some(error) = wrong_file(path, map) {
        return Err(error);
    }
    let Some((length, rest)) = map.split_first_chunk::<8>() else {
        return Err(truncated(path, 8, map.len()));
    };
    let length = u64::from_le_bytes(*length);
    if length > MAX_HEADER {
        return Err(Error::file(
            path,
            0,
            format!("header of {length} bytes; at most {MAX_HEADER} are accepted"),
            "this is not a safetensors file, or it is damaged: fetch it again",
        ));
    }
    // At most MAX_HEADER.
    #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
    let length = length as usize;
    let Some(header) = rest.get(..length) else {
        return Err(truncated(path, 8 + length as u128, map.len()));
    };
    let Header(described) = serde_json::from_slice(header)
        .map_err(|e| damaged(path, Some(8), format!("the header is not a JSON object: {e}")))?;

    let start = 8 + length;
    let mut entries = Vec::new();
    let mut expected = start as u128;
    for (name, value) in described.into_iter().filter(|(name, _)| name != "__metadata__") {
        let tensor: Described = serde_json::from_value(value)
            .map_err(|e| damaged(path, Some(8), format!("tensor {name}: {e}")))?;
        let dtype = match tensor.dtype.as_str() {
            "F32" => Dtype::F32,
            "F16" => Dtype::F16,
            "BF16" => Dtype::BF16,
            other => {
                return Err(Error::Unsupported {
                    what: "tensor type",
                    found: format!("{other} of tensor {name} in {}", path.display()),
                    supported: "F32, F16, BF16".to_owned(),
                });
            }
        };
        let (from, to) = tensor.data_offsets;
        let bad = |problem: &str| {
            let shape = &tensor.shape;
            let text = format!(
                "tensor {name} ({dtype}, shape {shape:?}, data offsets {from}..{to}) {problem}"
            );
            damaged(path, None, text)
        };
        let size = tensor
            .shape
            .iter()
            .try_fold(dtype.size() as u64, |size, &dim| size.checked_mul(dim))
            .ok_or_else(|| bad("has more than 2^64 bytes"))?;
        if from > to || to - from != size {
            return Err(bad(&format!("should have {size} bytes")));
        }
        let end = start as u128 + u128::from(to);
        expected = expected.max(end);
        // A range past the end is reported below with the whole size that is missing.
        if end <= map.len() as u128 {
            #[expect(clippy::cast_possible_truncation, reason = "bounded by the file's length")]
            let bytes = start + from as usize..start + to as usize;
            #[expect(clippy::cast_possible_truncation, reason = "bounded by the file's length")]
            let shape = tensor.shape.iter().map(|&dim| dim as usize).collect();
            entries.push((name, Entry { file, dtype, shape, bytes }));
        }
    }
    if expected > map.len() as u128 {
        return Err(truncated(path, expected, map.len()));
    }
    let mut order: Vec<&(String, Entry)> =
        entries.iter().filter(|(_, entry)| !entry.bytes.is_empty()).collect();
    order.sort_by_key(|(_, entry)| entry.bytes.start);
    for pair in order.windows(2) {
        if pair[0].1.bytes.end > pair[1].1.bytes.start {
            let problem = format!("tensors {} and {} overlap", pair[0].0, pair[1].0);
            return Err(damaged(path, None, problem));
        }
    }
    Ok(entries)
}
