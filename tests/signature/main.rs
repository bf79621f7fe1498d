//! Signed reports: a document that another implementation signed, and everything that must not
//! pass for one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use greenmark::prf::Key;
use greenmark::signature::{PublicKey, SigningKey, sign, verify};
use greenmark::{Error, ErrorKind};
use serde_json::{Value, json};

/// Written by tools/signed-report-vector with the Python package `cryptography`.
const VECTOR: &str = include_str!("../../data/vectors/signed_report.json");
/// 2026-11-30T09:53:23Z.
const TIME: u64 = 1_796_032_403;

fn time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(TIME)
}

/// The key of the vector: the bytes 0 to 31.
fn key() -> SigningKey {
    let mut bytes = [0; 32];
    for (byte, value) in bytes.iter_mut().zip(0..) {
        *byte = value;
    }
    SigningKey::from_key(&Key::from_bytes(bytes))
}

fn vector() -> Value {
    serde_json::from_str(VECTOR).unwrap()
}

/// The message of a refusal, which must be the caller's to mend.
fn refusal(text: &str) -> String {
    let error = verify(text).unwrap_err();
    assert!(matches!(error, Error::Document { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Input);
    error.to_string()
}

#[test]
fn a_document_signed_elsewhere_verifies() {
    let verified = verify(VECTOR).unwrap();
    let public = "1851a67bbae37abc55d95e98968d69b939462f77347ae2128b55629f8e17d95f";
    assert_eq!(verified.public_key.to_string(), public);
    assert_eq!(key().public().to_string(), public);
    assert_eq!(verified.signed_at, time());
    assert_eq!(verified.signed_at_text(), "2026-11-30T09:53:23Z");
    let mut report = vector();
    report.as_object_mut().unwrap().shift_remove("signature").unwrap();
    assert_eq!(verified.report, report);
}

#[test]
fn signing_gives_the_bytes_of_the_other_implementation() {
    let mut document = vector();
    let expected = document.as_object_mut().unwrap().shift_remove("signature").unwrap();
    let signed = sign(&key(), document.clone(), time()).unwrap();
    assert_eq!(signed["signature"], expected);
    // The order of the fields stays and the signature is the last.
    let names: Vec<&String> = signed.as_object().unwrap().keys().collect();
    let before: Vec<&String> = document.as_object().unwrap().keys().collect();
    assert_eq!(names[..before.len()], before);
    assert_eq!(names[before.len()..], ["signature"]);
    // Fractions of a second are no part of it.
    let later = sign(&key(), document, time() + Duration::from_millis(999)).unwrap();
    assert_eq!(later, signed);
}

#[test]
fn white_space_and_the_order_of_fields_are_free() {
    let compact = serde_json::to_string(&vector()).unwrap();
    assert_ne!(compact, VECTOR);
    assert_eq!(verify(&compact).unwrap(), verify(VECTOR).unwrap());

    let mut fields = vector().as_object().unwrap().clone();
    let names: Vec<String> = fields.keys().rev().cloned().collect();
    let mut reversed = serde_json::Map::new();
    for name in names {
        let value = fields.shift_remove(&name).unwrap();
        reversed.insert(name, value);
    }
    let reversed = serde_json::to_string(&Value::Object(reversed)).unwrap();
    assert!(reversed.starts_with("{\"signature\""));
    verify(&reversed).unwrap();
    // Other spellings of the same values.
    verify(&VECTOR.replace("\"watermarked\"", "\"\\u0077atermarked\"")).unwrap();
    verify(&VECTOR.replace("3.167e-05", "0.00003167")).unwrap();
}

/// Every value of a document, changed; with the place of each change.
fn changes(value: &Value) -> Vec<(String, Value)> {
    match value {
        Value::Object(fields) => {
            let mut all = Vec::new();
            for (name, inner) in fields {
                for (place, changed) in changes(inner) {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), changed);
                    all.push((format!("/{name}{place}"), Value::Object(fields)));
                }
                let mut without = fields.clone();
                without.shift_remove(name);
                all.push((format!("/{name} removed"), Value::Object(without)));
                let mut renamed = fields.clone();
                let value = renamed.shift_remove(name).unwrap();
                renamed.insert(format!("{name}x"), value);
                all.push((format!("/{name} renamed"), Value::Object(renamed)));
            }
            let mut more = fields.clone();
            more.insert("added".to_owned(), Value::Null);
            all.push((" with a field more".to_owned(), Value::Object(more)));
            all
        }
        Value::Array(items) => {
            let mut all = Vec::new();
            for (index, inner) in items.iter().enumerate() {
                for (place, changed) in changes(inner) {
                    let mut items = items.clone();
                    items[index] = changed;
                    all.push((format!("/{index}{place}"), Value::Array(items)));
                }
            }
            let mut swapped = items.clone();
            swapped.swap(0, 1);
            all.push((" swapped".to_owned(), Value::Array(swapped)));
            all
        }
        Value::String(text) => {
            let mut text: Vec<char> = text.chars().collect();
            let last = text.len() - 1;
            text[last] = if text[last] == '0' { '1' } else { '0' };
            vec![(String::new(), Value::String(text.into_iter().collect()))]
        }
        Value::Number(number) => {
            let real = number.as_f64().unwrap();
            // The next double, so that rounding would show.
            let next = if real == 0.0 { 1.0 } else { f64::from_bits(real.to_bits() - 1) };
            vec![(String::new(), json!(next))]
        }
        Value::Bool(value) => vec![(String::new(), json!(!value))],
        Value::Null => vec![(String::new(), json!(false))],
    }
}

