//! The end: what runs is finished, nothing new begins, and a second signal does not wait.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{connect, read_reply};
use crate::limits::halves;
use crate::service::Service;

/// Waits until the service says that it ends.
fn signalled(service: &Service) {
    service.signal("TERM");
    service.until_said("ending: no new connections");
}

#[test]
fn a_running_request_is_finished_and_no_new_one_begins() {
    let mut service = Service::tiny(&[]);
    let (first, second) = halves();
    let mut stream = connect(service.address);
    stream.write_all(&first).unwrap();
    thread::sleep(Duration::from_millis(100));
    signalled(&service);
    thread::sleep(Duration::from_millis(100));
    assert!(TcpStream::connect(service.address).is_err());
    stream.write_all(&second).unwrap();
    let reply = read_reply(stream);
    assert_eq!((reply.status, &reply.json()["verdict"]), (200, &"not_detected".into()));
    assert_eq!(service.wait(), Some(0));
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut service = Service::tiny(&[]);
    let mut stream = connect(service.address);
    stream.write_all(&halves().0).unwrap();
    thread::sleep(Duration::from_millis(100));
    signalled(&service);
    thread::sleep(Duration::from_millis(100));
    let started = Instant::now();
    service.signal("INT");
    assert_eq!(service.wait(), Some(1));
    assert!(started.elapsed() < Duration::from_secs(5));
    service.until_said("ended at once");
}

#[test]
fn a_request_that_does_not_end_is_not_waited_for_for_ever() {
    let user = crate::support::User::new();
    let key = user.key("key", crate::support::KEY);
    let config = user.file("service.toml", "[limits]\nshutdown_seconds = 1\n");
    let tokenizer = crate::support::tiny_tokenizer();
    let flags = ["--no-engine", "--key-file", &key, "--tokenizer", &tokenizer];
    let mut service = Service::start(user, &[&flags[..], &["--config", &config]].concat());
    let mut stream = connect(service.address);
    stream.write_all(&halves().0).unwrap();
    thread::sleep(Duration::from_millis(100));
    let started = Instant::now();
    signalled(&service);
    assert_eq!(service.wait(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    service.until_said("unfinished after 1 s");
}

#[test]
fn a_connection_without_a_request_does_not_hold_up_the_end() {
    let mut service = Service::tiny(&[]);
    let mut stream = connect(service.address);
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut piece = [0; 4096];
    assert!(stream.read(&mut piece).unwrap() > 0);
    let started = Instant::now();
    signalled(&service);
    assert_eq!(service.wait(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn killed_under_load_it_starts_again_with_all_it_had() {
    use crate::access::{Guarded, add};
    let mut guarded = Guarded::start(&["--audit-log", "audit.jsonl"], "");
    let text = serde_json::json!({"text": crate::support::HUMAN});
    for round in 0..3 {
        let (address, bearer) = (guarded.service.address, format!("Bearer {}", guarded.reviewer));
        let clients: Vec<_> = (0..3)
            .map(|_| {
                let (body, bearer) = (text.to_string(), bearer.clone());
                thread::spawn(move || {
                    let head = format!(
                        "POST /v1/detect HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                         Authorization: {bearer}\r\nContent-Type: application/json\r\n\
                         Content-Length: {}\r\n\r\n{body}",
                        body.len()
                    );
                    // Until it is gone.
                    while let Ok(mut stream) = TcpStream::connect(address) {
                        let mut reply = Vec::new();
                        let _ = stream.write_all(head.as_bytes());
                        let _ = stream.read_to_end(&mut reply);
                    }
                })
            })
            .collect();
        let name = format!("late-{round}");
        let late = add(&guarded.service.user, &name, "operator", &guarded.keys_file);
        thread::sleep(Duration::from_millis(100));
        guarded.service.signal("KILL");
        assert_eq!(guarded.service.wait(), None);
        for client in clients {
            client.join().unwrap();
        }
        guarded.service.start_again();
        assert_eq!(guarded.detect(&guarded.reviewer, &text).status, 200);
        assert_eq!(guarded.get("/metrics", &late).status, 200);
    }
    let log = std::fs::read_to_string(guarded.service.user.path("audit.jsonl")).unwrap();
    assert!(log.lines().count() > 6 && log.ends_with('\n'), "{}", log.len());
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["action"], "detect");
    }
}
