//! `/metrics`: the text format holds, and the figures are true.

use std::collections::BTreeMap;

use serde_json::json;

use crate::access::Guarded;
use crate::service::Service;
use crate::support::{HUMAN, KEY, marked};

/// The samples of a text in the format of `OpenMetrics`, whose rules on names, types and order are
/// asserted.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let mut family: Option<(String, String)> = None;
    let mut described = Vec::new();
    let body = text.strip_suffix("# EOF\n").unwrap_or_else(|| panic!("no end: {text}"));
    let plain = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (word, name, value) =
                (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            assert!(plain(name) && name.starts_with("greenmark_"), "{line}");
            match word {
                "HELP" => {
                    assert!(!described.contains(&name.to_owned()), "described twice: {line}");
                    described.push(name.to_owned());
                    assert!(value.ends_with('.') && !value.ends_with(".."), "{line}");
                }
                "TYPE" => {
                    assert_eq!(described.last().map(String::as_str), Some(name), "{line}");
                    assert!(["counter", "gauge", "histogram", "info"].contains(&value), "{line}");
                    family = Some((name.to_owned(), value.to_owned()));
                }
                "UNIT" => assert!(name.ends_with(&format!("_{value}")), "{line}"),
                other => panic!("{other}: {line}"),
            }
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').unwrap();
        let name = sample.split('{').next().unwrap();
        let (family, kind) = family.as_ref().unwrap();
        let ending = name.strip_prefix(family.as_str()).unwrap_or_else(|| panic!("stray: {line}"));
        let endings: &[&str] = match &**kind {
            "counter" => &["_total"],
            "gauge" => &[""],
            "info" => &["_info"],
            _ => &["_bucket", "_sum", "_count"],
        };
        assert!(endings.contains(&ending), "{line}");
        if let Some(labels) = sample.strip_prefix(name).filter(|labels| !labels.is_empty()) {
            let labels = labels.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
            for label in labels.split(',') {
                let (name, value) = label.split_once('=').unwrap();
                assert!(plain(name) && value.starts_with('"') && value.ends_with('"'), "{line}");
            }
        }
        assert!(samples.insert(sample.to_owned(), value.parse().unwrap()).is_none(), "{line}");
    }
    samples
}

#[test]
fn figures_are_those_of_what_happened() {
    let guarded = Guarded::start(&[], "[access]\npublic_rate = 2\n");
    let marked = json!({"text": marked(300, KEY)});
    for key in [&guarded.reviewer, &guarded.operator, &guarded.public] {
        assert_eq!(guarded.detect(key, &marked).status, 200);
    }
    assert_eq!(guarded.detect(&guarded.public, &json!({"text": HUMAN})).status, 200);
    assert_eq!(guarded.detect(&guarded.public, &json!({"text": HUMAN})).status, 429);
    assert_eq!(guarded.detect(&guarded.reviewer, &json!({"text": ""})).status, 200);
    assert_eq!(guarded.detect("nobody", &marked).status, 401);
    assert_eq!(guarded.detect(&guarded.reviewer, &json!({"text": 5})).status, 422);
    assert_eq!(guarded.get("/nowhere/secret-path", &guarded.operator).status, 404);
    assert_eq!(guarded.get("/metrics", &guarded.reviewer).status, 403);

    let reply = guarded.get("/metrics", &guarded.operator);
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!((reply.status, reply.header("content-type")), (200, Some(media_type)));
    let text = reply.text();
    assert!(!text.contains("secret-path"));
    let samples = parse(text);
    let figure =
        |name: &str| samples.get(name).copied().unwrap_or_else(|| panic!("{name}: {text}"));
    let requests = |method: &str, route: &str, status: u16| {
        let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
        figure(&format!("greenmark_requests_total{{{labels}}}"))
    };
    assert_eq!(requests("POST", "/v1/detect", 200), 5.0);
    assert_eq!(requests("POST", "/v1/detect", 429), 1.0);
    assert_eq!(requests("POST", "/v1/detect", 401), 1.0);
    assert_eq!(requests("POST", "/v1/detect", 422), 1.0);
    assert_eq!(requests("GET", "unmatched", 404), 1.0);
    assert_eq!(requests("GET", "/metrics", 403), 1.0);
    assert_eq!(figure("greenmark_texts_judged_total{verdict=\"watermarked\"}"), 3.0);
    assert_eq!(figure("greenmark_texts_judged_total{verdict=\"not_detected\"}"), 1.0);
    assert_eq!(figure("greenmark_texts_judged_total{verdict=\"insufficient\"}"), 1.0);
    assert!(figure("greenmark_tokens_judged_total") > 900.0);
    assert_eq!(figure("greenmark_judging_duration_seconds_count"), 5.0);
    assert_eq!(figure("greenmark_judging_duration_seconds_bucket{le=\"+Inf\"}"), 5.0);
    assert_eq!(figure("greenmark_request_duration_seconds_count{route=\"/v1/detect\"}"), 8.0);
    for (reason, count) in
        [("rate_limited", 1.0), ("invalid_authorization", 0.0), ("invalid_api_key", 1.0)]
    {
        let name = format!("greenmark_refusals_total{{reason=\"{reason}\"}}");
        assert_eq!(samples.get(&name).copied().unwrap_or_default(), count, "{reason}");
    }
    assert_eq!(figure("greenmark_refusals_total{reason=\"role\"}"), 1.0);
    assert_eq!(figure("greenmark_authentication_failures_total"), 1.0);
    // This request itself.
    assert_eq!(figure("greenmark_requests_in_flight"), 1.0);
    assert_eq!(figure("greenmark_queue_length{queue=\"judging\"}"), 0.0);
    assert_eq!(figure("greenmark_audit_failures_total"), 0.0);
    assert_eq!(figure("greenmark_access_log_failures_total"), 0.0);
    assert!(figure("greenmark_uptime_seconds") > 0.0);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(figure(&format!("greenmark_build_info{{version=\"{version}\"}}")), 1.0);
}

#[test]
fn without_keys_the_machine_itself_may_look() {
    let service = Service::tiny(&[]);
    let samples = parse(service.get("/metrics").text());
    assert_eq!(samples["greenmark_requests_in_flight"], 1.0);
    assert_eq!(samples["greenmark_tokens_judged_total"], 0.0);
}