#[test]
fn every_change_is_found() {
    let changes = changes(&vector());
    // Values, names removed and names changed, at the top, in the lists and in the signature.
    assert!(changes.len() > 70, "{}", changes.len());
    for (place, changed) in changes {
        let text = serde_json::to_string(&changed).unwrap();
        let message = verify(&text).map_or_else(|error| error.to_string(), |_| String::new());
        assert!(!message.is_empty(), "a change of {place} passes");
        if place == "/z" || place == "/names/ö" || place == "/numbers/5" {
            assert!(message.contains("the signature is not valid"), "{place}: {message}");
        }
    }
    let other_time = VECTOR.replace("09:53:23Z", "09:53:24Z");
    assert!(refusal(&other_time).contains("the signature is not valid"));
}

#[test]
fn another_key_does_not_verify() {
    let other = SigningKey::from_key(&Key::from_bytes([7; 32]));
    assert_ne!(other.public(), key().public());
    let public = key().public().to_string();
    let swapped = VECTOR.replace(&public, &other.public().to_string());
    assert!(refusal(&swapped).contains("the signature is not valid"));
}

#[test]
fn each_refusal_says_what_does_not_hold() {
    let without = VECTOR.replace("\"signature\"", "\"signatures\"");
    assert!(refusal(&without).contains("no field `signature`"));
    assert!(refusal(&format!("{VECTOR} {{}}")).contains("not one JSON value"));
    assert!(refusal("").contains("not one JSON value"));
    assert!(refusal("[1]").contains("no JSON object"));
    let twice = VECTOR.replace("\"yes\": true", "\"yes\": true, \"yes\": true");
    assert!(refusal(&twice).contains("`yes` twice in one object"));
    let deep_twice = VECTOR.replace("\"algorithm\"", "\"canonical\": 1, \"algorithm\"");
    assert!(refusal(&deep_twice).contains("`canonical` twice in one object"));
    let huge = VECTOR.replace("9007199254740992", "9007199254740993");
    assert!(refusal(&huge).contains("the number at /largest is beyond 2^53"));
    let huge = VECTOR.replace("9007199254740992", "100000000000000000000000");
    assert!(refusal(&huge).contains("the number at /largest is beyond 2^53"));
    for (old, new, says) in [
        ("\"Ed25519\"", "\"none\"", "signature.algorithm is not Ed25519"),
        ("\"RFC 8785\"", "\"JSON\"", "signature.canonical is not RFC 8785"),
        ("09:53:23Z", "09:53:23.0Z", "signature.signed_at is not a time"),
        ("\"1851a6", "\"zz51a6", "signature.public_key is not"),
        ("\"value\": \"5f", "\"value\": \"", "signature.value is not 128"),
        ("\"value\": \"5f", "\"value\": \"5F", "signature.value is not 128 lower-case"),
        ("\"value\"", "\"key_id\": \"a\", \"value\"", "signature.key_id is no field"),
    ] {
        let text = VECTOR.replacen(old, new, 1);
        assert_ne!(text, VECTOR, "{old}");
        let message = refusal(&text);
        assert!(message.contains(says), "{message}");
    }
    let nested = format!("{{\"a\":{}{},\"signature\":{{}}}}", "[".repeat(110), "]".repeat(110));
    assert!(refusal(&nested).contains("nested above 100 levels"));
    // Readers of JSON give up before their stack does.
    assert!(refusal(&"[".repeat(200_000)).contains("not one JSON value"));
}

