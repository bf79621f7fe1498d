//! CORS: nothing by default, listed origins only, never credentials.

use crate::access::Guarded;
use crate::client::{Reply, send};
use crate::service::Service;
use crate::support::User;

const PREFLIGHT: [(&str, &str); 2] = [
    ("Access-Control-Request-Method", "POST"),
    ("Access-Control-Request-Headers", "authorization,content-type"),
];

fn from<'a>(origin: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&[("Origin", origin)], more].concat()
}

fn has_cors(reply: &Reply) -> bool {
    reply.headers.iter().any(|(name, _)| name.to_ascii_lowercase().starts_with("access-control"))
}

#[test]
fn h09_no_origin_is_allowed_by_default() {
    let guarded = Guarded::start(&[], "");
    let address = guarded.service.address;
    let bearer = format!("Bearer {}", guarded.operator);
    let key = [("Authorization", &*bearer), ("Content-Type", "application/json")];
    for (method, path, body) in [
        ("GET", "/health", ""),
        ("GET", "/metrics", ""),
        ("POST", "/v1/detect", "{\"text\":\"a\"}"),
        ("GET", "/nowhere", ""),
    ] {
        let reply =
            send(address, method, path, &from("https://evil.example", &key), body.as_bytes());
        assert_eq!(reply.status, if path == "/nowhere" { 404 } else { 200 });
        assert!(!has_cors(&reply), "{path}: {:?}", reply.headers);
    }
    let headers = from("https://evil.example", &PREFLIGHT);
    let reply = send(address, "OPTIONS", "/v1/detect", &headers, b"");
    assert!(!has_cors(&reply) && reply.status >= 400, "{}", reply.status);
}

#[test]
fn h09_only_listed_origins_are_allowed() {
    let config = "[access]\ncors_origins = [\"https://desk.example\", \"http://localhost:3000\"]\n";
    let guarded = Guarded::start(&[], config);
    let address = guarded.service.address;
    let bearer = format!("Bearer {}", guarded.reviewer);
    let key = [("Authorization", &*bearer), ("Content-Type", "application/json")];
    let post = |origin: &str, headers: &[(&str, &str)]| {
        send(address, "POST", "/v1/detect", &from(origin, headers), b"{\"text\":\"a\"}")
    };
    for origin in ["https://desk.example", "http://localhost:3000"] {
        let reply = post(origin, &key);
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
        assert_eq!(reply.header("access-control-allow-credentials"), None);
        assert!(reply.header("vary").unwrap().to_lowercase().contains("origin"));
        let exposed = reply.header("access-control-expose-headers").unwrap();
        assert!(exposed.contains("x-request-id") && exposed.contains("retry-after"));
        // A page can read why it was refused.
        let reply = post(origin, &[]);
        assert_eq!(reply.error(401).0, "missing_api_key");
        assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
        // A preflight carries no key.
        let reply = send(address, "OPTIONS", "/v1/detect", &from(origin, &PREFLIGHT), b"");
        assert_eq!((reply.status, reply.body.len()), (200, 0));
        assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
        assert_eq!(reply.header("access-control-allow-methods"), Some("GET,POST"));
        let allowed = reply.header("access-control-allow-headers").unwrap();
        assert!(allowed.contains("authorization") && allowed.contains("content-type"));
    }
    for origin in
        ["https://evil.example", "https://desk.example.evil", "http://desk.example", "null"]
    {
        let reply = post(origin, &key);
        assert_eq!(reply.header("access-control-allow-origin"), None, "{origin}");
        assert!(reply.header("vary").unwrap().to_lowercase().contains("origin"));
        let reply = send(address, "OPTIONS", "/v1/detect", &from(origin, &PREFLIGHT), b"");
        assert_eq!(reply.header("access-control-allow-origin"), None, "{origin}");
    }
    // What is no preflight is an ordinary request.
    assert_eq!(send(address, "GET", "/health", &[], b"").status, 200);
}

#[test]
fn h09_an_origin_that_no_browser_sends_is_refused_at_the_start() {
    let user = User::new();
    for origin in [
        "*",
        "null",
        "desk.example",
        "https://desk.example/",
        "https://*.example",
        "https://Desk.example",
        "https://desk.example:443",
        "http://desk.example:80",
        "https://desk.example:",
        "https://a@desk.example",
        "https://",
        "https://a b",
    ] {
        user.run(&["serve", "--offline", "--port", "0", "--cors-origin", origin])
            .refused(2, &["cors_origins", "https://desk.example"]);
    }
    let service =
        Service::tiny(&["--cors-origin", "https://[::1]:8443", "--cors-origin", "app://desk"]);
    assert_eq!(service.get("/health").status, 200);
}
