//! `POST /v1/detect`: the library's report, byte for byte the command line's.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::service::Service;
use crate::support::{HUMAN, KEY, User, marked, tiny_tokenizer};

/// A second and a third key.
const KEY_B: &str = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const KEY_C: &str = "aa0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// A service of the profiles `first`, `second` (marked with [`KEY_B`]) and `third`.
pub(crate) fn of_three() -> Service {
    let user = User::new();
    let mut config = String::new();
    for (name, key) in [("first", KEY), ("second", KEY_B), ("third", KEY_C)] {
        let file = user.key(&format!("{name}.key"), key);
        let standing = if name == "third" { "retired" } else { "active" };
        let tokenizer = tiny_tokenizer();
        writeln!(
            config,
            "[[profiles]]\nname = \"{name}\"\nkey_file = \"{file}\"\ntokenizer = \"{tokenizer}\"\n\
             standing = \"{standing}\""
        )
        .unwrap();
    }
    let config = user.file("service.toml", config);
    Service::start(user, &["--no-engine", "--config", &config])
}

/// Asserts that the reply to `fields` and the command line's output with `flags` are the same
/// bytes for this text, and gives the report.
fn same(service: &Service, text: &str, fields: &Value, flags: &[&str]) -> Value {
    let user = &service.user;
    let file = user.file("text.txt", text);
    let mut body = fields.clone();
    body["text"] = json!(text);
    identical(service, &body, &[&[file.as_str()], flags].concat())
}

fn identical(service: &Service, body: &Value, flags: &[&str]) -> Value {
    let key = service.user.path("key").display().to_string();
    let tokenizer = tiny_tokenizer();
    let own = ["detect", "--json", "--key-file", &key, "--tokenizer", &tokenizer];
    let run = service.user.run(&[&own, flags].concat());
    assert!([0, 10, 11].contains(&run.code), "{}", run.block());
    let reply = service.post("/v1/detect", body);
    assert_eq!((reply.status, reply.text()), (200, run.stdout.as_str()), "{body}");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    reply.json()
}

#[test]
fn the_report_is_byte_for_byte_that_of_the_command_line() {
    let service = Service::tiny(&[]);
    let marked = marked(300, KEY);
    let none = json!({});
    assert_eq!(same(&service, &marked, &none, &[])["verdict"], "watermarked");
    assert_eq!(same(&service, HUMAN, &none, &[])["verdict"], "not_detected");
    assert_eq!(same(&service, "Too short.", &none, &[])["verdict"], "insufficient");
    assert_eq!(same(&service, "", &none, &[])["tokens"], 0);
    let report = same(&service, &marked, &json!({"detail": "tokens"}), &["--details"]);
    assert_eq!(report["token_details"].as_array().unwrap().len(), 300);
    let mixed = format!("{HUMAN} {marked} {HUMAN}");
    let report = same(&service, &mixed, &json!({"windows": true}), &["--windows"]);
    assert_eq!(report["spans"].as_array().unwrap().len(), 1);
    let report = same(&service, HUMAN, &json!({"sentences": true}), &["--sentences"]);
    assert_eq!(report["sentences"].as_array().unwrap().len(), 1);
    let wide = "one\r\ntwo\u{200b}three";
    let fields = json!({"normalize": ["newlines", "zero-width"]});
    let report = same(&service, wide, &fields, &["--normalize", "newlines,zero-width"]);
    assert_eq!(report["hypotheses"], 2);
    let fields = json!({"alpha": 0.01, "min_scored": 50});
    let report = same(&service, HUMAN, &fields, &["--alpha", "0.01", "--min-scored", "50"]);
    assert_eq!(report["alpha"], 0.01);
    let report = same(&service, HUMAN, &json!({"z_threshold": 0.0}), &["--z-threshold", "0"]);
    assert_eq!(report["alpha"], 0.5);
    let everything = json!({"windows": true, "sentences": true, "detail": "tokens",
        "normalize": ["nfc"], "z_threshold": 3});
    let flags =
        ["--windows", "--sentences", "--details", "--normalize", "nfc", "--z-threshold", "3"];
    same(&service, &mixed, &everything, &flags);
}

#[test]
fn a_prompt_and_token_ids_are_judged_as_on_the_command_line() {
    let service = Service::tiny(&[]);
    let prompt = service.user.file("prompt.txt", "Once upon a time");
    let fields = json!({"prompt": "Once upon a time"});
    let report = same(&service, "there was", &fields, &["--prompt-file", &prompt]);
    assert_eq!(report["skipped"]["prefix"], 0);
    let ids = service.user.file("ids.json", "[5,6,7,8,9,5,6]");
    let body = json!({"tokens": [5, 6, 7, 8, 9, 5, 6], "windows": true, "detail": "tokens"});
    let report = identical(&service, &body, &["--ids", &ids, "--windows", "--details"]);
    assert_eq!(report["tokens"], 7);
    let reply = service.post("/v1/detect", &json!({"tokens": [5, 300]}));
    let (code, message) = reply.error(400);
    assert_eq!(code, "token_out_of_range");
    assert!(message.contains("300") && message.contains("position 1"), "{message}");
    for (field, value) in [("normalize", json!(["nfc"])), ("sentences", json!(true))] {
        let mut body = json!({"tokens": [5]});
        body[field] = value;
        let reply = service.post("/v1/detect", &body);
        reply.error(400);
        assert_eq!(reply.json()["error"]["param"], field);
    }
}

