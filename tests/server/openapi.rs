//! The description of the interface, held against the interface.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::client::{self, Reply};
use crate::service::Service;
use crate::support::{HUMAN, KEY, marked};

fn document(service: &Service) -> Value {
    let reply = service.get("/openapi.json");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    reply.json()
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn fields(document: &Value, schema: &str) -> BTreeSet<String> {
    let schema = &document["components"]["schemas"][schema];
    assert_eq!(schema["additionalProperties"], false, "{schema}");
    keys(&schema["properties"])
}

#[test]
fn every_route_is_described_and_every_description_has_a_route() {
    let service = Service::tiny(&[]);
    let described = keys(&document(&service)["paths"]);
    let served: BTreeSet<String> =
        greenmark::server::paths().iter().map(|path| path.replace("{*", "{")).collect();
    assert_eq!(described, served);
}

#[test]
fn every_method_is_described() {
    let service = Service::tiny(&[]);
    let document = document(&service);
    for (path, methods) in document["paths"].as_object().unwrap() {
        let address = path.replace("{file}", "page.js").replace("{id}", "some/model");
        let reply = client::send(service.address, "PATCH", &address, &[], b"");
        assert_eq!(reply.error(405).0, "method_not_allowed", "{path}");
        let allowed = reply.header("allow").unwrap();
        let allowed: BTreeSet<String> =
            allowed.split(',').filter(|one| *one != "HEAD").map(str::to_lowercase).collect();
        assert_eq!(keys(methods), allowed, "{path}");
    }
}

/// The names that the reader of a body says it knows.
fn expected(reply: &Reply) -> BTreeSet<String> {
    let (code, message) = reply.error(400);
    assert_eq!(code, "unknown_field", "{message}");
    let names = message.split_once("expected").unwrap().1;
    names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn post_file(service: &Service, options: &str) -> Reply {
    let part = |head: &str, body: &str| format!("--cut\r\n{head}\r\n\r\n{body}\r\n");
    let body = part("Content-Disposition: form-data; name=\"options\"", options)
        + &part("Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\"", HUMAN)
        + "--cut--\r\n";
    let headers = [("Content-Type", "multipart/form-data; boundary=cut")];
    client::send(service.address, "POST", "/v1/detect/file", &headers, body.as_bytes())
}

#[test]
fn every_field_of_a_request_is_described_and_no_other() {
    let service = Service::tiny(&[]);
    let document = document(&service);
    let wrong = json!({"no_such_field": 1});
    let mut known = expected(&service.post("/v1/detect", &wrong));
    // It belongs to the lines of a batch.
    assert!(known.remove("id"));
    assert_eq!(fields(&document, "DetectRequest"), known);
    let input = expected(&service.post("/v1/detect", &json!({"inputs": [{"no_such_field": 1}]})));
    assert_eq!(fields(&document, "Input"), input);
    let moderation = expected(&service.post("/v1/moderations", &wrong));
    assert_eq!(fields(&document, "ModerationRequest"), moderation);
    let options = fields(&document, "DetectOptions");
    assert_eq!(fields(&document, "DetectLine"), &options | &set(&["id", "text", "tokens"]));
    let elsewhere = set(&["text", "tokens", "inputs", "format", "name"]);
    assert_eq!(options, &known - &elsewhere);
    // What files do not take is refused by name.
    let values = json!({"text": "a", "tokens": [1], "inputs": ["a"], "format": "html", "name": "a",
        "id": 1});
    for (name, value) in values.as_object().unwrap() {
        let reply = post_file(&service, &json!({name: value}).to_string());
        assert_eq!(reply.error(400).0, "invalid_value", "{name}");
        assert_eq!(reply.json()["error"]["param"], *name);
    }
    assert_eq!(expected(&post_file(&service, &wrong.to_string())).len(), known.len() + 1);
}

/// The fields of a struct in the source of the generation routes: a service that only detects does
/// not read their bodies.
fn declared(name: &str) -> BTreeSet<String> {
    let source = include_str!("../../src/server/generation/body.rs");
    let body = source.split_once(&format!(" struct {name} {{")).unwrap().1;
    let body = body.split_once("\n}").unwrap().0;
    let fields = body.lines().filter_map(|line| line.trim().strip_prefix("pub(super) "));
    fields.map(|field| field.split_once(':').unwrap().0.to_owned()).collect()
}

#[test]
fn every_field_of_generation_is_described_and_no_other() {
    let service = Service::tiny(&[]);
    let document = document(&service);
    let (completion, chat) =
        (fields(&document, "CompletionRequest"), fields(&document, "ChatRequest"));
    assert_eq!(&completion | &chat, declared("Body"));
    // What only one of the two takes.
    assert_eq!(&completion - &chat, set(&["prompt", "best_of", "echo"]));
    assert_eq!(&chat - &completion, set(&["messages", "top_logprobs"]));
    assert_eq!(fields(&document, "Message"), declared("Message"));
    let stream =
        &document["components"]["schemas"]["CompletionRequest"]["properties"]["stream_options"];
    assert_eq!(keys(&stream["properties"]), declared("StreamOptions"));
}

#[test]
fn every_example_is_accepted() {
    let service = Service::tiny(&[]);
    let document = document(&service);
    let mut sent = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        // A service that only detects refuses them.
        if path.ends_with("/completions") {
            continue;
        }
        let content = methods["post"]["requestBody"]["content"].as_object();
        for (kind, body) in content.into_iter().flatten() {
            for (name, example) in body["examples"].as_object().into_iter().flatten() {
                let value = &example["value"];
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let headers = [("Content-Type", kind.as_str())];
                let reply = client::send(service.address, "POST", path, &headers, text.as_bytes());
                let said = String::from_utf8_lossy(&reply.body);
                assert_eq!(reply.status, 200, "{path}, {name}: {said}");
                assert!(!said.contains("\"error\""), "{path}, {name}: {said}");
                sent += 1;
            }
        }
    }
    assert_eq!(sent, 10);
}

/// Says where `value` is not what `schema` describes. A field that is not described is a
/// difference, whatever the schema allows: this document is to name all of them.
fn difference(document: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let schema = document.pointer(reference.trim_start_matches('#')).unwrap();
        return difference(document, schema, value, place);
    }
    for choices in ["oneOf", "anyOf"] {
        let Some(choices) = schema[choices].as_array() else { continue };
        let found: Vec<Option<String>> =
            choices.iter().map(|choice| difference(document, choice, value, place)).collect();
        let none = found.iter().all(Option::is_some);
        return none.then(|| found.into_iter().flatten().collect::<Vec<_>>().join("; or "));
    }
    let wrong = |what: &str| Some(format!("{place}: {value} is not {what}"));
    if schema.get("const").is_some_and(|known| known != value) {
        return wrong(&schema["const"].to_string());
    }
    if schema["enum"].as_array().is_some_and(|known| !known.contains(value)) {
        return wrong(&schema["enum"].to_string());
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        Value::Null => return None,
        kind => vec![kind.clone()],
    };
    let is = |kind: &Value| match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    };
    if !kinds.iter().any(is) {
        return wrong(&schema["type"].to_string());
    }
    let items = value.as_array().into_iter().flatten().enumerate();
    let inside = items.filter(|_| schema.get("items").is_some()).find_map(|(index, item)| {
        difference(document, &schema["items"], item, &format!("{place}[{index}]"))
    });
    let (Some(properties), Some(object)) = (schema["properties"].as_object(), value.as_object())
    else {
        return inside;
    };
    let required = schema["required"].as_array().into_iter().flatten();
    let missing = required.filter_map(Value::as_str).find(|name| !object.contains_key(*name));
    let missing = missing.map(|name| format!("{place}: {name} is missing"));
    missing.or_else(|| fields_differ(document, properties, object, place))
}

