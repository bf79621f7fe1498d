//! Signed reports, and the files that people have.

use serde_json::{Value, json};

use crate::client;
use crate::service::Service;
use crate::support::{KEY, User, tiny_tokenizer};

/// Another secret, for signing.
const SIGNING: &str = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

const TEXT: &str = "The harbour was quiet in the morning, and the boats lay still.\n";

fn signing_service() -> Service {
    let user = User::new();
    let (key, tokenizer) = (user.key("key", KEY), tiny_tokenizer());
    let signing = user.key("signing", SIGNING);
    let flags =
        ["--no-engine", "--key-file", &key, "--tokenizer", &tokenizer, "--signing-key", &signing];
    Service::start(user, &flags)
}

#[test]
fn a_signed_report_is_the_command_lines_with_one_field_more() {
    let service = signing_service();
    let public = service.get("/v1/service").json()["signing_key"].as_str().unwrap().to_owned();
    let reply = service.post("/v1/detect", &json!({"text": TEXT}));
    let mut report = reply.json();
    assert_eq!(report["signature"]["public_key"], public.as_str());
    assert_eq!(report.as_object().unwrap().keys().next_back().unwrap(), "signature");

    let saved = service.user.file("report.json", reply.text());
    let text = service.user.file("text.txt", TEXT);
    let run = service.user.run(&["verify", &saved, "--public-key", &public, "--text", &text]);
    assert_eq!(run.code, 0, "{}", run.block());
    let other = service.user.file("other.txt", "Another text.");
    let run = service.user.run(&["verify", &saved, "--public-key", &public, "--text", &other]);
    assert_eq!(run.code, 2, "{}", run.block());
    let changed = reply.text().replacen("\"not_detected\"", "\"watermarked\"", 1);
    assert_ne!(changed, reply.text());
    let changed = service.user.file("changed.json", changed);
    service.user.run(&["verify", &changed, "--public-key", &public]).refused(2, &["not valid"]);

    report.as_object_mut().unwrap().shift_remove("signature");
    let key = service.user.path("key").display().to_string();
    let tokenizer = tiny_tokenizer();
    let flags = ["detect", &text, "--json", "--key-file", &key, "--tokenizer", &tokenizer];
    let unsigned = serde_json::to_string_pretty(&report).unwrap() + "\n";
    assert_eq!(unsigned, service.user.run(&flags).stdout);
}

#[test]
fn every_report_of_a_list_and_of_a_batch_is_signed() {
    let service = signing_service();
    let verified = |report: &Value| {
        let saved = service.user.file("report.json", report.to_string());
        let run = service.user.run(&["verify", &saved]);
        assert_eq!(run.code, 0, "{}", run.block());
    };
    let list = service.post("/v1/detect", &json!({"inputs": [TEXT, "Short."]})).json();
    verified(&list["data"][0]["report"]);
    verified(&list["data"][1]["report"]);
    let several = service.post("/v1/detect", &json!({"text": TEXT, "profiles": "all"})).json();
    verified(&several["results"][0]["report"]);
    let lines = format!("{}\n", json!({"text": TEXT}));
    let headers = [("Content-Type", "application/x-ndjson")];
    let reply =
        client::send(service.address, "POST", "/v1/detect/batch", &headers, lines.as_bytes());
    let line: Value = serde_json::from_str(reply.text().lines().next().unwrap()).unwrap();
    verified(&line["report"]);
    // A verdict alone has no figures to prove.
    let verdict = service.post("/v1/detect", &json!({"text": TEXT, "detail": "verdict"})).json();
    assert!(verdict.get("signature").is_none());
}

/// A form of one file.
fn form(name: &str, bytes: &[u8]) -> (String, Vec<u8>) {
    let border = "greenmark-test-border";
    let head = format!(
        "--{border}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n"
    );
    let tail = format!("\r\n--{border}--\r\n");
    let body = [head.as_bytes(), bytes, tail.as_bytes()].concat();
    (format!("multipart/form-data; boundary={border}"), body)
}

#[test]
fn a_page_is_read_in_a_process_of_its_own_and_judged_as_its_text() {
    let service = Service::tiny(&[]);
    let page = b"<html><head><title>no</title><style>no{}</style></head>\
                 <body><p>The harbour was quiet.</p><script>no()</script></body></html>";
    let (kind, body) = form("page.html", page);
    let headers = [("Content-Type", kind.as_str())];
    let reply = client::send(service.address, "POST", "/v1/detect/file", &headers, &body);
    let item = reply.json()["data"][0].clone();
    assert_eq!((&item["format"], &item["name"]), (&json!("html"), &json!("page.html")));
    let text = item["text"].as_str().unwrap();
    assert_eq!(text.trim(), "The harbour was quiet.");
    let direct = service.post("/v1/detect", &json!({"text": text})).json();
    assert_eq!(item["report"], direct);
}

#[test]
fn a_file_that_is_not_what_it_claims_is_an_error_of_its_own() {
    let service = Service::tiny(&[]);
    for (name, bytes) in [
        ("broken.pdf", &b"%PDF-1.7\nnothing more"[..]),
        ("broken.docx", b"PK\x03\x04nothing more"),
        ("picture.png", b"\x89PNG\r\n\x1a\n"),
    ] {
        let (kind, body) = form(name, bytes);
        let headers = [("Content-Type", kind.as_str())];
        let reply = client::send(service.address, "POST", "/v1/detect/file", &headers, &body);
        assert_eq!(reply.status, 200, "{}", reply.text());
        let item = reply.json()["data"][0].clone();
        assert!(item.get("report").is_none(), "{item}");
        let message = item["error"]["message"].as_str().unwrap();
        assert!(!message.is_empty() && item["error"]["type"] == "invalid_request_error", "{item}");
    }
    assert_eq!(service.get("/health").status, 200);
}
