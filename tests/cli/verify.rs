//! `wm verify`, and the keys that sign.

use std::time::{Duration, SystemTime};

use greenmark::document::sha256_hex;
use greenmark::prf::Key;
use greenmark::signature::{SigningKey, sign};
use serde_json::{Value, json};

use crate::support::{KEY, Run, User, read};

/// The public half of [`KEY`].
const PUBLIC: &str = "1851a67bbae37abc55d95e98968d69b939462f77347ae2128b55629f8e17d95f";
const OTHER: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
const TEXT: &str = "It was the best of times.\n";

fn report() -> Value {
    json!({
        "verdict": "not_detected", "z": -0.5, "p_value": 0.6915, "log10_p": -0.1602,
        "input_sha256": sha256_hex(TEXT.as_bytes()),
    })
}

fn signed(report: Value) -> String {
    let key = SigningKey::from_key(&Key::from_hex(KEY).unwrap());
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_032_403);
    serde_json::to_string_pretty(&sign(&key, report, time).unwrap()).unwrap()
}

fn verify(user: &User, args: &[&str]) -> Run {
    user.run(&[&["verify", "report.json"][..], args].concat())
}

#[test]
fn verify_says_what_holds() {
    let user = User::new();
    user.file("report.json", signed(report()));
    user.file("text.txt", TEXT);
    insta::assert_snapshot!(verify(&user, &[]).block(), @r"
    exit code: 0
    ----- stdout -----
    valid signature of 2026-11-30T09:53:23Z
      key 1851a67bbae37abc55d95e98968d69b939462f77347ae2128b55629f8e17d95f
      the key is the document's own claim: compare it with the signer's (--public-key)
      z -0.50  p 6.915e-1  log10 p -0.16  not detected
    ----- stderr -----
    ");
    let run = verify(&user, &["--public-key", PUBLIC, "--text", "text.txt"]);
    insta::assert_snapshot!(run.block(), @r"
    exit code: 0
    ----- stdout -----
    valid signature of 2026-11-30T09:53:23Z
      key 1851a67bbae37abc55d95e98968d69b939462f77347ae2128b55629f8e17d95f
      the key is the expected one
      z -0.50  p 6.915e-1  log10 p -0.16  not detected
      the text is the one that was judged
    ----- stderr -----
    ");
    user.file("sign.pub", format!("{PUBLIC}\n"));
    let run = verify(&user, &["--public-key", "sign.pub", "--json"]);
    assert_eq!(
        run.json(),
        json!({
            "valid": true, "public_key": PUBLIC, "public_key_is_expected": true,
            "signed_at": "2026-11-30T09:53:23Z", "text_is_the_reports": null,
            "verdict": "not_detected", "z": -0.5, "p_value": 0.6915, "log10_p": -0.1602,
        })
    );
    // Any document can be signed.
    let run = user.run_with_stdin(&["verify", "-"], signed(json!({"a": 1})).as_bytes());
    assert_eq!(run.code, 0, "{}", run.block());
    assert!(run.stdout.contains("the document has no verdict"), "{}", run.block());
    assert_eq!(verify(&user, &["--json"]).json()["public_key_is_expected"], Value::Null);
}

#[test]
fn what_does_not_hold_is_named() {
    let user = User::new();
    user.file("report.json", signed(report()).replace("not_detected", "watermarked"));
    let run = verify(&user, &[]);
    run.refused(2, &["report.json: the signature is not valid", "changed after it was signed"]);
    assert_eq!(run.stdout, "");
    user.file("report.json", report().to_string());
    verify(&user, &[]).refused(2, &["report.json: it has no field `signature`"]);
    user.file("report.json", signed(report()));
    user.file("other.txt", "Other words.\n");
    verify(&user, &["--text", "other.txt"])
        .refused(2, &["input_sha256 disagrees", "report.json says", "other.txt says"]);
    verify(&user, &["--public-key", OTHER])
        .refused(2, &["public key disagrees", OTHER, PUBLIC, "by another key"]);
    verify(&user, &["--public-key", "zz"]).refused(2, &["neither a key nor a file"]);
    user.file("report.json", signed(json!({"a": 1})));
    verify(&user, &["--text", "other.txt"]).refused(2, &["no field input_sha256"]);
    user.run(&["verify", "missing.json"]).refused(2, &["missing.json"]);
    user.run(&["verify", "-", "--text", "-"]).refused(2, &["standard input once"]);
}

#[test]
fn a_secret_key_that_is_named_as_the_public_one_is_not_repeated() {
    let user = User::new();
    user.file("report.json", signed(report()));
    // The digits of this secret are no point of the curve, so they are not taken for a key.
    let secret = "02".to_owned() + &"00".repeat(31);
    user.key("sign.key", &secret);
    let run = verify(&user, &["--public-key", "sign.key"]);
    run.refused(2, &["sign.key: not a public key", "wm keygen FILE --public"]);
    assert!(!run.stderr.contains(&secret[..16]), "{}", run.block());
}

#[test]
fn keygen_prints_the_public_half_of_a_signing_key() {
    let user = User::new();
    let run = user.run(&["keygen", "sign.key", "--signing"]);
    assert_eq!(run.code, 0, "{}", run.block());
    let public = run.stdout.trim_end();
    assert!(public.len() == 64 && public.bytes().all(|byte| byte.is_ascii_hexdigit()), "{public}");
    let secret = read(user.path("sign.key"));
    let key = SigningKey::from_key(&Key::from_hex(&secret).unwrap());
    assert_eq!(key.public().to_string(), public);
    assert!(!format!("{}{}", run.stdout, run.stderr).contains(secret.trim_end()));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(user.path("sign.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // The same again from the key that is there, which stays as it is.
    assert_eq!(user.run(&["keygen", "sign.key", "--public"]).stdout, run.stdout);
    assert_eq!(read(user.path("sign.key")), secret);
    user.key("known.key", KEY);
    let json = user.run(&["keygen", "known.key", "--public", "--json"]).json();
    assert_eq!(json, json!({ "public_key": PUBLIC }));
    user.run(&["keygen", "sign.key", "--signing"]).refused(2, &["never overwritten"]);
    user.run(&["keygen", "none.key", "--public"]).refused(2, &["none.key"]);
    // The default key marks texts; it is not made to sign by a slip.
    user.run(&["keygen", "--signing"]).refused(2, &["PATH"]);
}
