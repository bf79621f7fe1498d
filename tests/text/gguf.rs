//! The GGUF reader on crafted, damaged and real files.

use std::path::Path;

use greenmark::format::{GgmlType, Gguf, Value};
use greenmark::{Error, ErrorKind};

use crate::support::default_model;

/// A GGUF file under construction.
pub(crate) struct Builder {
    version: u32,
    metadata: Vec<Vec<u8>>,
    tensors: Vec<Vec<u8>>,
    data: usize,
    alignment: usize,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self { version: 3, metadata: vec![], tensors: vec![], data: 0, alignment: 32 }
    }

    fn word(&self, value: u64) -> Vec<u8> {
        if self.version == 1 {
            u32::try_from(value).unwrap().to_le_bytes().to_vec()
        } else {
            value.to_le_bytes().to_vec()
        }
    }

    fn text(&self, text: &[u8]) -> Vec<u8> {
        [self.word(text.len() as u64), text.to_vec()].concat()
    }

    pub(crate) fn raw(mut self, key: &str, ty: u32, value: &[u8]) -> Self {
        let entry = [self.text(key.as_bytes()), ty.to_le_bytes().to_vec(), value.to_vec()];
        self.metadata.push(entry.concat());
        self
    }

    pub(crate) fn u32(self, key: &str, value: u32) -> Self {
        self.raw(key, 4, &value.to_le_bytes())
    }

    pub(crate) fn bool(self, key: &str, value: bool) -> Self {
        self.raw(key, 7, &[u8::from(value)])
    }

    pub(crate) fn str(self, key: &str, value: &str) -> Self {
        let value = self.text(value.as_bytes());
        self.raw(key, 8, &value)
    }

    pub(crate) fn strings<S: AsRef<[u8]>>(self, key: &str, values: &[S]) -> Self {
        let mut bytes = [8u32.to_le_bytes().to_vec(), self.word(values.len() as u64)].concat();
        for value in values {
            bytes.extend(self.text(value.as_ref()));
        }
        self.raw(key, 9, &bytes)
    }

    pub(crate) fn i32s(self, key: &str, values: &[i32]) -> Self {
        let mut bytes = [5u32.to_le_bytes().to_vec(), self.word(values.len() as u64)].concat();
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self.raw(key, 9, &bytes)
    }

    fn tensor(mut self, name: &str, dims: &[u64], ty: u32, offset: u64) -> Self {
        let mut entry = self.text(name.as_bytes());
        entry.extend(u32::try_from(dims.len()).unwrap().to_le_bytes());
        for &dim in dims {
            entry.extend(self.word(dim));
        }
        entry.extend(ty.to_le_bytes());
        entry.extend(offset.to_le_bytes());
        self.tensors.push(entry);
        self
    }

    fn data(mut self, bytes: usize) -> Self {
        self.data = bytes;
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(self.version.to_le_bytes());
        file.extend(self.word(self.tensors.len() as u64));
        file.extend(self.word(self.metadata.len() as u64));
        file.extend(self.metadata.concat());
        file.extend(self.tensors.concat());
        if self.data > 0 {
            file.resize(file.len().next_multiple_of(self.alignment), 0);
            // Data whose value tells its place.
            file.extend((0..=250u8).cycle().take(self.data));
        }
        file
    }
}

fn open(bytes: &[u8]) -> Result<Gguf, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.gguf");
    std::fs::write(&path, bytes).unwrap();
    // The map outlives the folder's entry.
    Gguf::open(&path)
}

