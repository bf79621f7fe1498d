//! `POST /v1/detect/batch`: lines in, lines out.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{self, Reply};
use crate::detect::of_three;
use crate::service::Service;
use crate::support::{HUMAN, KEY, marked};

const PATH: &str = "/v1/detect/batch";
const NDJSON: &str = "application/x-ndjson";

fn send(service: &Service, body: &[u8]) -> Reply {
    client::send(service.address, "POST", PATH, &[("Content-Type", NDJSON)], body)
}

fn rows(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some(NDJSON));
    assert!(reply.text().ends_with('\n'));
    reply.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_line_has_its_result_in_order() {
    let service = of_three();
    let text = marked(200, KEY);
    let lines = [
        json!({"text": text, "id": "first"}).to_string(),
        json!({"text": HUMAN.repeat(50), "id": 2}).to_string(),
        "  ".to_owned(),
        "{\"text\":".to_owned(),
        json!({"text": "Too short.", "detail": "verdict"}).to_string(),
        json!({"text": "x", "gama": 1, "id": 5}).to_string(),
        json!({"inputs": ["x"], "id": null}).to_string(),
        json!({"text": "x", "format": "html", "id": ["any", "value"]}).to_string(),
        json!({"text": text, "profiles": "all"}).to_string(),
        json!({"tokens": [1, 2, 999], "id": "ids"}).to_string(),
    ];
    let mut body = lines.join("\n").into_bytes();
    body.extend(b"\r\n{\"text\":\"\xff\"}\n\n{\"text\":\"last\"}");
    let rows = rows(&send(&service, &body));
    let indices: Vec<_> = rows.iter().map(|row| row["index"].as_u64().unwrap()).collect();
    assert_eq!(indices, (0..11).collect::<Vec<_>>());
    let fields = |row: &Value| row.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&rows[0]), ["index", "id", "report"]);
    assert_eq!(rows[0]["id"], "first");
    // The report of a line is that of the text alone.
    assert_eq!(rows[0]["report"], service.post("/v1/detect", &json!({"text": text})).json());
    assert_eq!(
        (&rows[1]["id"], &rows[1]["report"]["verdict"]),
        (&json!(2), &json!("not_detected"))
    );
    assert_eq!(rows[2]["error"]["code"], "invalid_json");
    assert_eq!(fields(&rows[2]), ["index", "error"]);
    let verdict = json!({"schema": "greenmark/verdict/1", "verdict": "insufficient"});
    assert_eq!(rows[3], json!({"index": 3, "report": verdict}));
    assert_eq!(
        (&rows[4]["error"]["code"], &rows[4]["error"]["param"]),
        (&json!("unknown_field"), &json!("gama"))
    );
    assert_eq!(rows[5]["error"]["param"], "inputs");
    assert_eq!(
        (&rows[6]["error"]["param"], &rows[6]["id"]),
        (&json!("format"), &json!(["any", "value"]))
    );
    assert_eq!(fields(&rows[7]), ["index", "result"]);
    assert_eq!(rows[7]["result"]["profile"], "first");
    assert_eq!(
        (&rows[8]["id"], &rows[8]["error"]["code"]),
        (&json!("ids"), &json!("token_out_of_range"))
    );
    assert_eq!(rows[9]["error"]["code"], "invalid_json");
    assert_eq!(rows[10]["report"]["tokens"], 3);
}

#[test]
fn the_first_result_comes_before_the_body_has_ended() {
    let service = Service::tiny(&[]);
    let mut stream = client::connect(service.address);
    let line = |text: &str| client::chunk(format!("{{\"text\":{}}}\n", json!(text)).as_bytes());
    stream.write_all(&client::chunked_head(PATH, NDJSON)).unwrap();
    stream.write_all(&line(HUMAN)).unwrap();
    let mut seen = Vec::new();
    let mut piece = [0; 4096];
    // The second line is sent only once the first result is here.
    while !String::from_utf8_lossy(&seen).contains("\"index\":0") {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..read]);
    }
    stream.write_all(&line("Too short.")).unwrap();
    stream.write_all(&client::chunk(b"")).unwrap();
    stream.read_to_end(&mut seen).unwrap();
    let rows = rows(&client::parse(&seen));
    let verdicts: Vec<_> = rows.iter().map(|row| &row["report"]["verdict"]).collect();
    assert_eq!(verdicts, ["not_detected", "insufficient"]);
}

#[test]
fn a_body_that_grows_too_long_on_the_way_ends_with_an_error_line() {
    let service = Service::tiny(&["--max-body", "1000"]);
    let mut stream = client::connect(service.address);
    stream.write_all(&client::chunked_head(PATH, NDJSON)).unwrap();
    stream.write_all(&client::chunk(b"{\"text\":\"one\"}\n")).unwrap();
    let mut seen = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains("\"index\":0") {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0);
        seen.extend_from_slice(&piece[..read]);
    }
    let long = json!({"text": "x".repeat(990)}).to_string();
    stream.write_all(&client::chunk(long.as_bytes())).unwrap();
    // The service may close the connection with this unread.
    let _ = stream.write_all(&client::chunk(b""));
    let _ = stream.read_to_end(&mut seen);
    let rows = rows(&client::parse(&seen));
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (&rows[1]["index"], &rows[1]["error"]["code"]),
        (&json!(1), &json!("body_too_large"))
    );
}

#[test]
fn what_is_wrong_before_the_first_line_has_a_status() {
    let service = Service::tiny(&[]);
    assert_eq!(send(&service, b"").error(400).0, "empty_body");
    assert_eq!(send(&service, b" \n\n").error(400).0, "empty_body");
    let headers = [("Content-Type", "text/csv")];
    let reply = client::send(service.address, "POST", PATH, &headers, b"{}");
    assert_eq!(reply.error(415).0, "unsupported_media_type");
}

/// Seconds of processor time that a process has used.
#[cfg(target_os = "linux")]
fn processor_seconds(id: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // User and system time, in ticks of 10 ms.
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

#[test]
#[cfg(target_os = "linux")]
fn a_client_that_leaves_stops_the_work() {
    let service = Service::tiny(&[]);
    let words: Vec<String> = (0..600).map(|i| format!("word{i}")).collect();
    let text = words.join(" ");
    let line = json!({"text": text, "windows": true}).to_string() + "\n";
    // Minutes of work.
    let body = line.repeat(2000).into_bytes();
    assert!(body.len() < 10_000_000);
    let address = service.address;
    let mut stream = client::connect(address);
    let request = client::request("POST", PATH, &[("Content-Type", NDJSON)], &body);
    let sender = {
        let mut stream = stream.try_clone().unwrap();
        // Ends with an error when the other half leaves.
        thread::spawn(move || stream.write_all(&request).is_ok())
    };
    let mut piece = [0; 4096];
    assert!(stream.read(&mut piece).unwrap() > 0);
    stream.shutdown(std::net::Shutdown::Both).unwrap();
    drop(stream);
    let _ = sender.join();
    thread::sleep(Duration::from_secs(1));
    let before = processor_seconds(service.id());
    thread::sleep(Duration::from_secs(1));
    let used = processor_seconds(service.id()) - before;
    assert!(used < 0.3, "{used} s of work a second after the client left");
    assert_eq!(service.get("/health").status, 200);
}