#[test]
fn several_profiles_are_paid_for_and_joined() {
    let service = of_three();
    let text = marked(200, KEY_B);
    let body = json!({"text": text, "profiles": "all"});
    let reply = service.post("/v1/detect", &body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let reply = reply.json();
    let fields: Vec<&str> = reply.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = ["object", "verdict", "profile", "corrected_log10_p", "hypotheses", "alpha"];
    assert_eq!(fields[..6], expected);
    assert_eq!((&reply["verdict"], &reply["profile"]), (&json!("watermarked"), &json!("second")));
    assert_eq!(reply["hypotheses"], 3);
    let results = reply["results"].as_array().unwrap();
    let names: Vec<_> = results.iter().map(|result| result["profile"].clone()).collect();
    assert_eq!(names, ["first", "second", "third"]);
    let verdicts: Vec<_> = results.iter().map(|result| &result["report"]["verdict"]).collect();
    assert_eq!(verdicts, ["not_detected", "watermarked", "not_detected"]);
    let report = &results[1]["report"];
    assert_eq!(report["corrected_log10_p"], reply["corrected_log10_p"]);
    let paid = report["corrected_log10_p"].as_f64().unwrap() - report["log10_p"].as_f64().unwrap();
    assert!((paid - 3f64.log10()).abs() < 1e-9, "{paid}");
    // One profile by name gives the report itself and pays for itself only.
    let alone = service.post("/v1/detect", &json!({"text": text, "profile": "second"})).json();
    assert_eq!(alone["corrected_log10_p"], alone["log10_p"]);
    assert_eq!(alone["log10_p"], report["log10_p"]);
    // The first one is the default.
    let default = service.post("/v1/detect", &json!({"text": text})).json();
    assert_eq!(default["key_id"], "first");
    let listed = json!({"text": text, "profiles": ["third", "second"]});
    let listed = service.post("/v1/detect", &listed).json();
    assert_eq!((&listed["profile"], &listed["hypotheses"]), (&json!("second"), &json!(2)));
}

#[test]
fn profiles_are_named_once_and_known() {
    let service = of_three();
    let refused = |fields: Value| {
        let mut body = fields;
        body["text"] = json!("x");
        let reply = service.post("/v1/detect", &body);
        let (code, message) = reply.error(400);
        (code, message, reply.json()["error"]["param"].clone())
    };
    let (code, message, param) = refused(json!({"profile": "fourth"}));
    assert_eq!((code.as_str(), param), ("unknown_profile", json!("profile")));
    assert!(message.contains("first, second, third"), "{message}");
    let (code, _, param) = refused(json!({"profiles": ["first", "fourth"]}));
    assert_eq!((code.as_str(), param), ("unknown_profile", json!("profiles[1]")));
    assert_eq!(refused(json!({"profiles": ["first", "first"]})).2, "profiles[1]");
    assert_eq!(refused(json!({"profiles": []})).2, "profiles");
    assert_eq!(refused(json!({"profiles": "all", "profile": "first"})).2, "profiles");
    let reply = service.post("/v1/detect", &json!({"text": "x", "profiles": "most"}));
    assert_eq!(reply.error(422).0, "invalid_type");
}

#[test]
fn a_list_of_inputs_has_an_item_for_each() {
    let service = of_three();
    let text = marked(200, KEY);
    let body = json!({"inputs": [text, {"text": HUMAN}, {"tokens": [1, 999]}, {"tokens": [1, 2]},
        {}, "Too short."]});
    let reply = service.post("/v1/detect", &body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let reply = reply.json();
    assert_eq!(reply["object"], "list");
    let data = reply["data"].as_array().unwrap();
    let indices: Vec<_> = data.iter().map(|item| item["index"].as_u64().unwrap()).collect();
    assert_eq!(indices, [0, 1, 2, 3, 4, 5]);
    assert_eq!(data[0]["report"]["verdict"], "watermarked");
    assert_eq!(data[1]["report"]["verdict"], "not_detected");
    assert_eq!(data[2]["error"]["code"], "token_out_of_range");
    assert_eq!(data[3]["report"]["verdict"], "insufficient");
    assert_eq!(data[4]["error"]["param"], "text");
    assert_eq!(data[5]["report"]["verdict"], "insufficient");
    // The report of an item is that of the text alone.
    assert_eq!(data[0]["report"], service.post("/v1/detect", &json!({"text": text})).json());
    let body = json!({"inputs": [HUMAN], "profiles": ["first", "second"], "detail": "verdict"});
    let reply = service.post("/v1/detect", &body).json();
    let verdict = json!({"schema": "greenmark/verdict/1", "verdict": "not_detected"});
    let result = json!({"object": "greenmark.profiles", "verdict": "not_detected",
        "results": [{"profile": "first", "report": verdict},
            {"profile": "second", "report": verdict}]});
    assert_eq!(reply["data"], json!([{"index": 0, "result": result}]));
}

#[test]
fn a_list_of_inputs_has_a_limit() {
    let user = User::new();
    let key = user.key("key", KEY);
    let config = user.file("service.toml", "[limits]\ninputs = 2\n");
    let tokenizer = tiny_tokenizer();
    let flags = ["--no-engine", "--key-file", &key, "--tokenizer", &tokenizer, "--config", &config];
    let service = Service::start(user, &flags);
    assert_eq!(service.post("/v1/detect", &json!({"inputs": ["a", "b"]})).status, 200);
    let (_, message) = service.post("/v1/detect", &json!({"inputs": ["a", "b", "c"]})).error(400);
    assert!(message.contains('3') && message.contains('2'), "{message}");
    service.post("/v1/detect", &json!({"inputs": []})).error(400);
}

#[test]
fn a_verdict_alone_holds_no_figure() {
    let service = Service::tiny(&[]);
    let reply = service.post("/v1/detect", &json!({"text": HUMAN, "detail": "verdict"}));
    let expected = r#"{"schema":"greenmark/verdict/1","verdict":"not_detected"}"#;
    assert_eq!((reply.status, reply.text()), (200, expected));
}

#[test]
fn a_page_shows_the_text_and_the_report() {
    let service = Service::tiny(&[]);
    let body =
        json!({"text": "<blink>Too</blink> short.", "format": "html", "name": "letter & co"});
    let reply = service.post("/v1/detect", &body);
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
    let page = reply.text();
    assert!(page.starts_with("<!doctype html>"), "{page}");
    assert!(page.contains("<h1>letter &amp; co</h1>"), "{page}");
    assert!(!page.contains("<blink>"), "text of a stranger is not markup");
    let key = service.user.path("key").display().to_string();
    let (tokenizer, file) =
        (tiny_tokenizer(), service.user.file("x.txt", "<blink>Too</blink> short."));
    let flags =
        ["detect", &file, "--html", "x.html", "--key-file", &key, "--tokenizer", &tokenizer];
    assert_eq!(service.user.run(&flags).code, 0);
    let own = crate::support::read(service.user.path("x.html"));
    assert_eq!(page, own.replace(&file, "letter &amp; co"));
    // A page of several profiles is that of the report that decides, which pays for all.
    let three = of_three();
    let text = marked(300, KEY_B);
    let body = json!({"text": text, "profiles": "all", "format": "html"});
    let reply = three.post("/v1/detect", &body);
    assert_eq!(reply.status, 200);
    let joined = three.post("/v1/detect", &json!({"text": text, "profiles": "all"})).json();
    assert_eq!(joined["profile"], "second");
    let log10_p = joined["corrected_log10_p"].as_f64().unwrap();
    assert!(log10_p < -10.0 && reply.text().contains("second"), "{}", reply.text());
    for (field, value) in [("inputs", json!(["a"])), ("detail", json!("verdict"))] {
        let mut body = json!({"format": "html", "text": "a"});
        body[field] = value;
        if field == "inputs" {
            body.as_object_mut().unwrap().shift_remove("text");
        }
        service.post("/v1/detect", &body).error(400);
    }
}

#[test]
fn fields_that_exclude_each_other_or_have_no_effect_here_are_refused_by_name() {
    let service = Service::tiny(&[]);
    for (fields, param) in [
        (json!({"text": "a", "tokens": [1]}), "tokens"),
        (json!({"text": "a", "inputs": ["b"]}), "inputs"),
        (json!({"text": "a", "alpha": 0.1, "z_threshold": 2}), "z_threshold"),
        (json!({"text": "a", "alpha": 1.5}), "alpha"),
        (json!({"text": "a", "z_threshold": 99}), "z_threshold"),
        (json!({"text": "a", "normalize": ["nfk"]}), "normalize"),
        (json!({"text": "a", "id": 7}), "id"),
        (json!({"text": "a", "name": "x"}), "name"),
    ] {
        let reply = service.post("/v1/detect", &fields);
        reply.error(400);
        assert_eq!(reply.json()["error"]["param"], param, "{fields}");
    }
    let reply = service.post("/v1/detect", &json!({"text": "a", "entropy": true}));
    assert_eq!(reply.error(400).0, "engine_absent");
}