fn fields_differ(
    document: &Value,
    properties: &Map<String, Value>,
    object: &Map<String, Value>,
    place: &str,
) -> Option<String> {
    object.iter().find_map(|(name, value)| match properties.get(name) {
        None => Some(format!("{place}: {name} is not described")),
        Some(schema) => difference(document, schema, value, &format!("{place}.{name}")),
    })
}

fn conforms(document: &Value, schema: &str, value: &Value) {
    let schema = json!({"$ref": format!("#/components/schemas/{schema}")});
    assert_eq!(difference(document, &schema, value, "reply"), None);
}

#[test]
fn replies_hold_what_is_described_and_nothing_else() {
    let service = Service::tiny(&[]);
    let document = document(&service);
    let text = format!("{HUMAN} {} {HUMAN}", marked(300, KEY));
    let everything = json!({"text": text, "windows": true, "sentences": true, "detail": "tokens",
        "normalize": ["nfc", "zero-width"]});
    let report = service.post("/v1/detect", &everything).json();
    assert_eq!(report["verdict"], "watermarked");
    conforms(&document, "Report", &report);
    let short = service.post("/v1/detect", &json!({"text": "Short\u{200b}"})).json();
    conforms(&document, "Report", &short);
    let verdict = json!({"text": HUMAN, "detail": "verdict"});
    conforms(&document, "VerdictOnly", &service.post("/v1/detect", &verdict).json());
    let profiles = json!({"text": HUMAN, "profiles": "all"});
    conforms(&document, "Profiles", &service.post("/v1/detect", &profiles).json());
    let inputs = json!({"inputs": [HUMAN, {"tokens": [4_294_967_295_u32]}, {"tokens": [1, 2, 3]}]});
    let items = service.post("/v1/detect", &inputs).json();
    assert_eq!(items["data"][1]["error"]["code"], "token_out_of_range");
    conforms(&document, "Items", &items);
    conforms(&document, "Items", &post_file(&service, "{}").json());
    let moderation = service.post("/v1/moderations", &json!({"input": [HUMAN]})).json();
    conforms(&document, "Moderation", &moderation);
    conforms(&document, "ProfileList", &service.get("/v1/profiles").json());
    conforms(&document, "Service", &service.get("/v1/service").json());
    conforms(&document, "Status", &service.get("/health").json());
    conforms(&document, "Error", &service.get("/nowhere").json());
}
