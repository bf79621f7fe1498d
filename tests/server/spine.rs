//! What every route shares.

use crate::service::Service;

#[test]
fn health_and_ready_answer() {
    let service = Service::tiny(&[]);
    let health = service.get("/health");
    assert_eq!((health.status, health.text()), (200, r#"{"status":"ok"}"#));
    assert_eq!(health.header("x-request-id").map(str::len), Some(32));
    let ready = service.get("/ready");
    assert_eq!((ready.status, ready.text()), (200, r#"{"status":"ready"}"#));
}

#[test]
fn errors_have_one_shape() {
    let service = Service::tiny(&[]);
    let (code, message) = service.get("/nowhere").error(404);
    assert_eq!(code, "unknown_path");
    assert!(message.contains("/nowhere"), "{message}");
    let reply = service.post_bytes("/health", b"{}");
    assert_eq!(reply.error(405).0, "method_not_allowed");
    assert_eq!(reply.header("allow"), Some("GET,HEAD"));
}

#[test]
fn told_to_end_it_ends_well() {
    let mut service = Service::tiny(&[]);
    service.signal("TERM");
    assert_eq!(service.wait(), Some(0));
}
