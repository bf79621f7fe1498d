//! Signed reports: an Ed25519 signature over the canonical form of a JSON document, by which a
//! reader can prove later what a service said.
//!
//! Signed are the ASCII text `greenmark/signed-report/1`, a line feed, and the RFC 8785 form of
//! the document with its `signature` field but without `signature.value`; so algorithm, key and
//! time are covered, and white space and the order of fields are free. A valid signature says
//! that the holder of the key signed these values. It does not say who that is: the public key
//! in the document is its own claim, to be compared with one from elsewhere. The time is the
//! signer's own clock.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use ed25519_dalek::Signer;
use secrecy::zeroize::Zeroizing;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::prf::{Key, PrfTag, from_hex, hex};

const SEED_TAG: PrfTag = PrfTag::new("greenmark/signing/1");
const DOCUMENT_TAG: &[u8] = b"greenmark/signed-report/1\n";
const FIELD: &str = "signature";
const ALGORITHM: &str = "Ed25519";
const CANONICAL: &str = "RFC 8785";
const WHAT: &str = "the signed document";
/// RFC 8785 knows doubles only: up to here they hold every whole number.
const LARGEST: u64 = 1 << 53;
/// Levels of a document; JSON readers stop soon above.
const DEEPEST: usize = 100;
/// The last second that four digits of a year can say.
const LAST_SECOND: u64 = 253_402_300_799;

/// The secret half: signs.
pub struct SigningKey(ed25519_dalek::SigningKey);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public())
    }
}

impl SigningKey {
    /// The signing key of a key file. Its seed is SHA-256 of a tag and the key, so that a key
    /// that also marks gives nothing away.
    #[must_use]
    pub fn from_key(key: &Key) -> Self {
        let digest =
            Sha256::new().chain_update(SEED_TAG.as_bytes()).chain_update(key.expose()).finalize();
        let seed = Zeroizing::new(<[u8; 32]>::from(digest));
        Self(ed25519_dalek::SigningKey::from_bytes(&seed))
    }

    /// The half that verifies, and that everyone may have.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }
}

/// The public half: verifies. 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(ed25519_dalek::VerifyingKey);

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(self.0.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = Error;

    /// # Errors
    /// [`Error::Parameter`] for another form and for numbers that are no key.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = |found: &str| {
            Error::parameter("public key", found, "the 64 hexadecimal digits of an Ed25519 key")
        };
        let bytes =
            from_hex::<32>(text).ok_or_else(|| wrong("text that is not 64 hexadecimal digits"))?;
        ed25519_dalek::VerifyingKey::from_bytes(&bytes)
            .ok()
            // Under a key of small order one signature fits many documents.
            .filter(|key| !key.is_weak())
            .map(Self)
            .ok_or_else(|| wrong(text))
    }
}

/// A document whose signature holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The key that signed, as the document names it.
    pub public_key: PublicKey,
    /// When, by the signer's clock; whole seconds.
    pub signed_at: SystemTime,
    /// The document without its `signature`.
    pub report: Value,
}

impl Verified {
    /// The time as the document says it, for example `2026-11-30T09:53:23Z`.
    #[must_use]
    pub fn signed_at_text(&self) -> String {
        humantime::format_rfc3339_seconds(self.signed_at).to_string()
    }
}

/// `document`, a JSON object, with a last field `signature`. The order of its fields stays.
///
/// # Errors
/// [`Error::Document`] for what is no object, has a `signature` already, is nested above 100
/// levels, or holds a number beyond 2^53, which the canonical form cannot carry exactly;
/// [`Error::Parameter`] for a time outside the years 1970 to 9999.
pub fn sign(key: &SigningKey, document: Value, time: SystemTime) -> Result<Value> {
    let refuse = |problem: &str| Error::document(WHAT, None, problem, "sign a report as it is");
    let Value::Object(mut fields) = document else { return Err(refuse("no JSON object")) };
    if fields.contains_key(FIELD) {
        return Err(refuse("it has a field `signature` already"));
    }
    let signature = json!({
        "algorithm": ALGORITHM,
        "canonical": CANONICAL,
        "public_key": key.public().to_string(),
        "signed_at": time_text(time)?,
    });
    fields.insert(FIELD.to_owned(), signature);
    let mut document = Value::Object(fields);
    check(&document, &mut String::new(), 0)?;
    let value = hex(&key.0.sign(&signed_bytes(&document)?).to_bytes());
    if let Some(signature) = document.get_mut(FIELD).and_then(Value::as_object_mut) {
        signature.insert("value".to_owned(), Value::String(value));
    }
    Ok(document)
}