#[test]
fn keys_of_small_order_and_other_spellings_of_a_signature_are_refused() {
    // Under the identity as key, an all-zero signature would fit any document for some readers.
    let identity = format!("01{}", "00".repeat(31));
    assert!(identity.parse::<PublicKey>().is_err());
    let text = VECTOR.replace(&key().public().to_string(), &identity);
    assert!(refusal(&text).contains("signature.public_key"));

    // S and S plus the order of the group say the same to a reader that is not strict.
    let value = vector()["signature"]["value"].as_str().unwrap().to_owned();
    let order: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut carry = 0;
    let mut other = value[..64].to_owned();
    for (index, more) in order.iter().enumerate() {
        let digits = &value[64 + 2 * index..66 + 2 * index];
        let sum = u16::from_str_radix(digits, 16).unwrap() + u16::from(*more) + carry;
        write!(other, "{:02x}", sum & 255).unwrap();
        carry = sum >> 8;
    }
    assert_eq!(carry, 0);
    assert!(refusal(&VECTOR.replace(&value, &other)).contains("the signature is not valid"));
}

#[test]
fn what_cannot_be_signed_is_refused() {
    let refused = |document: Value| sign(&key(), document, time()).unwrap_err().to_string();
    assert!(refused(json!([1])).contains("no JSON object"));
    assert!(refused(json!({"signature": 1})).contains("has a field `signature` already"));
    let seed = json!({"generation": {"seeds": [1, 9_007_199_254_740_993_u64]}});
    assert!(refused(seed).contains("the number at /generation/seeds/1 is beyond 2^53"));
    assert!(refused(json!({"a": 1e300})).contains("the number at /a is beyond 2^53"));
    assert!(refused(json!({"a": -9_007_199_254_740_993_i64})).contains("/a is beyond 2^53"));
    let before = sign(&key(), json!({}), SystemTime::UNIX_EPOCH - Duration::from_secs(1));
    assert!(before.unwrap_err().to_string().contains("a time from 1970 to 9999"));
    let signed = sign(&key(), json!({}), time()).unwrap();
    assert_eq!(verify(&signed.to_string()).unwrap().report, json!({}));
    assert!(sign(&key(), signed, time()).unwrap_err().to_string().contains("already"));
}

#[test]
fn numbers_survive_their_way_through_text() {
    // Doubles that a reader of few digits would move.
    let numbers = [0.1 + 0.2, 4.623e-11, 5e-324, 2.225_073_858_507_201e-308, 1.0 / 3.0, -1e-300];
    let document = json!({ "numbers": numbers });
    for text in [
        sign(&key(), document.clone(), time()).unwrap().to_string(),
        serde_json::to_string_pretty(&sign(&key(), document.clone(), time()).unwrap()).unwrap(),
    ] {
        assert_eq!(verify(&text).unwrap().report, document);
    }
}

#[test]
fn secrets_do_not_print() {
    let key = key();
    let secret = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    let printed = format!("{key:?}");
    assert_eq!(printed, format!("SigningKey({})", key.public()));
    assert!(!printed.contains(secret));
    // The public half reads back.
    assert_eq!(key.public().to_string().parse::<PublicKey>().unwrap(), key.public());
    assert!("00".parse::<PublicKey>().is_err());
    // No point of the curve.
    assert!(format!("02{}", "00".repeat(31)).parse::<PublicKey>().is_err());
}
