//! The ggml tensor types: numbers, names, and the block layout of those the engine supports.

use std::fmt;

/// A ggml tensor type as the number in the file, known or not.
///
/// Reading a file never fails for a type; [`crate::format::TensorInfo::supported`] does, so that
/// the detector can read the tokenizer out of a file whose weights it could not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GgmlType(pub u32);

/// `(id, name)` of every type that ggml has or had and whose id is still in use.
const NAMES: [(u32, &str); 33] = [
    (0, "F32"),
    (1, "F16"),
    (2, "Q4_0"),
    (3, "Q4_1"),
    (6, "Q5_0"),
    (7, "Q5_1"),
    (8, "Q8_0"),
    (9, "Q8_1"),
    (10, "Q2_K"),
    (11, "Q3_K"),
    (12, "Q4_K"),
    (13, "Q5_K"),
    (14, "Q6_K"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (30, "BF16"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
    (40, "NVFP4"),
];

/// `(type, values per block, bytes per block)` of the types that the engine computes with.
const LAYOUTS: [(GgmlType, u64, u64); 13] = [
    (GgmlType::F32, 1, 4),
    (GgmlType::F16, 1, 2),
    (GgmlType::BF16, 1, 2),
    (GgmlType::Q4_0, 32, 18),
    (GgmlType::Q4_1, 32, 20),
    (GgmlType::Q5_0, 32, 22),
    (GgmlType::Q5_1, 32, 24),
    (GgmlType::Q8_0, 32, 34),
    (GgmlType::Q2_K, 256, 84),
    (GgmlType::Q3_K, 256, 110),
    (GgmlType::Q4_K, 256, 144),
    (GgmlType::Q5_K, 256, 176),
    (GgmlType::Q6_K, 256, 210),
];

#[expect(missing_docs, reason = "the names are the field's own; see each in ggml")]
impl GgmlType {
    pub const F32: Self = Self(0);
    pub const F16: Self = Self(1);
    pub const Q4_0: Self = Self(2);
    pub const Q4_1: Self = Self(3);
    pub const Q5_0: Self = Self(6);
    pub const Q5_1: Self = Self(7);
    pub const Q8_0: Self = Self(8);
    pub const Q2_K: Self = Self(10);
    pub const Q3_K: Self = Self(11);
    pub const Q4_K: Self = Self(12);
    pub const Q5_K: Self = Self(13);
    pub const Q6_K: Self = Self(14);
    pub const BF16: Self = Self(30);
}

impl GgmlType {
    /// The field's name, for example `Q4_1`; `None` for a number that ggml does not use.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(id, _)| *id == self.0).map(|(_, name)| *name)
    }

    /// Values per block and bytes per block; `None` for types that the engine does not support.
    #[must_use]
    pub fn layout(self) -> Option<(u64, u64)> {
        LAYOUTS.iter().find(|(ty, ..)| *ty == self).map(|&(_, values, bytes)| (values, bytes))
    }

    /// The types that the engine supports.
    pub fn supported() -> impl Iterator<Item = Self> {
        LAYOUTS.iter().map(|(ty, ..)| *ty)
    }

    /// The names of [`GgmlType::supported`], for messages.
    #[must_use]
    pub fn supported_names() -> String {
        Self::supported().map(|ty| ty.to_string()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "unknown {}", self.0),
        }
    }
}
