//! What the role of a key opens in detection.

use serde_json::{Value, json};

use crate::client::{self, Reply};
use crate::file::{form, media_type};
use crate::service::Service;
use crate::support::{HUMAN, KEY, User, marked, read, tiny_tokenizer};

/// A service with a key of each role, and what else stands in `[access]`.
struct Guarded {
    service: Service,
    keys: Vec<(&'static str, String)>,
}

impl Guarded {
    fn new(access: &str) -> Self {
        let user = User::new();
        let file = user.path("apikeys.json").display().to_string();
        let keys = ["public", "reviewer"]
            .map(|role| {
                let name = format!("{role}-key");
                let add = ["apikey", "add", &name, "--role", role, "--keys-file", &file];
                let run = user.run(&add);
                assert_eq!(run.code, 0, "{}", run.block());
                (role, run.stdout.trim().to_owned())
            })
            .to_vec();
        let (key, tokenizer) = (user.key("key", KEY), tiny_tokenizer());
        let config = user.file(
            "service.toml",
            format!("[access]\nkeys_file = \"{file}\"\naudit_log = \"audit.jsonl\"\n{access}"),
        );
        let own = ["--no-engine", "--key-file", &key, "--tokenizer", &tokenizer];
        let service = Service::start(user, &[&own[..], &["--config", &config]].concat());
        Self { service, keys }
    }

    fn send(&self, role: &str, path: &str, media_type: &str, body: &[u8]) -> Reply {
        let (_, key) = self.keys.iter().find(|(known, _)| *known == role).unwrap();
        let bearer = format!("Bearer {key}");
        let method = if body.is_empty() { "GET" } else { "POST" };
        let headers = [("Content-Type", media_type), ("Authorization", bearer.as_str())];
        client::send(self.service.address, method, path, &headers, body)
    }

