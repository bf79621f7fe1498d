//! The cursor under the GGUF reader: numbers, strings, values and rows of the tensor table, each
//! checked against what is left of the file before anything is taken or allocated.

use std::path::Path;

use super::{Array, GgmlType, Map, TensorInfo, Value, ValueType, truncated};
use crate::error::{Error, Result};

/// Longest key or tensor name in bytes, as the format's own text says.
const MAX_NAME: u64 = 65_535;
/// Most arrays within arrays.
const MAX_NESTING: usize = 4;
/// Most dimensions of a tensor, a constant of ggml.
const MAX_DIMENSIONS: u32 = 4;

/// A cursor over the file that never reads past its end.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    path: &'a Path,
    pub(super) position: usize,
    /// Whether counts and lengths have 64 bits (versions 2 and 3) or 32.
    pub(super) long: bool,
}

impl<'a> Reader<'a> {
    /// A cursor at a place in a file of version 2 or 3.
    pub(super) fn new(map: &'a Map, position: usize) -> Self {
        Self { bytes: map, path: map.path(), position, long: true }
    }

    pub(super) fn error(
        &self,
        at: impl Into<Option<usize>>,
        problem: String,
        remedy: &str,
    ) -> Error {
        Error::file(self.path, at.into().map(|at| at as u64), problem, remedy)
    }

    pub(super) fn damaged(&self, at: impl Into<Option<usize>>, problem: String) -> Error {
        self.error(at, problem, "the file is damaged: fetch it again")
    }

    fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    pub(super) fn word(&self) -> usize {
        if self.long { 8 } else { 4 }
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
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

    pub(super) fn u32(&mut self) -> Result<u32> {
        // Four bytes always fit.
        #[expect(clippy::cast_possible_truncation, reason = "four bytes were read")]
        self.unsigned(4).map(|value| value as u32)
    }

    pub(super) fn length(&mut self) -> Result<u64> {
        self.unsigned(self.word())
    }

    /// Refuses a count that the rest of the file cannot hold.
    pub(super) fn check_count(
        &self,
        what: &str,
        count: u64,
        limit: u64,
        smallest: u64,
    ) -> Result<usize> {
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

    pub(super) fn string_bytes(&mut self) -> Result<&'a [u8]> {
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

    pub(super) fn name(&mut self, what: &str) -> Result<String> {
        self.string(what, MAX_NAME)
    }

    pub(super) fn value_type(&mut self) -> Result<ValueType> {
        let at = self.position;
        let id = self.u32()?;
        ValueType::from_id(id).ok_or_else(|| {
            self.damaged(at, format!("metadata type {id} is unknown; known: 0 to 12"))
        })
    }

    #[expect(clippy::cast_possible_truncation, reason = "as many bytes were read as fit")]
    #[expect(clippy::cast_possible_wrap, reason = "the bits are those of a signed number")]
    pub(super) fn value(&mut self, ty: ValueType) -> Result<Value> {
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
    pub(super) fn tensor(&mut self, alignment: u64) -> Result<TensorInfo> {
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
