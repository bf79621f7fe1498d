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

use super::{Array, GgmlType, Map, Value, ValueType, truncated, wrong_file};
use crate::error::{Error, Result};

/// Most metadata pairs in a file; real ones have fewer than a hundred.
const MAX_METADATA: u64 = 1 << 16;
/// Most tensors in a file; the largest real ones have a few thousand.
const MAX_TENSORS: u64 = 1 << 17;
/// Longest key or tensor name in bytes, as the format's own text says.
const MAX_NAME: u64 = 65_535;
/// Most arrays within arrays.
const MAX_NESTING: usize = 4;
/// Most dimensions of a tensor, a constant of ggml.
const MAX_DIMENSIONS: u32 = 4;
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
        let mut reader = Reader { bytes: &map, path: map.path(), position: 0, long: true };
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
        let mut reader = Reader {
            bytes: &self.map,
            path: self.map.path(),
            position: start,
            long: self.version > 1,
        };
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

/// A cursor over the file that never reads past its end.
struct Reader<'a> {
    bytes: &'a [u8],
    path: &'a Path,
    position: usize,
    /// Whether counts and lengths have 64 bits (versions 2 and 3) or 32.
    long: bool,
}

impl<'a> Reader<'a> {
    fn error(&self, at: impl Into<Option<usize>>, problem: String, remedy: &str) -> Error {
        Error::file(self.path, at.into().map(|at| at as u64), problem, remedy)
    }

    fn damaged(&self, at: impl Into<Option<usize>>, problem: String) -> Error {
        self.error(at, problem, "the file is damaged: fetch it again")
    }

    fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    fn word(&self) -> usize {
        if self.long { 8 } else { 4 }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.remaining() {
            let expected = self.position as u128 + count as u128;
            return Err(truncated(self.path, expected, self.bytes.len()));
        }
        let taken = &self.bytes[self.position..self.position + count];
        self.position += count;
        Ok(taken)
    }

    /// The next `N` bytes as a little-endian number, zero-extended.
    fn unsigned(&mut self, size: usize) -> Result<u64> {
        let mut wide = [0u8; 8];
        wide[..size].copy_from_slice(self.take(size)?);
        Ok(u64::from_le_bytes(wide))
    }

    fn u32(&mut self) -> Result<u32> {
        // Four bytes always fit.
        #[expect(clippy::cast_possible_truncation, reason = "four bytes were read")]
        self.unsigned(4).map(|value| value as u32)
    }

    fn length(&mut self) -> Result<u64> {
        self.unsigned(self.word())
    }

    /// Refuses a count that the rest of the file cannot hold.
    fn check_count(&self, what: &str, count: u64, limit: u64, smallest: u64) -> Result<usize> {
        let needed = u128::from(count) * u128::from(smallest);
        if count > limit {
            return Err(self
                .damaged(self.position, format!("{count} {what}; at most {limit} are accepted")));
        }
        if needed > self.remaining() as u128 {
            return Err(truncated(self.path, self.position as u128 + needed, self.bytes.len()));
        }
        // At most the size of the file.
        #[expect(clippy::cast_possible_truncation, reason = "bounded by a slice's length")]
        Ok(count as usize)
    }

