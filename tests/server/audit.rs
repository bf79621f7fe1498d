//! Audit and access lines: what they say, what they never say, and what becomes of lost ones.

use std::path::Path;
use std::time::{Duration, Instant};

use greenmark::detect::Verdict;
use greenmark::server::{Audit, Entry};
use serde_json::{Value, json};

use crate::access::Guarded;
use crate::client::send;
use crate::support::{KEY, marked, read};

fn lines(path: &Path) -> Vec<Value> {
    let text = read(path);
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until the log has that many lines; they are written soon after the reply.
pub(crate) fn until_lines(path: &Path, count: usize) -> Vec<Value> {
    let started = Instant::now();
    loop {
        let lines = lines(path);
        if lines.len() >= count {
            return lines;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "only {} lines", lines.len());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn entry(request_id: &str) -> Entry<'_> {
    Entry {
        action: "detect",
        request_id,
        caller: "desk",
        user_sha256: None,
        input_sha256: None,
        profile: None,
        key_id: None,
        verdict: Some(Verdict::NotDetected),
        duration: Duration::from_micros(1_234_567),
    }
}

#[test]
fn every_judged_text_has_a_line() {
    let guarded = Guarded::start(&["--audit-log", "audit.jsonl"], "");
    let text = marked(300, KEY);
    let bearer = format!("Bearer {}", guarded.public);
    let headers = [
        ("Authorization", &*bearer),
        ("Content-Type", "application/json"),
        ("X-Request-Id", "my-request.1"),
    ];
    let body = json!({"text": text}).to_string();
    let address = guarded.service.address;
    let reply = send(address, "POST", "/v1/detect", &headers, body.as_bytes());
    assert_eq!((reply.status, reply.header("x-request-id")), (200, Some("my-request.1")));
    let path = guarded.service.user.path("audit.jsonl");
    let [line] = &until_lines(&path, 1)[..] else { panic!("{}", read(&path)) };
    let fields: Vec<&String> = line.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "time",
            "action",
            "request_id",
            "caller",
            "input_sha256",
            "profile",
            "key_id",
            "verdict",
            "duration_ms"
        ]
    );
    let time = line["time"].as_str().unwrap();
    assert!(time.starts_with("20") && time.ends_with('Z') && time.len() == 24, "{time}");
    let file = guarded.service.user.file("text.txt", &text);
    let sum = std::process::Command::new("sha256sum").arg(&file).output().unwrap().stdout;
    assert_eq!(line["input_sha256"], String::from_utf8(sum).unwrap()[..64]);
    let said = (&line["action"], &line["request_id"], &line["caller"], &line["verdict"]);
    assert_eq!(
        said,
        (&"detect".into(), &"my-request.1".into(), &"public".into(), &"watermarked".into())
    );
    assert_eq!((&line["profile"], &line["key_id"]), (&"default".into(), &"key".into()));
    assert!(line["duration_ms"].as_f64().unwrap() > 0.0);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // What is refused was not judged.
    assert_eq!(guarded.detect("nobody", &json!({"text": "a"})).status, 401);
    assert_eq!(guarded.detect(&guarded.public, &json!({"text": 1})).status, 422);
    assert_eq!(guarded.detect(&guarded.reviewer, &json!({"text": "a"})).status, 200);
    let [_, last] = &until_lines(&path, 2)[..] else { panic!("{}", read(&path)) };
    assert_eq!(last["caller"], "reviewer");
}

