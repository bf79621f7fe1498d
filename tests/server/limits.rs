//! Limits of time and number, set small in the configuration.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{connect, read_reply, request, send};
use crate::service::Service;
use crate::support::{HUMAN, KEY, User, tiny_tokenizer};

/// A detection service with this section `[limits]`.
fn limited(limits: &str) -> Service {
    let user = User::new();
    let (key, tokenizer) = (user.key("key", KEY), tiny_tokenizer());
    let config = user.file("service.toml", format!("[limits]\n{limits}\n"));
    let own = ["--no-engine", "--key-file", &key, "--tokenizer", &tokenizer];
    Service::start(user, &[&own[..], &["--config", &config]].concat())
}

/// Half of a request for `/v1/detect`, and the other half.
pub(crate) fn halves() -> (Vec<u8>, Vec<u8>) {
    let body = json!({"text": HUMAN}).to_string();
    let headers = [("Content-Type", "application/json")];
    let mut first = request("POST", "/v1/detect", &headers, body.as_bytes());
    let second = first.split_off(first.len() - 20);
    (first, second)
}

#[test]
fn a_head_that_never_ends_loses_its_connection() {
    let service = limited("head_seconds = 1");
    let mut stream = connect(service.address);
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: local").unwrap();
    let started = Instant::now();
    let mut rest = Vec::new();
    // Closed or reset, without an answer.
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(String::from_utf8_lossy(&rest), "");
    let waited = started.elapsed();
    assert!((0.8..10.0).contains(&waited.as_secs_f64()), "{waited:?}");
    // Byte after byte is no way around it.
    let mut stream = connect(service.address);
    let started = Instant::now();
    let mut alive = 0;
    for byte in
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nx: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
    {
        thread::sleep(Duration::from_millis(100));
        alive += usize::from(stream.write_all(&[*byte]).is_ok());
        if started.elapsed() > Duration::from_secs(6) {
            break;
        }
    }
    assert!(alive < 50, "{alive} bytes were taken");
}

#[test]
fn a_body_that_does_not_come_is_answered_with_408() {
    let service = limited("body_seconds = 1");
    let (first, _) = halves();
    let mut stream = connect(service.address);
    stream.write_all(&first).unwrap();
    let started = Instant::now();
    let (code, message) = read_reply(stream).error(408);
    assert_eq!(code, "body_timeout");
    assert!(message.contains("1 s"), "{message}");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_reply_that_takes_too_long_is_504_and_health_answers_meanwhile() {
    let service = limited("reply_seconds = 1\nworkers = 1");
    let text = HUMAN.repeat(9_000_000 / HUMAN.len());
    let address = service.address;
    let body = json!({"text": text}).to_string().into_bytes();
    let clients: Vec<_> = (0..5)
        .map(|_| {
            let body = body.clone();
            let headers = [("Content-Type", "application/json")];
            thread::spawn(move || send(address, "POST", "/v1/detect", &headers, &body))
        })
        .collect();
    let mut slowest = Duration::ZERO;
    while !clients.iter().all(thread::JoinHandle::is_finished) {
        let started = Instant::now();
        assert_eq!(service.get("/health").status, 200);
        slowest = slowest.max(started.elapsed());
        thread::sleep(Duration::from_millis(20));
    }
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    let replies: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    let late: Vec<_> = replies.iter().filter(|reply| reply.status != 200).collect();
    assert!(!late.is_empty(), "nothing took a second");
    for reply in late {
        assert_eq!(reply.error(504).0, "timeout");
    }
}

#[test]
fn connections_beyond_the_limit_wait_for_a_place() {
    let service = limited("connections = 2\nhead_seconds = 1");
    let held: Vec<_> = (0..2)
        .map(|_| {
            let mut stream = connect(service.address);
            stream.write_all(b"GET /hea").unwrap();
            stream
        })
        .collect();
    thread::sleep(Duration::from_millis(200));
    let started = Instant::now();
    assert_eq!(service.get("/health").status, 200);
    assert!(started.elapsed() > Duration::from_millis(400), "{:?}", started.elapsed());
    drop(held);
}

#[test]
fn a_client_that_does_not_read_its_reply_loses_its_connection() {
    let service = limited("write_seconds = 1");
    let body = json!({"text": HUMAN.repeat(1_000_000 / HUMAN.len()), "detail": "tokens"});
    let headers = [("Content-Type", "application/json")];
    let body = body.to_string();
    let mut stream = connect(service.address);
    stream.write_all(&request("POST", "/v1/detect", &headers, body.as_bytes())).unwrap();
    let mut head = [0; 4096];
    let read = stream.read(&mut head).unwrap();
    let head = String::from_utf8_lossy(&head[..read]).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let length: usize = length.parse().unwrap();
    thread::sleep(Duration::from_secs(3));
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.len() < length - 4096, "{} of {length} bytes came", rest.len());
    // Somebody who reads gets all of it.
    let reply = send(service.address, "POST", "/v1/detect", &headers, body.as_bytes());
    assert_eq!((reply.status, reply.body.len()), (200, length));
}