/// Checks a signed document.
///
/// # Errors
/// [`Error::Document`] naming what does not hold: not one JSON object, a name twice in an object,
/// a number beyond 2^53, no signature, a signature of another form, or one that is not valid.
pub fn verify(text: &str) -> Result<Verified> {
    let Strict(mut document) = serde_json::from_str(text).map_err(|error| {
        refuse(format!("not one JSON value with each name once ({error})"), "give it as it was")
    })?;
    check(&document, &mut String::new(), 0)?;
    let Some(fields) = document.as_object_mut() else {
        return Err(refuse("no JSON object", "give the signed report"));
    };
    let block = match fields.get_mut(FIELD) {
        Some(Value::Object(block)) => block,
        Some(_) => return Err(form("signature", "an object")),
        None => {
            return Err(refuse(
                "it has no field `signature`",
                "nothing is proved by it: ask for the signed report",
            ));
        }
    };
    // The signature does not cover its own value, which therefore has one spelling only.
    let value = block.remove("value");
    let value = value
        .as_ref()
        .and_then(Value::as_str)
        .filter(|digits| !digits.bytes().any(|digit| digit.is_ascii_uppercase()))
        .and_then(from_hex::<64>)
        .ok_or_else(|| form("signature.value", "128 lower-case hexadecimal digits"))?;
    let (public_key, signed_at) = read_block(block)?;
    let signature = ed25519_dalek::Signature::from_bytes(&value);
    public_key.0.verify_strict(&signed_bytes(&document)?, &signature).map_err(|_| {
        refuse(
            "the signature is not valid",
            "the document was changed after it was signed, or another key signed it: ask for the \
             original",
        )
    })?;
    if let Some(fields) = document.as_object_mut() {
        fields.shift_remove(FIELD);
    }
    Ok(Verified { public_key, signed_at, report: document })
}

/// Key and time of a signature, whose every field is known.
fn read_block(block: &Map<String, Value>) -> Result<(PublicKey, SystemTime)> {
    const FIELDS: [&str; 4] = ["algorithm", "canonical", "public_key", "signed_at"];
    if let Some(unknown) = block.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(refuse(
            format!("signature.{unknown} is no field of a signature"),
            "a later version of wm may know it",
        ));
    }
    let field = |name: &str| block.get(name).and_then(Value::as_str);
    if field("algorithm") != Some(ALGORITHM) {
        return Err(form("signature.algorithm", ALGORITHM));
    }
    if field("canonical") != Some(CANONICAL) {
        return Err(form("signature.canonical", CANONICAL));
    }
    let public_key = field("public_key")
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| form("signature.public_key", "the 64 hexadecimal digits of a key"))?;
    let signed_at = field("signed_at")
        .and_then(time_of)
        .ok_or_else(|| form("signature.signed_at", "a time such as 2026-11-30T09:53:23Z"))?;
    Ok((public_key, signed_at))
}

fn refuse(problem: impl Into<String>, remedy: &str) -> Error {
    Error::document(WHAT, None, problem, remedy)
}

/// The refusal of a field of the signature that has another form.
fn form(field: &str, allowed: &str) -> Error {
    refuse(format!("{field} is not {allowed}"), "give the signed report as it was")
}

/// What the signature covers.
fn signed_bytes(document: &Value) -> Result<Vec<u8>> {
    let canonical = serde_json_canonicalizer::to_vec(document)
        .map_err(|error| Error::backend("writing JSON in canonical form", error))?;
    Ok([DOCUMENT_TAG, &canonical].concat())
}

/// Refuses what the canonical form would change. `path` names the place as a JSON pointer does.
fn check(value: &Value, path: &mut String, depth: usize) -> Result<()> {
    if depth > DEEPEST {
        return Err(refuse(format!("nested above {DEEPEST} levels"), "no report is"));
    }
    let mut inner = |name: &str, value: &Value| {
        let length = path.len();
        path.push('/');
        path.push_str(name);
        check(value, path, depth + 1)?;
        path.truncate(length);
        Ok(())
    };
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| inner(name, value)),
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(index, value)| inner(&index.to_string(), value))
        }
        Value::Number(number) => {
            let exact = match (number.as_u64(), number.as_i64()) {
                (Some(whole), _) => whole <= LARGEST,
                (None, Some(whole)) => whole.unsigned_abs() <= LARGEST,
                (None, None) => number.as_f64().is_some_and(|real| real.abs() <= LARGEST as f64),
            };
            if exact {
                return Ok(());
            }
            Err(refuse(
                format!("the number at {path} is beyond 2^53"),
                "canonical JSON cannot carry it exactly: write it as a string",
            ))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

fn time_text(time: SystemTime) -> Result<String> {
    let wrong = || Error::parameter("signing time", "another", "a time from 1970 to 9999");
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_err(|_| wrong())?.as_secs();
    if seconds > LAST_SECOND {
        return Err(wrong());
    }
    let whole = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    Ok(humantime::format_rfc3339_seconds(whole).to_string())
}

/// A time in the one form that [`sign`] writes.
fn time_of(text: &str) -> Option<SystemTime> {
    let time = humantime::parse_rfc3339(text).ok()?;
    (time_text(time).ok()? == text).then_some(time)
}

/// JSON in which no object has a name twice: readers disagree about what that means.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Strict(value)) = items.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            if fields.contains_key(&name) {
                return Err(A::Error::custom(format_args!("`{name}` twice in one object")));
            }
            let Strict(value) = entries.next_value()?;
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}
