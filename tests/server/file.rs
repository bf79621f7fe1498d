//! `POST /v1/detect/file`: files in a form.

use serde_json::{Value, json};

use crate::client::{self, Reply};
use crate::service::Service;
use crate::support::{HUMAN, KEY, marked};

const PATH: &str = "/v1/detect/file";
const BOUNDARY: &str = "x-boundary-x";

/// A part of a form: its name, its file name and media type, its content.
pub(crate) type Part<'a> = (&'a str, Option<(&'a str, &'a str)>, &'a [u8]);

/// The body of a form.
pub(crate) fn form(parts: &[Part<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file, content) in parts {
        body.extend(
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"").bytes(),
        );
        if let Some((file, media_type)) = file {
            body.extend(format!("; filename=\"{file}\"\r\nContent-Type: {media_type}").bytes());
        }
        body.extend(b"\r\n\r\n");
        body.extend_from_slice(content);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{BOUNDARY}--\r\n").bytes());
    body
}

pub(crate) fn media_type() -> String {
    format!("multipart/form-data; boundary={BOUNDARY}")
}

fn send(service: &Service, body: &[u8]) -> Reply {
    let headers = [("Content-Type", &*media_type())];
    client::send(service.address, "POST", PATH, &headers, body)
}

fn data(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.json()["object"], "list");
    reply.json()["data"].as_array().unwrap().clone()
}

#[test]
fn each_file_is_judged_as_its_text_would_be() {
    let service = Service::tiny(&[]);
    let text = marked(200, KEY);
    let with_mark = format!("\u{feff}{HUMAN}");
    let reply = send(
        &service,
        &form(&[
            ("file", Some(("letter.txt", "text/plain")), text.as_bytes()),
            ("file", Some(("notes.md", "application/octet-stream")), with_mark.as_bytes()),
            ("file", Some(("broken.txt", "text/plain")), b"caf\xe9"),
            ("file", Some(("sheet.xlsx", "application/zip")), b"PK\x03\x04"),
            ("options", None, br#"{"detail":"tokens","sentences":true}"#),
        ]),
    );
    let data = data(&reply);
    let fields = |row: &Value| row.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&data[0]), ["index", "name", "format", "notes", "text", "report"]);
    assert_eq!((&data[0]["name"], &data[0]["format"]), (&json!("letter.txt"), &json!("text")));
    assert_eq!(data[0]["text"], json!(text));
    let body = json!({"text": text, "detail": "tokens", "sentences": true});
    assert_eq!(data[0]["report"], service.post("/v1/detect", &body).json());
    assert_eq!(
        (&data[1]["format"], &data[1]["report"]["verdict"]),
        (&json!("markdown"), &json!("not_detected"))
    );
    assert_eq!(data[1]["report"]["warnings"][0]["code"], "bom");
    for (place, name) in [(2, "broken.txt"), (3, "sheet.xlsx")] {
        assert_eq!((&data[place]["index"], &data[place]["name"]), (&json!(place), &json!(name)));
        assert!(data[place]["error"]["message"].is_string(), "{}", data[place]);
        assert_eq!(data[place]["report"], Value::Null);
    }
    let message = data[2]["error"]["message"].as_str().unwrap();
    assert!(message.contains("UTF-8") && message.contains("byte 3"), "{message}");
}

#[test]
fn a_form_that_is_wrong_is_refused_in_the_one_shape() {
    let service = Service::tiny(&[]);
    let headers = [("Content-Type", "application/json")];
    let reply = client::send(service.address, "POST", PATH, &headers, b"{}");
    assert_eq!(reply.error(415).0, "unsupported_media_type");
    let headers = [("Content-Type", "multipart/form-data")];
    let reply = client::send(service.address, "POST", PATH, &headers, b"x");
    assert_eq!(reply.error(400).0, "invalid_multipart");
    assert_eq!(send(&service, b"").error(400).0, "invalid_multipart");
    assert_eq!(send(&service, b"no form at all").error(400).0, "invalid_multipart");
    let whole = form(&[("file", Some(("a.txt", "text/plain")), b"text")]);
    assert_eq!(send(&service, &whole[..whole.len() - 20]).error(400).0, "invalid_multipart");
    let param = |parts: &[Part<'_>], status: u16| {
        let reply = send(&service, &form(parts));
        reply.error(status);
        reply.json()["error"]["param"].clone()
    };
    assert_eq!(param(&[("options", None, b"{}")], 400), "file");
    let file: Part<'_> = ("file", Some(("a.txt", "text/plain")), b"text");
    assert_eq!(param(&[file, ("files", None, b"x")], 400), "files");
    assert_eq!(param(&[file, ("options", None, b"{}"), ("options", None, b"{}")], 400), "options");
    assert_eq!(param(&[file, ("options", None, br#"{"text":"x"}"#)], 400), "text");
    assert_eq!(param(&[file, ("options", None, br#"{"gama":1}"#)], 400), "gama");
    assert_eq!(param(&[file, ("options", None, br#"{"windows":1}"#)], 422), "windows");
}
