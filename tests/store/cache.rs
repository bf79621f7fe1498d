//! Where the cache is.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use greenmark::ErrorKind;
use greenmark::store::{Store, cache_root};

fn root(variables: &[(&str, &str)]) -> greenmark::Result<PathBuf> {
    let map: HashMap<&str, &str> = variables.iter().copied().collect();
    cache_root(|name| map.get(name).map(OsString::from))
}

#[test]
fn the_first_variable_that_is_set_decides() {
    let all = [("WM_CACHE", "/w"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
    assert_eq!(root(&all).unwrap(), PathBuf::from("/w"));
    assert_eq!(root(&all[1..]).unwrap(), PathBuf::from("/x/wm"));
    assert_eq!(root(&all[2..]).unwrap(), PathBuf::from("/h/.cache/wm"));
}

#[test]
fn empty_and_relative_values_are_passed_over() {
    let home = ("HOME", "/h");
    assert_eq!(root(&[("WM_CACHE", ""), home]).unwrap(), PathBuf::from("/h/.cache/wm"));
    assert_eq!(root(&[("XDG_CACHE_HOME", "x"), home]).unwrap(), PathBuf::from("/h/.cache/wm"));
    let error = root(&[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Environment);
    assert!(error.to_string().contains("WM_CACHE"), "{error}");
}

#[test]
fn a_store_names_its_files_without_making_them() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("cache");
    let store = Store::at(&root).unwrap();
    let entry = store.table().find("default").unwrap();
    assert_eq!(
        store.path_of(entry),
        root.join("smollm2-135m-instruct-q4_1").join("SmolLM2-135M-Instruct.Q4_1.gguf")
    );
    assert!(!root.exists());
}
