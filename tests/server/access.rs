//! API keys over a socket: who may ask, how often, and what the loopback service refuses.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{self, Reply, connect, read_reply, request, send};
use crate::service::Service;
use crate::support::{KEY, User, tiny_tokenizer};

/// A service with a key of each role.
pub(crate) struct Guarded {
    pub(crate) service: Service,
    pub(crate) public: String,
    pub(crate) reviewer: String,
    pub(crate) operator: String,
    pub(crate) keys_file: String,
}

impl Guarded {
    /// With further flags; `configuration` is the content of its configuration file.
    pub(crate) fn start(flags: &[&str], configuration: &str) -> Self {
        let user = User::new();
        let keys_file = user.path("apikeys.json").display().to_string();
        let [public, reviewer, operator] =
            ["public", "reviewer", "operator"].map(|role| add(&user, role, role, &keys_file));
        let (key, tokenizer) = (user.key("key", KEY), tiny_tokenizer());
        let config = user.file("service.toml", configuration);
        let own = ["--no-engine", "--key-file", &key, "--tokenizer", &tokenizer];
        let access = ["--keys-file", &keys_file, "--config", &config];
        let service = Service::start(user, &[&own[..], &access, flags].concat());
        Self { service, public, reviewer, operator, keys_file }
    }

    pub(crate) fn get(&self, path: &str, key: &str) -> Reply {
        let headers = [("Authorization", &*format!("Bearer {key}"))];
        send(self.service.address, "GET", path, &headers, b"")
    }

    pub(crate) fn detect(&self, key: &str, body: &serde_json::Value) -> Reply {
        let bearer = format!("Bearer {key}");
        let headers = [("Authorization", &*bearer), ("Content-Type", "application/json")];
        send(self.service.address, "POST", "/v1/detect", &headers, body.to_string().as_bytes())
    }
}

/// Adds a key and gives it.
pub(crate) fn add(user: &User, name: &str, role: &str, file: &str) -> String {
    let run = user.run(&["apikey", "add", name, "--role", role, "--keys-file", file]);
    assert_eq!(run.code, 0, "{}", run.block());
    run.stdout.trim_end().to_owned()
}

