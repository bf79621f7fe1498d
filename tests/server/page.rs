//! The reviewer's page: what it is made of and what a browser may do with it.

use crate::client::Reply;
use crate::service::Service;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' \
                      data:; connect-src 'self'; form-action 'none'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// The quoted strings of `text` that start with `start`.
fn quoted<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    text.split('"').filter(|part| part.starts_with(start) && !part.contains('\n')).collect()
}

/// Everything that the two pages load, by following what they name.
fn files(service: &Service) -> Vec<(String, Reply)> {
    let mut waiting: Vec<String> = ["/", "/docs"].map(str::to_owned).to_vec();
    let mut found: Vec<(String, Reply)> = Vec::new();
    while let Some(path) = waiting.pop() {
        if found.iter().any(|(known, _)| *known == path) {
            continue;
        }
        let reply = service.get(&path);
        assert_eq!(reply.status, 200, "{path}");
        waiting.extend(quoted(reply.text(), "/page/").into_iter().map(str::to_owned));
        found.push((path, reply));
    }
    found
}

#[test]
fn every_file_comes_from_the_service_under_a_strict_policy() {
    let service = Service::tiny(&[]);
    let files = files(&service);
    assert_eq!(files.len(), 14);
    for (path, reply) in &files {
        assert_eq!(reply.header("content-security-policy"), Some(POLICY), "{path}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(reply.header("set-cookie"), None, "{path}");
        let media_type = match path.rsplit_once('.') {
            Some((_, "js")) => "text/javascript; charset=utf-8",
            Some((_, "css")) => "text/css; charset=utf-8",
            _ => "text/html; charset=utf-8",
        };
        assert_eq!(reply.header("content-type"), Some(media_type), "{path}");
        for elsewhere in ["http:", "https:", "\"//", "url(", "@import"] {
            assert!(!reply.text().contains(elsewhere), "{path} names {elsewhere}");
        }
    }
}

#[test]
fn pages_hold_no_inline_code_and_scripts_read_no_markup() {
    let service = Service::tiny(&[]);
    for (path, reply) in files(&service) {
        let text = reply.text();
        let extension = path.rsplit_once('.').map(|(_, extension)| extension);
        if extension == Some("js") {
            for reader in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "DOMParser",
                ".style",
                "cookie",
                "localStorage",
            ] {
                assert!(!text.contains(reader), "{path} uses {reader}");
            }
        } else if extension.is_none() {
            assert_eq!(
                text.matches("<script").count(),
                text.matches("<script type=\"module\" src=\"/page/").count()
            );
            for inline in ["<style", " style=", " onclick=", " onload=", "javascript:"] {
                assert!(!text.contains(inline), "{path} holds {inline}");
            }
        }
    }
}

#[test]
fn the_words_never_call_a_text_human_written() {
    let service = Service::tiny(&[]);
    let words = service.get("/page/words.js");
    assert!(words.text().contains("not evidence that a person wrote the text"));
    for (path, reply) in files(&service) {
        let text = reply.text().to_lowercase();
        for claim in ["human-written", "human written", "written by a human"] {
            assert!(!text.contains(claim), "{path} says {claim}");
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_an_error_of_the_one_shape() {
    let service = Service::tiny(&[]);
    for path in ["/page/none.js", "/page/..%2fconfig.rs", "/page/Page.js"] {
        assert_eq!(service.get(path).error(404).0, "unknown_path", "{path}");
    }
}
