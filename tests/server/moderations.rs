//! `POST /v1/moderations`, `GET /v1/profiles` and `GET /v1/service`.

use serde_json::{Value, json};

use crate::detect::of_three;
use crate::service::Service;
use crate::support::{HUMAN, KEY, marked};

#[test]
fn moderation_flags_what_is_watermarked() {
    let service = of_three();
    let text = marked(200, KEY);
    let body = json!({"input": [text, HUMAN, {"type": "text", "text": "Too short."}]});
    let reply = service.post("/v1/moderations", &body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let reply = reply.json();
    let id = reply["id"].as_str().unwrap();
    assert!(id.starts_with("modr-") && id.len() == 37, "{id}");
    assert_eq!(reply["model"], "first");
    let results = reply["results"].as_array().unwrap();
    let report = service.post("/v1/detect", &json!({"text": text})).json();
    assert_eq!(
        results[0],
        json!({
            "flagged": true,
            "categories": {"watermarked": true},
            "category_scores": {"watermarked": 1.0},
            "category_applied_input_types": {"watermarked": ["text"]},
            "greenmark": {"verdict": "watermarked", "z": report["z"],
                "log10_p": report["log10_p"],
                "corrected_log10_p": report["corrected_log10_p"]},
        })
    );
    for (place, verdict) in [(1, "not_detected"), (2, "insufficient")] {
        assert_eq!(results[place]["flagged"], false);
        assert_eq!(results[place]["category_scores"]["watermarked"], 0.0);
        assert_eq!(results[place]["greenmark"]["verdict"], verdict);
    }
    let other = service.post("/v1/moderations", &json!({"input": text, "model": "second"})).json();
    assert_eq!(
        (&other["model"], &other["results"][0]["flagged"]),
        (&json!("second"), &json!(false))
    );
    let reply = service.post("/v1/moderations", &json!({"input": "x", "model": "omni"}));
    assert_eq!(reply.error(400).0, "unknown_profile");
    assert_eq!(reply.json()["error"]["param"], "model");
    let image = json!({"input": [{"type": "image_url", "image_url": {"url": "x"}}]});
    service.post("/v1/moderations", &image).error(422);
    service.post("/v1/moderations", &json!({"input": []})).error(400);
}

#[test]
fn profiles_are_listed_without_their_keys() {
    let service = of_three();
    let reply = service.get("/v1/profiles").json();
    assert_eq!(reply["object"], "list");
    let standings: Vec<_> = reply["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["name"].as_str().unwrap(), item["standing"].as_str().unwrap()))
        .collect();
    assert_eq!(standings, [("first", "active"), ("second", "active"), ("third", "retired")]);
    let report = service.post("/v1/detect", &json!({"text": "x", "profile": "third"})).json();
    let third = &reply["data"][2];
    for field in ["profile", "key_id", "key_fingerprint", "tokenizer"] {
        assert_eq!(third[field], report[field]);
        assert_ne!(third[field], Value::Null);
    }
    assert!(!reply.to_string().contains(KEY));
}

#[test]
fn the_service_says_what_it_is() {
    let service = Service::tiny(&["--max-body", "2MB"]);
    let expected = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "engine": false,
        "detect": {"max_body": 2_000_000, "inputs": 1024},
        "signing_key": null,
        "caller": {"name": "local", "role": "operator"},
    });
    assert_eq!(service.get("/v1/service").json(), expected);
}