#[test]
fn no_log_holds_any_of_a_text_or_a_key() {
    let guarded = Guarded::start(&["--audit-log", "audit.jsonl", "--access-log"], "");
    let service = &guarded.service;
    let marker = "Zebrafinkenschlag";
    let body = json!({"text": format!("{marker} {}", marked(200, KEY)), "prompt": marker});
    assert_eq!(guarded.detect(&guarded.reviewer, &body).status, 200);
    // Where clients put things by mistake: addresses, headers, fields, keys that are none.
    let path = format!("/v1/detect?key={}&text={marker}", guarded.reviewer);
    assert_eq!(send(service.address, "POST", &path, &[], b"").status, 401);
    assert_eq!(guarded.get(&format!("/{marker}"), &guarded.operator).status, 404);
    assert_eq!(guarded.detect(&guarded.reviewer, &json!({ marker: marker })).status, 400);
    assert_eq!(guarded.detect(&guarded.reviewer, &json!({"text": [marker]})).status, 422);
    let strange = [("Authorization", marker), ("User-Agent", marker), ("Referer", marker)];
    assert_eq!(send(service.address, "GET", "/metrics", &strange, b"").status, 401);
    for key in [&guarded.public, &guarded.reviewer, &guarded.operator] {
        let cut = &key[..key.len() - 3];
        assert_eq!(guarded.get("/metrics", cut).status, 401);
    }
    let metrics = guarded.get("/metrics", &guarded.operator).text().to_owned();
    // The line of the last request is the last one.
    let log =
        service.until_said("\"caller\":\"operator\",\"method\":\"GET\",\"route\":\"/metrics\"");
    until_lines(&service.user.path("audit.jsonl"), 1);
    let logs = [log, read(service.user.path("audit.jsonl")), metrics].concat();
    assert!(logs.contains("\"route\":\"/v1/detect\"") && logs.contains("\"caller\":\"reviewer\""));
    assert!(!logs.contains(marker), "{logs}");
    let secrets = [KEY, &guarded.public, &guarded.reviewer, &guarded.operator];
    for secret in secrets {
        let digits = secret.strip_prefix("gmk_").unwrap_or(secret);
        for piece in digits.as_bytes().chunks_exact(12) {
            let piece = std::str::from_utf8(piece).unwrap();
            assert!(!logs.contains(piece), "{piece} of a key: {logs}");
        }
    }
}

#[test]
fn the_access_log_has_a_line_for_every_request_when_it_is_on() {
    let guarded = Guarded::start(&["--access-log"], "");
    assert_eq!(guarded.get("/metrics?a=b", &guarded.operator).status, 200);
    // The end of the line: what is read in pieces may have come in part.
    let log = guarded.service.until_said("\"caller\":\"operator\",\"method\":\"GET\"");
    let line = log.lines().find(|line| line.contains("/metrics")).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    let fields: Vec<&String> = line.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        ["time", "request_id", "caller", "method", "route", "status", "bytes", "duration_ms"]
    );
    assert_eq!((&line["route"], &line["status"]), (&"/metrics".into(), &200.into()));
    assert_eq!((&line["method"], &line["caller"]), (&"GET".into(), &"operator".into()));
    assert!(line["bytes"].as_u64().unwrap() > 1000);
    let quiet = Guarded::start(&[], "");
    assert_eq!(quiet.get("/metrics", &quiet.operator).status, 200);
    let mut quiet = quiet.service;
    quiet.signal("TERM");
    quiet.wait();
    assert!(!quiet.until_said("ending").contains("\"route\""));
}

