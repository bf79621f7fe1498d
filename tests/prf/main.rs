//! The bytes that every platform, thread count and build has to agree on.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "a test fails by panicking; its numbers are small and exact"
)]

use std::thread;

use greenmark::prf::{ChaCha8Stream, ContextSeeder, DRAW_TAG, Key, PrfTag, draw_seed, hex};
use proptest::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};

fn vectors(name: &str) -> Value {
    let path = format!("{}/data/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

fn key(value: &Value) -> Key {
    Key::from_hex(value.as_str().unwrap()).unwrap()
}

fn check_green_list(case: &Value) {
    let tag = PrfTag::new("greenmark/green-list/1");
    let seed = ContextSeeder::new(&key(&case["key"]), tag).seed(&ids(&case["context"]));
    assert_eq!(hex(&seed), case["seed"].as_str().unwrap());
    let vocab = case["vocab"].as_u64().unwrap() as usize;
    let threshold = case["threshold"].as_u64().unwrap() as u32;
    let stream = ChaCha8Stream::new(&seed);
    let words = stream.words(vocab);
    assert_eq!(&words[..4], ids(&case["first_words"]));
    let green: Vec<u32> = (0..vocab as u32).filter(|&id| words[id as usize] < threshold).collect();
    assert_eq!(green.len() as u64, case["green_count"].as_u64().unwrap());
    let first = ids(&case["first_green"]);
    assert_eq!(&green[..first.len()], first);
    let last = ids(&case["last_green"]);
    assert_eq!(&green[green.len() - last.len()..], last);
    let mut hash = Sha256::new();
    for id in &green {
        hash.update(id.to_le_bytes());
    }
    assert_eq!(hex(&hash.finalize()), case["sha256_of_sorted_u32le"].as_str().unwrap());
    let mut single = stream.clone();
    for (id, word) in case["word_of"].as_object().unwrap() {
        assert_eq!(u64::from(single.word(id.parse().unwrap())), word.as_u64().unwrap());
    }
}

#[test]
fn w04_green_lists_equal_the_golden_vectors() {
    let vectors = vectors("green_list.json");
    let cases = vectors["green_lists"].as_array().unwrap();
    assert_eq!(cases.len(), 8);
    cases.iter().for_each(check_green_list);
}

#[test]
fn w04_green_lists_are_the_same_on_sixteen_threads() {
    let vectors = vectors("green_list.json");
    let cases = vectors["green_lists"].as_array().unwrap();
    thread::scope(|scope| {
        for _ in 0..2 {
            for case in cases {
                scope.spawn(move || check_green_list(case));
            }
        }
    });
}

#[test]
fn w02_a_longer_vocabulary_does_not_change_the_list() {
    let stream = ChaCha8Stream::new(&[7; 32]);
    assert_eq!(stream.words(49_152), stream.words(49_153)[..49_152]);
}

#[test]
fn draw_noise_equals_the_golden_vectors() {
    let vectors = vectors("draw.json");
    let draws = vectors["draws"].as_array().unwrap();
    assert_eq!(draws.len(), 24);
    for case in draws {
        let seed = draw_seed(
            DRAW_TAG,
            case["seed"].as_str().unwrap().parse().unwrap(),
            case["sample"].as_u64().unwrap() as u32,
            case["step"].as_u64().unwrap(),
        );
        assert_eq!(hex(&seed), case["noise_seed"].as_str().unwrap());
        let mut stream = ChaCha8Stream::new(&seed);
        for (id, word) in case["words"].as_object().unwrap() {
            let word: u64 = word.as_str().unwrap().parse().unwrap();
            assert_eq!(stream.word_pair(id.parse().unwrap()), word);
        }
    }
}

proptest! {
    #[test]
    fn single_blocks_equal_the_library_stream(seed in any::<[u8; 32]>(), at in 0usize..5000) {
        let mut single = ChaCha8Stream::new(&seed);
        let words = single.words(at + 2);
        prop_assert_eq!(single.word(at as u64), words[at]);
        let pair = u64::from(words[at / 2 * 2]) | u64::from(words[at / 2 * 2 + 1]) << 32;
        prop_assert_eq!(single.word_pair(at as u64 / 2), pair);
    }
}

#[test]
fn a_context_is_hashed_with_its_length() {
    let seeder = ContextSeeder::new(&Key::from_bytes([1; 32]), PrfTag::new("t"));
    assert_ne!(seeder.seed(&[]), seeder.seed(&[0]));
    assert_ne!(seeder.seed(&[0, 1]), seeder.seed(&[1, 0]));
}

mod key_files {
    use super::*;
    use std::fs;

    const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    #[test]
    fn a_written_key_reads_back_and_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let key = Key::from_hex(HEX).unwrap();
        key.write_new(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{HEX}\n"));
        assert_eq!(Key::read(&path).unwrap().fingerprint(), key.fingerprint());
        let error = Key::generate().unwrap().write_new(&path).unwrap_err();
        assert!(error.to_string().contains("create key file"), "{error}");
        assert_eq!(Key::read(&path).unwrap().fingerprint(), key.fingerprint());
    }

    #[test]
    fn the_fingerprint_is_the_documented_hash() {
        let key = Key::from_hex(HEX).unwrap();
        let mut hash = Sha256::new();
        hash.update(b"greenmark/key-fingerprint/1");
        hash.update((0u8..32).collect::<Vec<_>>());
        assert_eq!(key.fingerprint().to_string(), hex(&hash.finalize()[..8]));
    }

    #[test]
    #[cfg(unix)]
    fn a_key_that_others_can_read_is_refused_with_the_command() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        Key::generate().unwrap().write_new(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = Key::read(&path).unwrap_err().to_string();
        assert!(error.contains("mode 0644") && error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn neither_debug_nor_errors_show_the_key() {
        let key = Key::from_hex(HEX).unwrap();
        assert!(!format!("{key:?}").contains("0001020304"));
        let wrong = HEX.replace("1f", "zz");
        let error = Key::from_hex(&wrong).unwrap_err().to_string();
        assert!(error.contains("64 hexadecimal digits") && !error.contains("00010203"), "{error}");
        assert!(Key::from_hex(&HEX[1..]).is_err());
        assert!(Key::from_hex(&format!("{HEX}\n\n")).is_err());
        assert!(Key::from_hex(&format!(" {HEX}")).is_err());
    }

    #[test]
    fn generated_keys_differ() {
        let a = Key::generate().unwrap().fingerprint();
        let b = Key::generate().unwrap().fingerprint();
        assert_ne!(a, b);
    }
}