/// Tries until the reply has this status; the service looks at its files now and then only.
fn eventually(status: u16, reply: impl Fn() -> Reply) -> Reply {
    let started = Instant::now();
    loop {
        let found = reply();
        if found.status == status {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(5), "still {}", found.status);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn h10_only_a_whole_known_key_in_its_header_opens() {
    let guarded = Guarded::start(&[], "");
    let address = guarded.service.address;
    let get = |headers: &[(&str, &str)]| send(address, "GET", "/metrics", headers, b"");
    let refused = |headers: &[(&str, &str)]| {
        let reply = get(headers);
        let code = reply.error(401).0;
        assert_eq!(reply.header("www-authenticate"), Some("Bearer realm=\"greenmark\""));
        code
    };
    let (operator, reviewer) = (&guarded.operator, &guarded.reviewer);
    assert_eq!(get(&[("Authorization", &format!("Bearer {operator}"))]).status, 200);
    assert_eq!(get(&[("authorization", &format!("bearer {operator}"))]).status, 200);
    assert_eq!(get(&[("Authorization", &format!("BEARER   {operator}"))]).status, 200);

    assert_eq!(refused(&[]), "missing_api_key");
    assert_eq!(refused(&[("x-api-key", operator)]), "missing_api_key");
    let twice = format!("Bearer {operator}");
    assert_eq!(refused(&[("Authorization", &twice), ("Authorization", &twice)]), "missing_api_key");
    assert_eq!(refused(&[("Authorization", operator)]), "invalid_authorization");
    assert_eq!(refused(&[("Authorization", "Basic dTpw")]), "invalid_authorization");
    // The right start, each cut: the checksum tells a cut key from an unknown one.
    for length in [0, 4, 20, 68, operator.len() - 1] {
        let cut = format!("Bearer {}", &operator[..length]);
        assert_eq!(refused(&[("Authorization", &cut)]), "invalid_api_key", "{length}");
    }
    assert_eq!(refused(&[("Authorization", "Bearer b\u{e4}r")]), "invalid_authorization");
    // A whole key of another service.
    let other = add(&guarded.service.user, "other", "operator", "elsewhere.json");
    let (code, message) = get(&[("Authorization", &format!("Bearer {other}"))]).error(401);
    assert_eq!((&*code, &*message), ("invalid_api_key", "this API key is not known"));
    // In the address: not read there, and not repeated.
    let reply = send(address, "GET", &format!("/metrics?key={operator}"), &[], b"");
    let (code, message) = reply.error(401);
    assert_eq!(code, "missing_api_key");
    assert!(message.contains("read nowhere else") && !message.contains(&operator[4..12]));

    let reply = get(&[("Authorization", &format!("Bearer {reviewer}"))]);
    let (code, message) = reply.error(403);
    assert_eq!(code, "role");
    assert!(message.contains("operator") && message.contains("reviewer"), "{message}");
    assert_eq!(guarded.service.get("/health").status, 200);
    assert_eq!(guarded.service.get("/ready").status, 200);
}

#[test]
fn h10_a_key_of_ten_megabytes_is_refused_with_a_reply() {
    let guarded = Guarded::start(&[], "");
    // Within the limit of a head it is a wrong key, beyond it the head is too long.
    let long = format!("Bearer gmk_{}", "a".repeat(50_000));
    let reply = send(guarded.service.address, "GET", "/metrics", &[("Authorization", &long)], b"");
    assert_eq!(reply.error(401).0, "invalid_api_key");
    let longer = format!("Bearer gmk_{}", "a".repeat(10_000_000));
    let started = Instant::now();
    let headers = [("Authorization", &*longer)];
    let reply = send(guarded.service.address, "GET", "/metrics", &headers, b"");
    let (code, message) = reply.error(431);
    assert_eq!(code, "head_too_large");
    assert!(message.contains("65536"), "{message}");
    assert_eq!(reply.header("x-request-id").map(str::len), Some(32));
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(guarded.service.get("/health").status, 200);
}

#[test]
fn h10_a_request_without_a_key_is_refused_before_its_body_is_read() {
    let guarded = Guarded::start(&[], "");
    let head = b"POST /v1/detect HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                 Content-Length: 9000000\r\n\r\n{";
    let mut stream = connect(guarded.service.address);
    stream.write_all(head).unwrap();
    // The body never comes; the reply does.
    assert_eq!(read_reply(stream).error(401).0, "missing_api_key");
    // One that is sent all the same does not take the reply away.
    let body = vec![b' '; 9_000_000];
    let headers = [("Content-Type", "application/json")];
    let reply = send(guarded.service.address, "POST", "/v1/detect", &headers, &body);
    assert_eq!(reply.error(401).0, "missing_api_key");
}

#[test]
fn roles_open_what_they_say() {
    let guarded = Guarded::start(&[], "");
    let text = json!({"text": "Some text about nothing in particular."});
    let verdict = guarded.detect(&guarded.public, &text).json();
    assert_eq!(verdict["schema"], "greenmark/verdict/1");
    assert!(verdict.get("z").is_none() && verdict.get("tests").is_none(), "{verdict}");
    for key in [&guarded.reviewer, &guarded.operator] {
        assert!(guarded.detect(key, &text).json()["tests"].is_array());
    }
    for (key, status) in
        [(&guarded.public, 403), (&guarded.reviewer, 403), (&guarded.operator, 200)]
    {
        assert_eq!(guarded.get("/metrics", key).status, status);
    }
}

#[test]
fn keys_come_and_go_while_the_service_runs() {
    let guarded = Guarded::start(&[], "");
    let user = &guarded.service.user;
    let late = add(user, "late", "operator", &guarded.keys_file);
    eventually(200, || guarded.get("/metrics", &late));
    let run = user.run(&["apikey", "revoke", "late", "--keys-file", &guarded.keys_file]);
    assert_eq!(run.code, 0, "{}", run.block());
    let reply = eventually(401, || guarded.get("/metrics", &late));
    assert_eq!(reply.error(401).0, "revoked_api_key");
    // A file that is damaged, shared or gone changes nothing.
    let whole = std::fs::read(user.path("apikeys.json")).unwrap();
    std::fs::write(user.path("apikeys.json"), &whole[..whole.len() / 2]).unwrap();
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(guarded.get("/metrics", &guarded.operator).status, 200);
    std::fs::remove_file(user.path("apikeys.json")).unwrap();
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(guarded.get("/metrics", &guarded.operator).status, 200);
    let log = guarded.service.until_said("cannot read the API keys");
    assert_eq!(log.matches("the API keys stay as they were").count(), 2, "{log}");
    // Restored, it is followed again.
    user.key("apikeys.json", std::str::from_utf8(&whole).unwrap());
    let last = add(user, "last", "operator", &guarded.keys_file);
    eventually(200, || guarded.get("/metrics", &last));
}

#[cfg(unix)]
#[test]
fn a_revocation_that_could_not_be_read_is_read_later() {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    let guarded = Guarded::start(&[], "");
    let path = guarded.service.user.path("apikeys.json");
    let mode = |mode| std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    // As an editor may leave it, with the key revoked and the mode too wide.
    let run = ["apikey", "revoke", "operator", "--keys-file", &guarded.keys_file];
    let copy = guarded.service.user.file("copy.json", std::fs::read(&path).unwrap());
    assert_eq!(guarded.service.user.run(&run).code, 0);
    let revoked = std::fs::read(&path).unwrap();
    std::fs::write(&copy, &revoked).unwrap();
    std::fs::rename(&copy, &path).unwrap();
    mode(0o644);
    // Looked at again and again, it is complained about once.
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(300));
        guarded.get("/metrics", &guarded.reviewer);
    }
    let log = guarded.service.until_said("mode 0644");
    assert_eq!(log.matches("the API keys stay as they were").count(), 1, "{log}");
    // Neither time, length nor inode change with the mode.
    mode(0o600);
    let reply = eventually(401, || guarded.get("/metrics", &guarded.operator));
    assert_eq!(reply.error(401).0, "revoked_api_key");
}