#[test]
fn a_renamed_log_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, old) = (folder.path().join("audit.jsonl"), folder.path().join("audit.jsonl.1"));
    let audit = Audit::file(&path).unwrap();
    audit.record(&entry("a"));
    audit.flush();
    std::fs::rename(&path, &old).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    audit.record(&entry("b"));
    audit.record(&entry("c"));
    audit.flush();
    let ids = |path: &Path| -> Vec<String> {
        lines(path).iter().map(|line| line["request_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((ids(&old), ids(&path)), (vec!["a".to_owned()], vec!["b".into(), "c".into()]));
    assert_eq!(lines(&path)[0]["duration_ms"], 1234.567);
    assert_eq!(audit.lost(), 0);
}

#[test]
fn a_line_is_never_glued_to_one_that_was_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    std::fs::write(&path, "{\"time\":\"20").unwrap();
    let audit = Audit::file(&path).unwrap();
    audit.record(&entry("a"));
    audit.record(&entry("b"));
    audit.flush();
    let text = read(&path);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (3, "{\"time\":\"20"));
    assert!(lines[1..].iter().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
}

#[test]
fn a_full_disk_does_not_stop_the_service_and_is_counted() {
    let guarded = Guarded::start(&["--audit-log", "/dev/full"], "");
    for _ in 0..3 {
        assert_eq!(guarded.detect(&guarded.reviewer, &json!({"text": "a"})).status, 200);
    }
    eventually(|| {
        let metrics = guarded.get("/metrics", &guarded.operator);
        metrics.text().contains("greenmark_audit_failures_total 3\n")
    });
    let log = guarded.service.until_said("audit lines are lost");
    assert_eq!(log.matches("audit lines are lost").count(), 1, "{log}");
}

fn eventually(holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(10), "never so");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A log that takes some lines and then hangs, as a disk in trouble does: a pipe that nobody reads.
#[cfg(unix)]
fn hanging_log(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("hanging.jsonl");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    path
}

#[cfg(unix)]
#[test]
fn a_log_that_hangs_loses_lines_and_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = hanging_log(folder.path());
    let audit = Audit::file(&path).unwrap();
    for _ in 0..10_000 {
        audit.record(&entry("a"));
    }
    // A pipe holds 64 KiB: some hundred lines. About eight thousand wait, the others are lost.
    assert!((1000..2000).contains(&audit.lost()), "{}", audit.lost());
    let started = Instant::now();
    audit.flush();
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[cfg(unix)]
#[test]
fn a_service_whose_log_hangs_goes_on_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = hanging_log(folder.path()).display().to_string();
    let mut guarded = Guarded::start(&["--audit-log", &path], "[access]\nreviewer_rate = 0\n");
    // Above 64 KiB of lines.
    for _ in 0..8 {
        let body = json!({"inputs": vec!["a"; 60]});
        assert_eq!(guarded.detect(&guarded.reviewer, &body).status, 200);
    }
    assert_eq!(guarded.service.get("/health").status, 200);
    guarded.service.signal("TERM");
    assert_eq!(guarded.service.wait(), Some(0));
    guarded.service.until_said("the audit log takes no lines");
}

#[cfg(unix)]
#[test]
fn a_standard_error_that_nobody_reads_holds_nobody_up() {
    use std::io::{BufRead, BufReader};
    let user = crate::support::User::new();
    let key = user.key("key", KEY);
    let tokenizer = crate::support::tiny_tokenizer();
    let args = ["serve", "--offline", "--no-engine", "--port", "0", "--access-log"];
    let own = ["--key-file", &key, "--tokenizer", &tokenizer];
    let mut command = user.command(&[&args[..], &own].concat());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    // Read until the service is there, and then no more.
    let said = BufReader::new(child.stderr.take().unwrap());
    let mut said = said.lines().map(|line| line.unwrap());
    let prefix = "wm: listening on http://";
    let address = said.find_map(|line| line.strip_prefix(prefix).map(str::to_owned)).unwrap();
    let address = address.parse().unwrap();
    // Some 90 KiB of lines, where a pipe holds 64.
    for count in 0..600 {
        let reply = send(address, "GET", "/health", &[], b"");
        assert_eq!(reply.status, 200, "{count}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn every_line_is_written_before_the_service_ends() {
    let mut guarded = Guarded::start(&["--audit-log", "audit.jsonl"], "");
    let body = json!({"inputs": vec!["a"; 100]});
    assert_eq!(guarded.detect(&guarded.reviewer, &body).status, 200);
    guarded.service.signal("TERM");
    assert_eq!(guarded.service.wait(), Some(0));
    assert_eq!(lines(&guarded.service.user.path("audit.jsonl")).len(), 100);
}

#[test]
fn an_audit_log_that_cannot_be_opened_is_refused_at_the_start() {
    let user = crate::support::User::new();
    let key = user.key("key", KEY);
    let flags = ["serve", "--offline", "--no-engine", "--port", "0", "--key-file", &key];
    user.run(&[&flags[..], &["--audit-log", "no/such/folder/a.jsonl"]].concat())
        .refused(2, &["audit log", "no/such/folder"]);
}
