//! Detection that weighs tokens by the uncertainty of the service's own model.

use serde_json::{Value, json};

use crate::client;
use crate::service::Service;
use crate::support::{HUMAN, KEY, User, marked, tiny_model, tiny_tokenizer};

fn service(configuration: &str) -> Service {
    let user = User::new();
    let key = user.key("key", KEY);
    let (model, tokenizer) = (tiny_model("llama"), tiny_tokenizer());
    let file = user.file("serve.toml", configuration);
    let flags =
        ["--config", &file, "--model", &model, "--tokenizer", &tokenizer, "--key-file", &key];
    Service::start(user, &flags)
}

#[test]
fn the_report_is_that_of_the_command_line_with_the_same_model() {
    let service = service("");
    assert_eq!(service.get("/v1/service").json()["engine"], true);
    let (model, tokenizer) = (tiny_model("llama"), tiny_tokenizer());
    let key = service.user.path("key").display().to_string();
    for text in [marked(80, KEY), HUMAN.chars().take(80).collect()] {
        let file = service.user.file("text.txt", &text);
        let flags = ["detect", &file, "--json", "--entropy", &model, "--key-file", &key];
        let run = service.user.run(&[&flags[..], &["--tokenizer", &tokenizer]].concat());
        let mut own = run.json();
        let mut report = service.post("/v1/detect", &json!({"text": text, "entropy": true})).json();
        assert!(report["entropy"]["tests"].as_array().is_some_and(|tests| !tests.is_empty()));
        // Each side calls the model by the name it knows.
        own["entropy"]["source"] = Value::Null;
        report["entropy"]["source"] = Value::Null;
        assert_eq!(report, own);
    }
}

#[test]
fn what_the_model_does_not_read_is_refused_by_name() {
    let service = service("[limits]\nentropy_tokens = 40\n");
    let refused = |body: Value| {
        let reply = service.post("/v1/detect", &body);
        let (_, message) = reply.error(400);
        assert_eq!(reply.json()["error"]["param"], "entropy", "{message}");
        message
    };
    let long = marked(41, KEY);
    assert!(refused(json!({"text": long, "entropy": true})).contains("40"));
    // The prompt is read too.
    refused(json!({"text": marked(20, KEY), "prompt": marked(30, KEY), "entropy": true}));
    refused(json!({"tokens": [1, 2, 3], "entropy": true}));
    refused(json!({"inputs": ["a"], "entropy": true}));
    let line = json!({"text": "a", "entropy": true}).to_string();
    let headers = [("Content-Type", "application/x-ndjson")];
    let reply =
        client::send(service.address, "POST", "/v1/detect/batch", &headers, line.as_bytes());
    let line: Value = serde_json::from_str(reply.text().trim()).unwrap();
    assert_eq!(line["error"]["param"], "entropy");
    let short = service.post("/v1/detect", &json!({"text": marked(20, KEY), "entropy": true}));
    assert_eq!(short.status, 200, "{}", short.text());
}