fn refusal(bytes: &[u8]) -> String {
    let error = open(bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    error.to_string()
}

#[track_caller]
fn assert_says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

#[test]
fn every_version_and_type_reads_back() {
    for version in 1..=3 {
        let base = Builder { version, ..Builder::new() };
        let nested = [
            9u32.to_le_bytes().to_vec(),
            base.word(2),
            [4u32.to_le_bytes().to_vec(), base.word(1), 7u32.to_le_bytes().to_vec()].concat(),
            [8u32.to_le_bytes().to_vec(), base.word(1), base.text(b"x")].concat(),
        ]
        .concat();
        let file = base
            .str("general.architecture", "llama")
            .raw("u8", 0, &[250])
            .raw("i8", 1, &[0xff])
            .raw("u16", 2, &500u16.to_le_bytes())
            .raw("i16", 3, &(-500i16).to_le_bytes())
            .u32("u32", u32::MAX)
            .raw("i32", 5, &(-1i32).to_le_bytes())
            .raw("f32", 6, &0.1f32.to_le_bytes())
            .bool("yes", true)
            .raw("u64", 10, &u64::MAX.to_le_bytes())
            .raw("i64", 11, &i64::MIN.to_le_bytes())
            .raw("f64", 12, &0.1f64.to_le_bytes())
            .strings("strings", &["a", "", "ccc"])
            .i32s("numbers", &[1, -2, 3])
            .raw("nested", 9, &nested)
            .tensor("t", &[32, 2], 3, 0)
            .tensor("u", &[3], 0, 64)
            .data(76);
        let gguf = open(&file.bytes()).unwrap();
        assert_eq!(gguf.version(), version);
        assert_eq!(gguf.architecture().unwrap(), "llama");
        assert_eq!(gguf.metadata("u8"), Some(&Value::Unsigned(250)));
        assert_eq!(gguf.metadata("i8"), Some(&Value::Signed(-1)));
        assert_eq!(gguf.metadata("u16"), Some(&Value::Unsigned(500)));
        assert_eq!(gguf.metadata("i16"), Some(&Value::Signed(-500)));
        assert_eq!(gguf.u32("u32").unwrap(), Some(u32::MAX));
        assert_eq!(gguf.u32("absent").unwrap(), None);
        assert_eq!(gguf.f32("f32").unwrap(), Some(0.1));
        assert_eq!(gguf.f32("f64").unwrap(), Some(0.1));
        assert_eq!(gguf.bool("yes").unwrap(), Some(true));
        assert_eq!(gguf.metadata("u64"), Some(&Value::Unsigned(u64::MAX)));
        assert_eq!(gguf.metadata("i64"), Some(&Value::Signed(i64::MIN)));
        let strings: Vec<&[u8]> = gguf.strings("strings").unwrap().unwrap().collect();
        assert_eq!(strings, [&b"a"[..], b"", b"ccc"]);
        assert_eq!(gguf.integers("numbers").unwrap(), Some(vec![1, -2, 3]));
        assert_says(&gguf.u32("i32").unwrap_err().to_string(), &["i32", "-1", "4294967295"]);
        assert_says(&gguf.str("u32").unwrap_err().to_string(), &["u32", "string"]);

        let t = gguf.tensor("t").unwrap();
        assert_eq!((t.ty, t.len, t.elements()), (GgmlType::Q4_1, 40, 64));
        assert_eq!(t.offset % 32, 0);
        assert_eq!(gguf.data(t).unwrap(), (0..40).collect::<Vec<u8>>());
        assert_eq!(gguf.data(gguf.tensor("u").unwrap()).unwrap(), (64..76).collect::<Vec<u8>>());
        assert_eq!(gguf.tensors().len(), 2);
    }
}

#[test]
fn default_model_has_the_known_tensors() {
    let gguf = Gguf::open(default_model()).unwrap();
    assert_eq!(gguf.architecture().unwrap(), "llama");
    assert_eq!(gguf.u32("llama.context_length").unwrap(), Some(8192));
    assert_eq!(gguf.strings("tokenizer.ggml.tokens").unwrap().unwrap().len(), 49152);
    let count = |ty| gguf.tensors().filter(|t| t.ty == ty).count();
    assert_eq!((count(GgmlType::Q4_1), count(GgmlType::F32), count(GgmlType::Q8_0)), (210, 61, 1));
    // The file ends where its last tensor ends.
    let end = gguf.tensors().map(|t| t.offset + t.len).max();
    assert_eq!(end, Some(98_362_432));
}

#[test]
fn g03_unsupported_tensor_types_are_named_before_loading() {
    let bytes = std::fs::read(default_model()).unwrap();
    for (id, name) in [(20u32, "IQ4_NL"), (39, "MXFP4"), (255, "unknown 255")] {
        let mut patched = bytes.clone();
        patched[1_769_899..1_769_903].copy_from_slice(&id.to_le_bytes());
        // Opening works: the detector needs the tokenizer only.
        let gguf = open(&patched).unwrap();
        assert!(gguf.strings("tokenizer.ggml.tokens").unwrap().is_some());
        let refused: Vec<String> = gguf
            .tensors()
            .filter_map(|tensor| tensor.supported().err())
            .map(|error| error.to_string())
            .collect();
        let [message] = refused.as_slice() else { panic!("{refused:?}") };
        assert_says(message, &["blk.0.attn_k.weight", name, "Q4_1", "Q6_K", "BF16"]);
        let tensor = gguf.tensor("blk.0.attn_k.weight").unwrap();
        assert!(gguf.data(tensor).is_err());
    }
}

#[test]
fn g08_damaged_gguf_files_are_named() {
    let pointer = "version https://git-lfs.example/spec/v1\n\
                   oid sha256:b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53\n\
                   size 98362432\n";
    assert_says(&refusal(pointer.as_bytes()), &["Git LFS pointer", "98362432"]);
    assert_says(&refusal(b""), &["empty", "0 bytes"]);
    assert_says(&refusal(b"GG"), &["truncated: expected 4 bytes, have 2 bytes"]);
    assert_says(&refusal(b"PK\x03\x04aaaa"), &["not a GGUF file", "PK\\x03\\x04"]);
    let mut file = Builder::new().bytes();
    file[4] = 4;
    assert_says(&refusal(&file), &["version 4", "1 to 3"]);
    file[4..8].copy_from_slice(&3u32.to_be_bytes());
    assert_says(&refusal(&file), &["big-endian"]);

    let bytes = std::fs::read(default_model()).unwrap();
    assert_says(
        &refusal(&bytes[..50_000_000]),
        &["truncated: expected 98362432 bytes, have 50000000 bytes"],
    );
    // Cuts inside the metadata and the tensor table.
    for cut in [5, 12, 23, 30, 1000, 100_000, 1_000_000, 1_769_900] {
        assert_says(&refusal(&bytes[..cut]), &["truncated: expected ", &format!("have {cut} ")]);
    }
    // A folder, and a file that is not there.
    assert!(Gguf::open("/").is_err());
    assert!(matches!(Gguf::open(Path::new("/nowhere.gguf")), Err(Error::Io { .. })));
}

/// Peak resident memory of this process in bytes.
fn peak_rss() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

#[test]
fn g09_crafted_counts_are_refused_fast_and_small() {
    let header = |tensors: u64, pairs: u64| {
        [&b"GGUF\x03\0\0\0"[..], &tensors.to_le_bytes(), &pairs.to_le_bytes()].concat()
    };
    let key = |length: u64| [header(0, 1), length.to_le_bytes().to_vec(), vec![b'k'; 100]].concat();
    let array = |ty: u32, count: u64| {
        let value = [ty.to_le_bytes().to_vec(), count.to_le_bytes().to_vec()].concat();
        Builder::new().raw("a", 9, &value).bytes()
    };
    // Arrays within arrays, 100,000 deep.
    let deep = [9u32.to_le_bytes().to_vec(), 1u64.to_le_bytes().to_vec()].concat().repeat(100_000);
    let huge = 1u64 << 40;
    let files = [
        (header(1 << 32, 1 << 32), "4294967296 "),
        (header(0, u64::MAX), "18446744073709551615 metadata pairs"),
        (header(u64::MAX, 0), "18446744073709551615 tensors"),
        (header(0, 60_000), "truncated"),
        (key(huge), "truncated"),
        (key(u64::MAX), "truncated"),
        (array(8, 1 << 32), "truncated"),
        (array(4, u64::MAX), "truncated"),
        (array(12, 1 << 61), "truncated"),
        (array(9, 1 << 40), "truncated"),
        (Builder::new().raw("a", 9, &deep).bytes(), "nested deeper than 4"),
        (Builder::new().raw("a", 13, &[0; 8]).bytes(), "type 13"),
        (Builder::new().raw("a", 7, &[2]).bytes(), "boolean 2"),
        (Builder::new().u32("a", 1).u32("a", 2).bytes(), "a appears twice"),
        (Builder::new().u32("general.alignment", 0).bytes(), "general.alignment"),
        (Builder::new().u32("general.alignment", 48).bytes(), "general.alignment"),
        (Builder::new().tensor("t", &[huge, huge], 0, 0).bytes(), "2^64 values"),
        (Builder::new().tensor("t", &[1 << 62], 0, 0).bytes(), "2^64 bytes"),
        (Builder::new().tensor("t", &[1 << 60], 0, 0).bytes(), "truncated: expected 4611686"),
        (Builder::new().tensor("t", &[32; 5], 0, 0).bytes(), "5 dimensions"),
        (Builder::new().tensor("t", &[0, 3], 0, 0).bytes(), "dimension of 0"),
        (Builder::new().tensor("t", &[33], 3, 0).bytes(), "multiple of 32"),
        (Builder::new().tensor("t", &[1], 0, 8).data(64).bytes(), "multiple of 32"),
        (Builder::new().tensor("t", &[1], 0, u64::MAX - 31).data(64).bytes(), "truncated"),
        (
            Builder::new().tensor("t", &[1], 0, 0).tensor("t", &[1], 0, 0).data(64).bytes(),
            "t appears twice",
        ),
    ];
    // Other tests of this process allocate too, so the measurement is made in one of its own.
    if std::env::var_os("G09_ALONE").is_none() {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "gguf::g09_crafted_counts_are_refused_fast_and_small"])
            .env("G09_ALONE", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let start = std::time::Instant::now();
    for (bytes, expected) in &files {
        assert_says(&refusal(bytes), &[expected]);
    }
    assert!(start.elapsed().as_secs_f64() < 1.0, "took {:?}", start.elapsed());
    if let Some(peak) = peak_rss() {
        assert!(peak < 100_000_000, "peak resident memory {peak} bytes");
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_and_any_damage_are_answered_without_panic(
        noise in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        at in 0usize..500,
        cut in 0usize..600,
    ) {
        let _ = open(&noise);
        let mut file = Builder::new()
            .str("general.architecture", "llama")
            .strings("strings", &["a", "bb"])
            .i32s("numbers", &[1, 2])
            .tensor("t", &[32, 2], 3, 0)
            .tensor("u", &[3], 0, 64)
            .data(76)
            .bytes();
        for (index, byte) in noise.iter().take(8).enumerate() {
            let place = (at + index) % file.len();
            file[place] ^= byte;
        }
        file.truncate(cut);
        if let Ok(gguf) = open(&file) {
            for tensor in gguf.tensors() {
                let _ = gguf.data(tensor);
            }
        }
    }
}