    fn string_bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.length()?;
        let length = self.check_count("bytes of a string", length, u64::MAX, 1)?;
        self.take(length)
    }

    fn string(&mut self, what: &str, limit: u64) -> Result<String> {
        let at = self.position;
        let bytes = self.string_bytes()?;
        if bytes.len() as u64 > limit {
            return Err(self.damaged(
                at,
                format!("{what} of {} bytes; at most {limit} are accepted", bytes.len()),
            ));
        }
        std::str::from_utf8(bytes)
            .map(str::to_owned)
            .map_err(|_| self.damaged(at, format!("{what} is not UTF-8")))
    }

    fn name(&mut self, what: &str) -> Result<String> {
        self.string(what, MAX_NAME)
    }

    fn value_type(&mut self) -> Result<ValueType> {
        let at = self.position;
        let id = self.u32()?;
        ValueType::from_id(id).ok_or_else(|| {
            self.damaged(at, format!("metadata type {id} is unknown; known: 0 to 12"))
        })
    }

    #[expect(clippy::cast_possible_truncation, reason = "as many bytes were read as fit")]
    #[expect(clippy::cast_possible_wrap, reason = "the bits are those of a signed number")]
    fn value(&mut self, ty: ValueType) -> Result<Value> {
        let at = self.position;
        Ok(match ty {
            ValueType::U8 => Value::Unsigned(self.unsigned(1)?),
            ValueType::U16 => Value::Unsigned(self.unsigned(2)?),
            ValueType::U32 => Value::Unsigned(self.unsigned(4)?),
            ValueType::U64 => Value::Unsigned(self.unsigned(8)?),
            ValueType::I8 => Value::Signed(i64::from(self.unsigned(1)? as i8)),
            ValueType::I16 => Value::Signed(i64::from(self.unsigned(2)? as i16)),
            ValueType::I32 => Value::Signed(i64::from(self.unsigned(4)? as i32)),
            ValueType::I64 => Value::Signed(self.unsigned(8)? as i64),
            ValueType::F32 => Value::Float(f64::from(f32::from_bits(self.u32()?))),
            ValueType::F64 => Value::Float(f64::from_bits(self.unsigned(8)?)),
            ValueType::Bool => match self.unsigned(1)? {
                0 => Value::Bool(false),
                1 => Value::Bool(true),
                other => {
                    return Err(self.damaged(at, format!("boolean {other}; allowed: 0 and 1")));
                }
            },
            ValueType::String => Value::String(self.string("metadata string", u64::MAX)?),
            ValueType::Array => Value::Array(self.array(1)?),
        })
    }

    fn array(&mut self, depth: usize) -> Result<Array> {
        let at = self.position;
        let element = self.value_type()?;
        let count = self.length()?;
        match element {
            ValueType::String => {
                let word = self.word() as u64;
                let count = self.check_count("strings of an array", count, u64::MAX, word)?;
                let mut starts = Vec::with_capacity(count);
                for _ in 0..count {
                    starts.push(self.position);
                    self.string_bytes()?;
                }
                Ok(Array::Strings(starts))
            }
            ValueType::Array => {
                if depth >= MAX_NESTING {
                    return Err(
                        self.damaged(at, format!("arrays nested deeper than {MAX_NESTING}"))
                    );
                }
                let smallest = self.word() as u64 + 4;
                let len = self.check_count("arrays of an array", count, u64::MAX, smallest)?;
                for _ in 0..len {
                    self.array(depth + 1)?;
                }
                Ok(Array::Nested { len })
            }
            fixed => {
                // Strings and arrays, the only types without a size, were handled above.
                let size = fixed.size().unwrap_or(1);
                let count = self.check_count("values of an array", count, u64::MAX, size as u64)?;
                let start = self.position;
                self.take(count * size)?;
                Ok(Array::Fixed { element: fixed, bytes: start..self.position })
            }
        }
    }

    /// One row of the tensor table; `offset` is still relative to the start of the data.
    fn tensor(&mut self, alignment: u64) -> Result<TensorInfo> {
        let at = self.position;
        let name = self.name("tensor name")?;
        let count = self.u32()?;
        if count > MAX_DIMENSIONS {
            return Err(self.damaged(
                at,
                format!("tensor {name} has {count} dimensions; at most {MAX_DIMENSIONS}"),
            ));
        }
        let mut dims = Vec::new();
        for _ in 0..count {
            dims.push(self.length()?);
        }
        let ty = GgmlType(self.u32()?);
        let offset = self.unsigned(8)?;
        let bad = |problem: &str| {
            self.damaged(
                at,
                format!("tensor {name} of dimensions {dims:?} and type {ty} {problem}"),
            )
        };
        if dims.contains(&0) {
            return Err(bad("has a dimension of 0"));
        }
        let elements = dims
            .iter()
            .try_fold(1u64, |product, &dim| product.checked_mul(dim))
            .ok_or_else(|| bad("has more than 2^64 values"))?;
        let len = match ty.layout() {
            None => 0,
            Some((values, bytes)) => {
                if dims.first().copied().unwrap_or(1) % values != 0 {
                    return Err(bad(&format!("has rows that are no multiple of {values}")));
                }
                (elements / values)
                    .checked_mul(bytes)
                    .ok_or_else(|| bad("has more than 2^64 bytes"))?
            }
        };
        if offset % alignment != 0 {
            return Err(bad(&format!("starts at {offset}, no multiple of {alignment}")));
        }
        Ok(TensorInfo { name, dims, ty, offset, len })
    }
}
