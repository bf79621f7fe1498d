//! The safetensors reader on crafted, damaged and real checkpoints.

use std::path::Path;

use greenmark::format::{Checkpoint, Dtype};
use greenmark::{Error, ErrorKind};
use proptest::prelude::*;

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

fn open(bytes: &[u8]) -> Result<Checkpoint, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    std::fs::write(&path, bytes).unwrap();
    Checkpoint::open(&path)
}

#[track_caller]
fn assert_refused(bytes: &[u8], parts: &[&str]) {
    let error = open(bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    let message = error.to_string();
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

const GOOD: &str = r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]},"c":{"dtype":"F16","shape":[],"data_offsets":[14,16]},"d":{"dtype":"F32","shape":[0,4],"data_offsets":[16,16]}}"#;

#[test]
fn a_file_reads_back() {
    let data: Vec<u8> = (0..16).collect();
    let checkpoint = open(&file(GOOD, &data)).unwrap();
    assert_eq!(checkpoint.names().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    let a = checkpoint.tensor("a").unwrap();
    assert_eq!((a.dtype, a.shape, a.data), (Dtype::F32, &[2, 1][..], &data[..8]));
    let b = checkpoint.tensor("b").unwrap();
    assert_eq!((b.dtype, b.shape, b.data), (Dtype::BF16, &[3][..], &data[8..14]));
    let c = checkpoint.tensor("c").unwrap();
    assert_eq!((c.dtype, c.shape, c.data), (Dtype::F16, &[][..], &data[14..]));
    assert_eq!(checkpoint.tensor("d").unwrap().data, [0u8; 0]);
    assert!(checkpoint.tensor("__metadata__").is_none());
}

#[test]
fn the_small_models_open_as_folders() {
    for family in ["llama", "llama3-rope", "mistral", "qwen2", "qwen3"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/models").join(family);
        let checkpoint = Checkpoint::open(&folder).unwrap();
        assert!(checkpoint.names().len() > 5);
        for name in checkpoint.names() {
            let tensor = checkpoint.tensor(name).unwrap();
            assert_eq!(
                tensor.data.len(),
                tensor.shape.iter().product::<usize>() * tensor.dtype.size()
            );
        }
        assert!(checkpoint.tensor("model.embed_tokens.weight").is_some());
    }
}

#[test]
fn g08_damaged_safetensors_files_are_named() {
    let pointer = "version https://git-lfs.example/spec/v1\noid sha256:00\nsize 269060552\n";
    assert_refused(pointer.as_bytes(), &["Git LFS pointer", "269060552"]);
    assert_refused(b"", &["empty"]);
    assert_refused(b"abc", &["truncated: expected 8 bytes, have 3 bytes"]);
    let whole = file(GOOD, &[0; 16]);
    let size = whole.len();
    assert_refused(
        &whole[..size - 1],
        &[&format!("truncated: expected {size} bytes, have {} bytes", size - 1)],
    );
    let header_end = size - 16;
    assert_refused(
        &whole[..20],
        &[&format!("truncated: expected {header_end} bytes, have 20 bytes")],
    );
    assert_refused(
        &[u64::MAX.to_le_bytes().to_vec(), vec![0; 40]].concat(),
        &["header of 18446744073709551615 bytes"],
    );
    assert_refused(&file("[1]", &[]), &["not a JSON object"]);
    assert_refused(&file(&"[".repeat(100_000), &[]), &["not a JSON object"]);
}

#[test]
fn g09_contradictory_headers_are_refused() {
    let one = |text: &str| file(&format!("{{\"t\":{text}}}"), &[0; 64]);
    let cases: [(Vec<u8>, &str); 9] = [
        (one(r#"{"dtype":"F32","shape":[2],"data_offsets":[0,9]}"#), "should have 8 bytes"),
        (one(r#"{"dtype":"F32","shape":[2],"data_offsets":[8,0]}"#), "should have 8 bytes"),
        (
            one(r#"{"dtype":"F32","shape":[1099511627776,1099511627776],"data_offsets":[0,4]}"#),
            "2^64 bytes",
        ),
        (
            one(
                r#"{"dtype":"F16","shape":[1152921504606846976],"data_offsets":[0,2305843009213693952]}"#,
            ),
            "truncated: expected 2305843009213694",
        ),
        (one(r#"{"dtype":"I8","shape":[2],"data_offsets":[0,2]}"#), "I8 of tensor t"),
        (one(r#"{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}"#), "tensor t"),
        (one(r#"{"dtype":"F32","shape":[2]}"#), "data_offsets"),
        (
            file(
                r#"{"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"u":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#,
                &[0; 64],
            ),
            "t and u overlap",
        ),
        (
            file(
                r#"{"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"t":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#,
                &[0; 64],
            ),
            "t appears twice",
        ),
    ];
    for (bytes, expected) in &cases {
        assert_refused(bytes, &[expected]);
    }
}

#[test]
fn shards_open_through_their_index_and_stay_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let header = |name: &str| {
        format!("{{\"{name}\":{{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}}}")
    };
    write("model-1.safetensors", &file(&header("a"), &[1; 4]));
    write("model-2.safetensors", &file(&header("b"), &[2; 4]));
    let index = |map: &str| {
        write("model.safetensors.index.json", format!("{{\"weight_map\":{map}}}").as_bytes());
        Checkpoint::open(folder.path())
    };
    let checkpoint = index(r#"{"a":"model-1.safetensors","b":"model-2.safetensors"}"#).unwrap();
    assert_eq!(checkpoint.tensor("a").unwrap().data, [1; 4]);
    assert_eq!(checkpoint.tensor("b").unwrap().data, [2; 4]);
    assert_eq!(checkpoint.files().len(), 2);

    for (map, expected) in [
        (r#"{"a":"../model-1.safetensors"}"#, "not a plain file name"),
        (r#"{"a":"/etc/passwd"}"#, "not a plain file name"),
        (r#"{"a":"x/model-1.safetensors"}"#, "not a plain file name"),
        (r#"{"a":".."}"#, "not a plain file name"),
        (r#"{"a":""}"#, "not a plain file name"),
        (r#"{"a":"model-2.safetensors"}"#, "tensor a is not in the shard"),
        (r#"{"a":"model-3.safetensors"}"#, "model-3.safetensors"),
        ("[1]", "not a checkpoint index"),
    ] {
        let message = index(map).unwrap_err().to_string();
        assert!(message.contains(expected), "{map}: {message}");
    }
    let empty = tempfile::tempdir().unwrap();
    let message = Checkpoint::open(empty.path()).unwrap_err().to_string();
    assert!(message.contains("neither model.safetensors nor"), "{message}");
}

proptest! {
    #[test]
    fn any_damage_is_answered_without_panic(
        at in 0usize..400,
        byte in any::<u8>(),
        cut in 0usize..420,
    ) {
        let mut bytes = file(GOOD, &[7; 16]);
        let place = at % bytes.len();
        bytes[place] = byte;
        bytes.truncate(cut);
        if let Ok(checkpoint) = open(&bytes) {
            for name in checkpoint.names() {
                let tensor = checkpoint.tensor(name).unwrap();
                let size = tensor.shape.iter().product::<usize>() * tensor.dtype.size();
                prop_assert_eq!(tensor.data.len(), size);
            }
        }
    }
}
