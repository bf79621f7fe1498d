//! A safe reader of GGUF files, versions 1 to 3, little-endian.
//!
//! Opening reads the metadata and the table of tensors; the weights stay on disk until
//! [`Gguf::data`] points into them. Nothing is believed: counts, lengths, dimensions and offsets
//! are checked with wide arithmetic against the size of the file, names must be unique, and
//! every tensor of a supported type must lie inside the file.
//!
//! Layout: magic `GGUF`, version u32, tensor count, metadata count, metadata pairs, tensor
//! table, padding to `general.alignment`, tensor data. Version 1 has 32-bit counts and lengths.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::gguf_reader::Reader;
use super::{Array, GgmlType, Map, Value, ValueType, truncated, wrong_file};
use crate::error::{Error, Result};

/// Most metadata pairs in a file; real ones have fewer than a hundred.
const MAX_METADATA: u64 = 1 << 16;
/// Most tensors in a file; the largest real ones have a few thousand.
const MAX_TENSORS: u64 = 1 << 17;
/// Alignment where the file says nothing.
const DEFAULT_ALIGNMENT: u64 = 32;

/// An open GGUF file.
#[derive(Debug)]
pub struct Gguf {
    map: Map,
    version: u32,
    metadata: HashMap<String, Value>,
    tensors: Vec<TensorInfo>,
    by_name: HashMap<String, usize>,
}

/// One row of the table of tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name, unique in the file, for example `blk.0.attn_k.weight`.
    pub name: String,
    /// Sizes with the fastest-running dimension first (ggml's order, the reverse of a
    /// row-major shape).
    pub dims: Vec<u64>,
    /// Type of the values, known or not.
    pub ty: GgmlType,
    /// Where the data starts, in bytes from the start of the file.
    pub offset: u64,
    /// Bytes of the data; 0 where the type is not supported and the length hence unknown.
    pub len: u64,
}

impl TensorInfo {
    /// Number of values.
    #[must_use]
    pub fn elements(&self) -> u64 {
        // Opening checked that the product fits.
        self.dims.iter().product()
    }

    /// Refuses a type that the engine cannot compute with. Call it for every tensor before
    /// loading the first.
    ///
    /// # Errors
    /// [`Error::Unsupported`] naming the tensor, its type and the supported types.
    pub fn supported(&self) -> Result<()> {
        if self.ty.layout().is_some() {
            return Ok(());
        }
        Err(Error::Unsupported {
            what: "tensor type",
            found: format!("{} of tensor {}", self.ty, self.name),
            supported: GgmlType::supported_names(),
        })
    }
}

impl Gguf {
    /// Opens a file and reads everything but the weights.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened; [`Error::File`] for an empty file, a Git LFS
    /// pointer, another format, a version outside 1 to 3, a cut file
    /// (`truncated: expected N bytes, have M bytes`) and every inconsistency, with the place.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let map = Map::open(path.as_ref())?;
        if let Some(error) = wrong_file(map.path(), &map) {
            return Err(error);
        }
        let mut reader = Reader::new(&map, 0);
        let magic = reader.take(4)?;
        if magic != b"GGUF" {
            return Err(Error::file(
                map.path(),
                0,
                format!("not a GGUF file: it starts with {}", magic.escape_ascii()),
                "give a file that starts with the four bytes GGUF",
            ));
        }
        let version = reader.u32()?;
        if !(1..=3).contains(&version) {
            let problem = if (1..=3).contains(&version.swap_bytes()) {
                "a big-endian GGUF file".to_owned()
            } else {
                format!("GGUF version {version}")
            };
            return Err(reader.error(4, problem, "supported: versions 1 to 3, little-endian"));
        }
        reader.long = version > 1;
        let tensor_count = reader.length()?;
        let metadata_count = reader.length()?;
        // Smallest entries: an empty name, a type and a byte; an empty name, no dimension, a
        // type and an offset.
        let word = reader.word() as u64;
        reader.check_count("metadata pairs", metadata_count, MAX_METADATA, word + 5)?;
        reader.check_count("tensors", tensor_count, MAX_TENSORS, word + 16)?;

