//! `wm verify`: what a signed report proves, in words.

use std::path::Path;

use anyhow::Result;
use greenmark::Error;
use greenmark::document::sha256_hex;
use greenmark::signature::{PublicKey, Verified, verify};
use serde_json::{Value, json};

use crate::args::VerifyArgs;
use crate::exit::Exit;
use crate::output;
use crate::resolve::{read_input, read_text};

pub(crate) fn run(args: &VerifyArgs) -> Result<Exit> {
    let expected = args.public_key.as_deref().map(public_key).transpose()?;
    if args.file.as_os_str() == "-" && args.text.as_deref() == Some(Path::new("-")) {
        let allowed = "standard input once: name a file for the other";
        return Err(Error::parameter("-", "twice", allowed).into());
    }
    let verified = verify(&read_text(&args.file)?).map_err(|error| match error {
        Error::Document { offset, problem, remedy, .. } => {
            Error::file(&args.file, offset, problem, remedy)
        }
        other => other,
    })?;
    if let Some(expected) = expected {
        check_key(&args.file, &verified, expected)?;
    }
    if let Some(path) = &args.text {
        check_text(&args.file, &verified.report, path)?;
    }
    if args.json {
        output::json(&json!({
            "valid": true,
            "public_key": verified.public_key.to_string(),
            "public_key_is_expected": expected.map(|_| true),
            "signed_at": verified.signed_at_text(),
            "text_is_the_reports": args.text.as_ref().map(|_| true),
            "verdict": verified.report.get("verdict"),
            "z": verified.report.get("z"),
            "p_value": verified.report.get("p_value"),
            "log10_p": verified.report.get("log10_p"),
        }))?;
        return Ok(Exit::Success);
    }
    output::write(&words(args, &verified))?;
    Ok(Exit::Success)
}

/// A public key as digits, or the file that holds it.
fn public_key(given: &str) -> Result<PublicKey> {
    if let Ok(key) = given.parse() {
        return Ok(key);
    }
    let path = Path::new(given);
    if !path.exists() {
        let allowed = "64 hexadecimal digits, or a file that holds them";
        let found = "neither a key nor a file that is there";
        return Err(Error::parameter("public-key", found, allowed).into());
    }
    // The file may be a secret key that was named by mistake: nothing of it is repeated.
    read_text(path)?.trim().parse().map_err(|_| {
        let remedy = "`wm keygen FILE --public` prints the one of a signing key";
        Error::file(path, None, "not a public key", remedy).into()
    })
}

fn check_key(file: &Path, verified: &Verified, expected: PublicKey) -> Result<(), Error> {
    if verified.public_key == expected {
        return Ok(());
    }
    Err(Error::Mismatch {
        field: "public key",
        left_name: "--public-key".to_owned(),
        left: expected.to_string(),
        right_name: file.display().to_string(),
        right: verified.public_key.to_string(),
        remedy: "its signature is valid, but by another key: do not rely on it".to_owned(),
    })
}

fn check_text(file: &Path, report: &Value, text: &Path) -> Result<(), Error> {
    let found = sha256_hex(&read_input(text)?);
    match report.get("input_sha256").and_then(Value::as_str) {
        Some(expected) if expected == found => Ok(()),
        Some(expected) => Err(Error::Mismatch {
            field: "input_sha256",
            left_name: file.display().to_string(),
            left: expected.to_owned(),
            right_name: text.display().to_string(),
            right: found,
            remedy: "the report is about another text; of a document it is about the text that \
                     `wm extract` prints"
                .to_owned(),
        }),
        None => {
            let remedy = "a text cannot be held against it";
            Err(Error::file(file, None, "it has no field input_sha256", remedy))
        }
    }
}

fn words(args: &VerifyArgs, verified: &Verified) -> String {
    let mut lines = vec![
        format!("valid signature of {}", verified.signed_at_text()),
        format!("  key {}", verified.public_key),
    ];
    lines.push(if args.public_key.is_some() {
        "  the key is the expected one".to_owned()
    } else {
        "  the key is the document's own claim: compare it with the signer's (--public-key)"
            .to_owned()
    });
    lines.push(format!("  {}", verdict(&verified.report)));
    if args.text.is_some() {
        lines.push("  the text is the one that was judged".to_owned());
    }
    lines.push(String::new());
    lines.join("\n")
}

/// What the report concludes.
fn verdict(report: &Value) -> String {
    let Some(verdict) = report.get("verdict").and_then(Value::as_str) else {
        return "the document has no verdict".to_owned();
    };
    let number = |name: &str| report.get(name).and_then(Value::as_f64);
    let z = number("z").map_or_else(|| "none".to_owned(), |z| format!("{z:.2}"));
    let p = number("p_value").map_or_else(|| "below 1e-300".to_owned(), |p| format!("{p:.3e}"));
    let log10 = number("log10_p").map_or_else(|| "none".to_owned(), |p| format!("{p:.2}"));
    let words = greenmark::document::visible::one_line(&verdict.replace('_', " "));
    format!("z {z}  p {p}  log10 p {log10}  {words}")
}
