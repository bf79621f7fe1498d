//! What a caller may write for a model, and how it is told apart.

use std::fs;

use greenmark::store::{ModelSpec, Table};
use greenmark::{Error, ErrorKind};

fn parse(text: &str) -> greenmark::Result<ModelSpec> {
    ModelSpec::parse(text, &Table::built_in()?)
}

fn hub(repo: &str, file: Option<&str>) -> ModelSpec {
    ModelSpec::Hub { repo: repo.to_owned(), file: file.map(str::to_owned) }
}

#[test]
fn names_and_aliases_are_the_table() {
    for name in ["default", "smollm2", "smollm2-135m-instruct-q4_1"] {
        let ModelSpec::Named(entry) = parse(name).unwrap() else { panic!("{name}") };
        assert_eq!(entry.name, "smollm2-135m-instruct-q4_1");
    }
}

#[test]
fn an_existing_path_wins() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.gguf");
    fs::write(&file, "x").unwrap();
    for path in [file.as_path(), folder.path()] {
        assert_eq!(parse(path.to_str().unwrap()).unwrap(), ModelSpec::Path(path.to_path_buf()));
    }
}

#[test]
fn repositories_are_told_from_paths() {
    assert_eq!(parse("Qwen/Qwen3-0.6B").unwrap(), hub("Qwen/Qwen3-0.6B", None));
    assert_eq!(parse("a/b:c.gguf").unwrap(), hub("a/b", Some("c.gguf")));
    assert_eq!(parse("a/b:q/c.gguf").unwrap(), hub("a/b", Some("q/c.gguf")));
    assert_eq!(hub("a/b", Some("c.gguf")).to_string(), "a/b:c.gguf");
}

#[test]
fn everything_else_is_refused_with_what_was_tried() {
    for text in [
        "nope",
        "missing.gguf",
        "./a/b",
        "../a/b",
        "/no/such/model",
        "~/model",
        "a\\b",
        "a/b/c",
        "a/b:",
        "a/b:../c",
        "a/b:/etc/passwd",
        "a/b:-x",
        "",
        " ",
        "a/",
        "/b",
        "a b/c",
        "-a/b",
        "http://x/y",
        "DEFAULT",
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(matches!(error, Error::Parameter { name: "model", .. }), "{text}: {error:?}");
        let shown = error.to_string();
        assert!(shown.contains(&format!("{text:?}")), "{shown}");
        assert!(shown.contains("no such file or folder"), "{shown}");
        assert!(shown.contains("default"), "{shown}");
    }
}