        let mut metadata = HashMap::new();
        for _ in 0..metadata_count {
            let at = reader.position;
            let key = reader.name("metadata key")?;
            let ty = reader.value_type()?;
            let value = reader.value(ty)?;
            if metadata.contains_key(&key) {
                return Err(reader.damaged(at, format!("metadata key {key} appears twice")));
            }
            metadata.insert(key, value);
        }
        let alignment = match metadata.get("general.alignment") {
            None => DEFAULT_ALIGNMENT,
            Some(value) => value
                .as_u64()
                .filter(|a| a.is_power_of_two() && (8..=1 << 20).contains(a))
                .ok_or_else(|| {
                    reader.damaged(
                        None,
                        format!(
                            "general.alignment is {value:?}; allowed: powers of two from 8 to 2^20"
                        ),
                    )
                })?,
        };

        let mut tensors = Vec::new();
        let mut names = HashSet::new();
        for _ in 0..tensor_count {
            let at = reader.position;
            let tensor = reader.tensor(alignment)?;
            if !names.insert(tensor.name.clone()) {
                return Err(reader.damaged(at, format!("tensor {} appears twice", tensor.name)));
            }
            tensors.push(tensor);
        }
        // A file without tensors (a vocabulary alone) may end before the padding.
        let data_start = (reader.position as u64).next_multiple_of(alignment);
        let mut expected = 0u128;
        for tensor in &mut tensors {
            let end = u128::from(data_start) + u128::from(tensor.offset) + u128::from(tensor.len);
            expected = expected.max(end);
            tensor.offset = tensor.offset.saturating_add(data_start);
        }
        if expected > map.len() as u128 {
            return Err(truncated(map.path(), expected, map.len()));
        }
        let by_name =
            tensors.iter().enumerate().map(|(index, t)| (t.name.clone(), index)).collect();
        Ok(Self { map, version, metadata, tensors, by_name })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.map.path()
    }

    /// Format version, 1 to 3.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// A metadata value.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<&Value> {
        self.metadata.get(key)
    }

    /// All metadata keys, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.metadata.keys().map(String::as_str)
    }

    /// `general.architecture`, for example `llama`.
    ///
    /// # Errors
    /// [`Error::File`] if the key is missing or no string.
    pub fn architecture(&self) -> Result<&str> {
        self.str("general.architecture")?.ok_or_else(|| self.missing("general.architecture"))
    }

    /// An integer that fits 32 bits; `None` if the key is missing.
    ///
    /// # Errors
    /// [`Error::File`] if the value is of another type or out of range.
    pub fn u32(&self, key: &str) -> Result<Option<u32>> {
        self.typed(key, "an integer from 0 to 4294967295", |value| {
            value.as_u64().and_then(|v| u32::try_from(v).ok())
        })
    }

    /// A float (integers are not converted); `None` if the key is missing.
    ///
    /// # Errors
    /// [`Error::File`] if the value is of another type.
    pub fn f32(&self, key: &str) -> Result<Option<f32>> {
        self.typed(key, "a float", |value| match value {
            // f64 values of the known keys are written from f32 and come back exactly.
            #[expect(clippy::cast_possible_truncation, reason = "see above")]
            Value::Float(v) => Some(*v as f32),
            _ => None,
        })
    }

    /// A boolean; `None` if the key is missing.
    ///
    /// # Errors
    /// [`Error::File`] if the value is of another type.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "a boolean", |value| match value {
            Value::Bool(v) => Some(*v),
            _ => None,
        })
    }

    /// A string; `None` if the key is missing.
    ///
    /// # Errors
    /// [`Error::File`] if the value is of another type.
    pub fn str(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "a string", |value| match value {
            Value::String(v) => Some(v.as_str()),
            _ => None,
        })
    }

    /// The strings of an array as raw bytes, in order; `None` if the key is missing.
    ///
    /// # Errors
    /// [`Error::File`] if the value is of another type.
    pub fn strings(&self, key: &str) -> Result<Option<impl ExactSizeIterator<Item = &[u8]>>> {
        let starts = self.typed(key, "an array of strings", |value| match value {
            Value::Array(Array::Strings(starts)) => Some(starts.as_slice()),
            // The element type of an empty array means nothing.
            Value::Array(Array::Fixed { bytes, .. }) if bytes.is_empty() => Some(&[][..]),
            _ => None,
        })?;
        Ok(starts.map(|starts| starts.iter().map(|&start| self.string_at(start))))
    }

    /// The integers of an array of any integer type; `None` if the key is missing.
    ///
    /// # Errors
    /// [`Error::File`] if the value is of another type or a number is above 2^63 - 1.
    pub fn integers(&self, key: &str) -> Result<Option<Vec<i64>>> {
        self.typed(key, "an array of integers", |value| {
            let Value::Array(Array::Fixed { element, bytes }) = value else { return None };
            let bytes = self.map.get(bytes.clone())?;
            let size = element.size()?;
            bytes.chunks_exact(size).map(|chunk| integer(*element, chunk)).collect()
        })
    }

    /// The error for a required key that is not there.
    #[must_use]
    pub fn missing(&self, key: &str) -> Error {
        Error::file(
            self.path(),
            None,
            format!("metadata key {key} is missing"),
            "give a complete GGUF file of a language model",
        )
    }

    /// The tensors in the order of the file.
    #[must_use]
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &TensorInfo> {
        self.tensors.iter()
    }

    /// The tensor of a name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.by_name.get(name).map(|&index| &self.tensors[index])
    }

    /// The bytes of a tensor.
    ///
    /// # Errors
    /// [`Error::Unsupported`] as [`TensorInfo::supported`]; [`Error::File`] if `tensor` comes
    /// from another file and does not lie in this one.
    pub fn data(&self, tensor: &TensorInfo) -> Result<&[u8]> {
        tensor.supported()?;
        let end = u128::from(tensor.offset) + u128::from(tensor.len);
        usize::try_from(tensor.offset)
            .ok()
            .zip(usize::try_from(end).ok())
            .and_then(|(start, end)| self.map.get(start..end))
            .ok_or_else(|| truncated(self.path(), end, self.map.len()))
    }

    fn string_at(&self, start: usize) -> &[u8] {
        // Opening read this very string; the fallback is never taken.
        let mut reader = Reader::new(&self.map, start);
        reader.long = self.version > 1;
        reader.string_bytes().unwrap_or_default()
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        wanted: &str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.metadata.get(key) else { return Ok(None) };
        convert(value).map(Some).ok_or_else(|| {
            let found = match value {
                Value::Array(_) | Value::String(_) => value.kind().to_owned(),
                other => format!("{other:?}"),
            };
            Error::file(
                self.path(),
                None,
                format!("metadata key {key} is {found}, not {wanted}"),
                "give a complete GGUF file of a language model",
            )
        })
    }
}

fn integer(element: ValueType, chunk: &[u8]) -> Option<i64> {
    let mut wide = [0u8; 8];
    wide.get_mut(..chunk.len())?.copy_from_slice(chunk);
    let unsigned = u64::from_le_bytes(wide);
    // Truncation then widening from the narrow signed type restores the sign.
    #[expect(clippy::cast_possible_truncation, reason = "see above")]
    #[expect(clippy::cast_possible_wrap, reason = "see above")]
    match element {
        ValueType::U8 | ValueType::U16 | ValueType::U32 | ValueType::U64 => {
            i64::try_from(unsigned).ok()
        }
        ValueType::I8 => Some(i64::from(unsigned as i8)),
        ValueType::I16 => Some(i64::from(unsigned as i16)),
        ValueType::I32 => Some(i64::from(unsigned as i32)),
        ValueType::I64 => Some(unsigned as i64),
        _ => None,
    }
}
