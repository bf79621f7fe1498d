//! How a generation request is read, and what trace it leaves, over a socket with a tiny checkpoint.

use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::generation::{ONE_PLACE, PATH, body, complete, long_service, long_text, service};
use crate::service::Service;

const CHAT: &str = "/v1/chat/completions";

/// Kilobytes of memory that the service has held at most.
fn peak(service: &Service) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A list of this element that fills a body of 9 megabytes.
fn list(field: &str, element: &str) -> Vec<u8> {
    let elements = vec![element; 9_000_000 / (element.len() + 1)].join(",");
    format!("{{\"max_tokens\":1,\"{field}\":[{elements}]}}").into_bytes()
}

#[test]
fn lists_of_a_body_do_not_grow_in_memory() {
    let service = service("");
    complete(&service, &json!({}));
    let before = peak(&service);
    for (path, bytes) in [
        (CHAT, list("messages", "{}")),
        (CHAT, list("stop", "\"\"")),
        (CHAT, list("tools", "[]")),
        (PATH, list("prompt", "1")),
        (PATH, list("prompt", "[]")),
        (PATH, list("prompt", "\"\"")),
        (PATH, list("bad_words", "[]")),
        (PATH, list("logprobs", "1")),
        (CHAT, {
            let parts = String::from_utf8(list("content", "{}")).unwrap();
            let content = parts.replacen("\"max_tokens\":1", "\"role\":\"user\"", 1);
            format!("{{\"messages\":[{content}]}}").into_bytes()
        }),
    ] {
        let reply = service.post_bytes(path, &bytes);
        assert!([400, 422].contains(&reply.status), "{} {}", reply.status, reply.text());
        // A few bodies, some of which the allocator keeps for the next; buffered values would be
        // hundreds of megabytes.
        let grown = peak(&service).saturating_sub(before);
        assert!(grown < 120_000, "{grown} kB: {}", reply.text());
    }
}

#[test]
fn too_many_elements_are_refused_with_the_number() {
    let service = service("");
    let messages = json!({"messages": vec![json!({"role": "user", "content": "x"}); 4097]});
    let (_, message) = service.post(CHAT, &messages).error(422);
    assert!(message.contains("4096"), "{message}");
    let (_, message) = service.post(PATH, &body(&json!({"prompt": vec!["x"; 1025]}))).error(422);
    assert!(message.contains("1024"), "{message}");
    let (_, message) = service.post(PATH, &body(&json!({"prompt": vec![5; 1_000_001]}))).error(422);
    assert!(message.contains("1000000"), "{message}");
    let (_, message) = service.post(PATH, &body(&json!({"stop": vec!["x"; 17]}))).error(400);
    assert!(message.contains("17") && message.contains("16"), "{message}");
    // One kind at a time; 20 is no id behind a text.
    for prompt in [json!(["x", 20]), json!([20, "x"]), json!([[20], 20]), json!([-1])] {
        service.post(PATH, &body(&json!({"prompt": prompt}))).error(422);
    }
    let part = json!([{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {}}]);
    let reply = service.post(CHAT, &json!({"messages": [{"role": "user", "content": part}]}));
    let (code, message) = reply.error(400);
    assert_eq!(code, "invalid_value");
    assert!(message.contains("content[1]") && message.contains("image_url"), "{message}");
}

/// The audit lines of generated texts.
fn lines(service: &Service) -> Vec<Value> {
    let log = service.log();
    let lines = log.lines().filter(|line| line.contains("\"action\":\"generate\""));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn wait_for(service: &Service, texts: usize) {
    let started = Instant::now();
    while lines(service).len() < texts {
        assert!(started.elapsed() < Duration::from_secs(20), "no line: {}", service.log());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_text_whose_client_leaves_has_its_audit_line() {
    const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let service = long_service(ONE_PLACE);
    let mut texts = 0;
    for stream in [true, false] {
        // On a busy machine a client may leave before the first token; then it waits longer.
        let mut wait = Duration::from_millis(300);
        loop {
            let mut connection = long_text(&service, stream);
            if stream {
                connection.read_exact(&mut [0; 64]).unwrap();
            }
            thread::sleep(wait);
            drop(connection);
            texts += 1;
            wait_for(&service, texts);
            let line = lines(&service).pop().unwrap();
            assert_eq!((&line["caller"], &line["profile"]), (&json!("local"), &json!("main")));
            if line["input_sha256"] != NOTHING {
                break;
            }
            wait *= 4;
            assert!(wait < Duration::from_secs(30), "no text was begun: {line}");
        }
    }
    // One that is read to its end has one line.
    let started = Instant::now();
    while service.post(PATH, &json!({"prompt": "Q", "max_tokens": 2})).status != 200 {
        assert!(started.elapsed() < Duration::from_secs(20));
        thread::sleep(Duration::from_millis(20));
    }
    wait_for(&service, texts + 1);
    thread::sleep(Duration::from_millis(200));
    assert_eq!(lines(&service).len(), texts + 1);
}