#[test]
fn a_key_past_its_time_opens_nothing() {
    let guarded = Guarded::start(&[], "");
    let user = &guarded.service.user;
    let soon = std::time::SystemTime::now() + Duration::from_secs(2);
    let soon = humantime_seconds(soon);
    let args = ["apikey", "add", "brief", "--role", "operator", "--expires", &soon];
    let run = user.run(&[&args[..], &["--keys-file", &guarded.keys_file]].concat());
    let brief = run.stdout.trim_end().to_owned();
    eventually(200, || guarded.get("/metrics", &brief));
    let reply = eventually(401, || guarded.get("/metrics", &brief));
    assert_eq!(reply.error(401).0, "expired_api_key");
}

fn humantime_seconds(at: std::time::SystemTime) -> String {
    let output = std::process::Command::new("date")
        .args(["-u", "+%Y-%m-%dT%H:%M:%SZ", "-d"])
        .arg(format!("@{}", at.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_service_does_not_start_with_keys_that_open_nothing() {
    let user = User::new();
    let (key, tokenizer) = (user.key("key", KEY), tiny_tokenizer());
    let start = |keys: &str| {
        let own = ["serve", "--no-engine", "--key-file", &key, "--tokenizer", &tokenizer];
        user.run(&[&own[..], &["--port", "0", "--offline", "--keys-file", keys]].concat())
    };
    start("missing.json").refused(2, &["missing.json", "API keys"]);
    start(&user.key("empty.json", "")).refused(2, &["empty.json", "empty", "wm apikey add"]);
    start(&user.key("torn.json", "{\"version\":1,\"keys\":[{"))
        .refused(2, &["torn.json", "line 2 column"]);
    let none = user.key("none.json", "{\"version\":1,\"keys\":[]}");
    start(&none).refused(2, &["none.json", "0 API keys", "wm apikey add"]);
    let strange = user.key("strange.json", "{\"version\":1,\"keys\":[],\"kyes\":[]}");
    start(&strange).refused(2, &["unknown field `kyes`"]);
    start(&user.key("new.json", "{\"version\":2,\"keys\":[]}")).refused(2, &["version 2"]);
    start(&user.file("shared.json", "{\"version\":1,\"keys\":[]}"))
        .refused(2, &["shared.json", "mode 0644", "chmod 600"]);
    let revoked = user.path("revoked.json").display().to_string();
    add(&user, "one", "reviewer", &revoked);
    user.run(&["apikey", "revoke", "one", "--keys-file", &revoked]);
    start(&revoked).refused(2, &["none of its 1 API keys is active"]);
}

#[test]
fn an_address_that_others_reach_needs_keys() {
    let user = User::new();
    let (key, tokenizer) = (user.key("key", KEY), tiny_tokenizer());
    let own = ["--no-engine", "--key-file", &key, "--tokenizer", &tokenizer];
    let start = |host| {
        let place = ["serve", "--offline", "--port", "0", "--host", host];
        user.run(&[&place[..], &own].concat())
    };
    for host in ["0.0.0.0", "::", "192.0.2.1"] {
        start(host).refused(2, &["host", host, "127.0.0.1", "wm apikey add"]);
    }
    start("example.org").refused(2, &["an IP address"]);
    // With keys, here those of the default place, it listens on all addresses.
    user.run(&["apikey", "add", "desk", "--role", "reviewer"]);
    let flags = [&own[..], &["--host", "0.0.0.0"]].concat();
    let flags: Vec<String> = flags.into_iter().map(str::to_owned).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let service = Service::start(user, &flags);
    let here = (std::net::Ipv4Addr::LOCALHOST, service.address.port()).into();
    assert_eq!(send(here, "GET", "/metrics", &[], b"").error(401).0, "missing_api_key");
    // Names of machines are no matter of a service with keys.
    let health = b"GET /health HTTP/1.1\r\nHost: desk.example\r\nConnection: close\r\n\r\n";
    assert_eq!(client::send_raw(here, health).status, 200);
}

#[test]
fn a_service_without_keys_is_deaf_to_pages_of_other_origins() {
    let service = Service::tiny(&["--cors-origin", "http://localhost:3000"]);
    let post = |host: &str, origin: Option<&str>| {
        let body = r#"{"text":"a"}"#;
        let origin = origin.map_or(String::new(), |origin| format!("Origin: {origin}\r\n"));
        let head = format!(
            "POST /v1/detect HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{origin}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        client::send_raw(service.address, head.as_bytes())
    };
    let port = service.address.port();
    for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "[::1]", "desk.localhost"] {
        assert_eq!(post(host, None).status, 200, "{host}");
        let host = format!("{host}:{port}");
        assert_eq!(post(&host, None).status, 200, "{host}");
        assert_eq!(post(&host, Some(&format!("http://{host}"))).status, 200, "{host}");
    }
    for host in ["evil.example", "evil.example:80", "localhost.evil.example", "192.0.2.1", "", "["]
    {
        assert_eq!(post(host, None).error(421).0, "foreign_host", "{host}");
    }
    let own = format!("localhost:{port}");
    for origin in ["https://evil.example", "null", "http://localhost", "http://localhost:1"] {
        assert_eq!(post(&own, Some(origin)).error(403).0, "foreign_origin", "{origin}");
    }
    assert_eq!(post(&own, Some("http://localhost:3000")).status, 200);
    // A form that needs no preflight stops at its Content-Type, besides.
    let headers = [("Content-Type", "text/plain")];
    let reply = send(service.address, "POST", "/v1/detect", &headers, b"{\"text\":\"a\"}");
    assert_eq!(reply.error(415).0, "unsupported_media_type");
}

#[test]
fn a_key_that_asks_too_often_waits() {
    let guarded = Guarded::start(&[], "[access]\npublic_rate = 3\nreviewer_rate = 0\n");
    let text = json!({"text": "a"});
    for _ in 0..3 {
        assert_eq!(guarded.detect(&guarded.public, &text).status, 200);
    }
    let reply = guarded.detect(&guarded.public, &text);
    let (code, message) = reply.error(429);
    assert_eq!(code, "rate_limited");
    assert!(message.contains("3 times a minute"), "{message}");
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=20).contains(&wait), "{wait}");
    // Others do not wait, and a change of the file gives no fresh start.
    for _ in 0..20 {
        assert_eq!(guarded.detect(&guarded.reviewer, &text).status, 200);
    }
    add(&guarded.service.user, "late", "public", &guarded.keys_file);
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(guarded.detect(&guarded.public, &text).error(429).0, "rate_limited");
}

#[test]
fn many_texts_in_one_request_cost_a_public_key_what_they_cost_one_by_one() {
    let guarded = Guarded::start(&[], "[access]\npublic_rate = 4\nreviewer_rate = 4\n");
    let list = |count: usize| json!({"inputs": vec!["a"; count]});
    let (code, message) = guarded.detect(&guarded.public, &list(5)).error(400);
    assert_eq!(code, "invalid_value");
    assert!(message.contains("5 texts") && message.contains("4 a minute"), "{message}");
    // The request itself has cost one.
    assert_eq!(guarded.detect(&guarded.public, &list(3)).status, 200);
    assert_eq!(guarded.detect(&guarded.public, &list(1)).error(429).0, "rate_limited");
    for _ in 0..4 {
        assert_eq!(guarded.detect(&guarded.reviewer, &list(40)).status, 200);
    }
}

#[test]
fn an_address_that_guesses_is_told_to_wait_and_a_valid_key_still_passes() {
    let guarded = Guarded::start(&[], "");
    let statuses: Vec<u16> = (0..40).map(|_| guarded.get("/metrics", "gmk_guess").status).collect();
    let refused = statuses.iter().filter(|status| **status == 401).count();
    assert!((30..=32).contains(&refused), "{statuses:?}");
    assert_eq!(statuses[39], 429);
    let reply = guarded.get("/metrics", "gmk_guess");
    assert_eq!(reply.error(429).0, "too_many_failures");
    assert!(reply.header("retry-after").is_some());
    assert_eq!(guarded.get("/metrics", &guarded.operator).status, 200);
}

#[test]
fn a_head_that_is_no_http_gets_the_one_shape() {
    let service = Service::tiny(&[]);
    for head in ["\0\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /health HTTP/1.1\r\na b: c\r\n\r\n"] {
        let reply = client::send_raw(service.address, head.as_bytes());
        assert_eq!(reply.error(400).0, "malformed_request", "{head:?}");
    }
    let many = "x: 1\r\n".repeat(200);
    let head = format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{many}\r\n");
    assert_eq!(client::send_raw(service.address, head.as_bytes()).error(431).0, "head_too_large");
    let long = format!("/{}", "a".repeat(70_000));
    let reply = client::send_raw(service.address, &request("GET", &long, &[], b""));
    assert!([414, 431].contains(&reply.status), "{}", reply.status);
    reply.error(reply.status);
    // A reply of the service itself goes out as it is, also after others on one connection.
    let twice = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /x HTTP/1.1\r\nHost: localhost\r\n\
                 Connection: close\r\n\r\n";
    let reply = client::send_raw(service.address, twice.as_bytes());
    assert_eq!(reply.status, 200);
    assert!(reply.text().contains("HTTP/1.1 404 Not Found"), "{}", reply.text());
}