    fn post(&self, role: &str, path: &str, body: &Value) -> Reply {
        self.send(role, path, "application/json", body.to_string().as_bytes())
    }
}

#[test]
fn a_public_key_learns_verdicts_and_nothing_else() {
    let service = Guarded::new("");
    let text = marked(200, KEY);
    let verdict = json!({"schema": "greenmark/verdict/1", "verdict": "watermarked"});
    let detect = |body: Value| service.post("public", "/v1/detect", &body);
    assert_eq!(detect(json!({"text": text})).json(), verdict);
    assert_eq!(detect(json!({"text": text, "detail": "verdict"})).json(), verdict);
    let named = json!({"text": text, "profile": "default"});
    assert_eq!(detect(named).json(), verdict);
    let several = detect(json!({"text": text, "profiles": "all"})).json();
    let expected = json!({"object": "greenmark.profiles", "verdict": "watermarked",
        "profile": "default", "results": [{"profile": "default", "report": verdict}]});
    assert_eq!(several, expected);
    let listed = detect(json!({"inputs": [text]})).json();
    assert_eq!(listed["data"], json!([{"index": 0, "report": verdict}]));
    for (field, value) in [
        ("detail", json!("report")),
        ("detail", json!("tokens")),
        ("normalize", json!(["nfc"])),
        ("windows", json!(true)),
        ("windows", json!(false)),
        ("sentences", json!(true)),
        ("entropy", json!(true)),
        ("prompt", json!("x")),
        ("alpha", json!(0.5)),
        ("z_threshold", json!(1)),
        ("min_scored", json!(1)),
        ("format", json!("html")),
        ("name", json!("x")),
    ] {
        let mut body = json!({"text": text});
        body[field] = value;
        let reply = detect(body);
        assert_eq!(reply.error(403).0, "role", "{field}");
        assert_eq!(reply.json()["error"]["param"], field);
    }
    let moderated = service.post("public", "/v1/moderations", &json!({"input": text})).json();
    let expected = json!({
        "flagged": true,
        "categories": {"watermarked": true},
        "category_scores": {"watermarked": 1.0},
        "category_applied_input_types": {"watermarked": ["text"]},
    });
    assert_eq!(moderated["results"], json!([expected]));
    let line = json!({"text": text}).to_string();
    let batch = service.send("public", "/v1/detect/batch", "application/jsonl", line.as_bytes());
    assert_eq!(batch.error(403).0, "role");
    let file = form(&[("file", Some(("a.txt", "text/plain")), b"x")]);
    let file = service.send("public", "/v1/detect/file", &media_type(), &file);
    assert_eq!(file.error(403).0, "role");
    let profiles = service.send("public", "/v1/profiles", "", b"").json();
    assert_eq!(profiles["data"], json!([{"name": "default", "standing": "active"}]));
    let caller = service.send("public", "/v1/service", "", b"").json()["caller"].clone();
    assert_eq!(caller, json!({"name": "public-key", "role": "public"}));
}

#[test]
fn a_reviewer_reads_reports_and_the_audit_holds_no_text() {
    let service = Guarded::new("");
    let text = marked(200, KEY);
    let report = service.post("reviewer", "/v1/detect", &json!({"text": text})).json();
    assert_eq!((&report["verdict"], report["z"].is_number()), (&json!("watermarked"), true));
    let body = json!({"inputs": [HUMAN, text]});
    assert_eq!(service.post("reviewer", "/v1/detect", &body).status, 200);
    assert_eq!(service.post("reviewer", "/v1/detect", &json!({"text": ""})).status, 200);
    let path = service.service.user.path("audit.jsonl");
    let lines = crate::audit::until_lines(&path, 4);
    let audit = read(&path);
    assert_eq!(lines.len(), 4, "{audit}");
    assert_eq!(
        (&lines[0]["action"], &lines[0]["caller"]),
        (&json!("detect"), &json!("reviewer-key"))
    );
    assert_eq!(lines[0]["verdict"], "watermarked");
    for field in ["input_sha256", "key_id"] {
        assert_eq!(lines[0][field], report[field]);
    }
    assert_eq!(lines[0]["profile"], "default");
    assert!(!audit.contains(&text[..20]) && !audit.contains(&HUMAN[..20]), "{audit}");
    for (_, key) in &service.keys {
        assert!(!audit.contains(key.as_str()));
    }
}

#[test]
fn many_texts_in_one_request_cost_a_public_key_what_they_cost_one_by_one() {
    let service = Guarded::new("public_rate = 4\nreviewer_rate = 4\n");
    let ask = |inputs: &[&str]| service.post("public", "/v1/detect", &json!({"inputs": inputs}));
    assert_eq!(ask(&["a", "b", "c", "d"]).status, 200);
    assert_eq!(ask(&["a"]).error(429).0, "rate_limited");
    // A reviewer pays for the request.
    let lines = "{\"text\":\"a\"}\n".repeat(6);
    let path = "/v1/detect/batch";
    let reply = service.send("reviewer", path, "application/jsonl", lines.as_bytes());
    let rows: Vec<Value> =
        reply.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let judged = rows.iter().filter(|row| row["report"]["verdict"] == "insufficient").count();
    assert_eq!(judged, 6, "{rows:?}");
}

/// Which profiles a public key asks for must not move the threshold: three thresholds would tell
/// how far a text is from each.
#[test]
fn a_public_key_pays_for_every_profile_whichever_it_asks_for() {
    let user = User::new();
    let keys = user.path("keys.json").display().to_string();
    let key_of = |role: &str| {
        let run = user.run(&["apikey", "add", role, "--role", role, "--keys-file", &keys]);
        format!("Bearer {}", run.stdout.trim())
    };
    let (public, reviewer) = (key_of("public"), key_of("reviewer"));
    let mut config = String::from("[access]\nkeys_file = \"keys.json\"\npublic_rate = 0\n");
    for (name, first) in [("a", "0"), ("b", "1"), ("c", "2")] {
        let file = user.key(&format!("{name}.key"), &format!("{first}{}", &KEY[1..]));
        let tokenizer = tiny_tokenizer();
        config.push_str("[[profiles]]\n");
        config.push_str(&["name = \"", name, "\"\nkey_file = \"", &file, "\"\n"].concat());
        config.push_str(&["tokenizer = \"", &tokenizer, "\"\n"].concat());
    }
    let config = user.file("service.toml", config);
    let service = Service::start(user, &["--no-engine", "--config", &config]);
    let ask = |key: &str, body: &Value| {
        let headers = [("Content-Type", "application/json"), ("Authorization", key)];
        let body = body.to_string();
        client::send(service.address, "POST", "/v1/detect", &headers, body.as_bytes()).json()
    };
    let mut seen = std::collections::BTreeSet::new();
    for length in 10..30 {
        let text = marked(length, KEY);
        let all = ask(&reviewer, &json!({"text": text, "profiles": "all"}));
        let verdict = &all["results"][0]["report"]["verdict"];
        for asked in
            [json!({"profile": "a"}), json!({"profiles": ["a"]}), json!({"profiles": "all"})]
        {
            let mut body = asked.clone();
            body["text"] = json!(text);
            let reply = ask(&public, &body);
            let own = match reply.get("results") {
                Some(results) => &results[0]["report"]["verdict"],
                None => &reply["verdict"],
            };
            assert_eq!(own, verdict, "{length} tokens, {asked}");
        }
        seen.insert(verdict.as_str().unwrap().to_owned());
    }
    assert!(seen.len() > 1, "the lengths must cross a threshold: {seen:?}");
}
