//! The shape of the code, held by tests: imports point one way, the detector has no candle,
//! `unsafe` stays where it is listed.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "a test fails by panicking; its numbers are small and exact"
)]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modules in the order of their dependencies (`docs/architecture.md`): each uses only what
/// stands before it.
const ORDER: [&str; 16] = [
    "error",
    "token",
    "prf",
    "stats",
    "profile",
    "scheme",
    "detect",
    "sample",
    "format",
    "text",
    "document",
    "extract",
    "signature",
    "store",
    "engine",
    "server",
];

/// The only files that may hold `unsafe`: kernels, their launches and the memory map.
const UNSAFE_FILES: [&str; 6] = [
    "src/engine/cpu/blocks_x86.rs",
    "src/engine/cpu/kernels.rs",
    "src/engine/cpu/lanes.rs",
    "src/engine/cuda/launch.rs",
    "src/engine/cuda/sampler.rs",
    "src/format/map.rs",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Source lines without comments.
fn code_lines(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter(|line| !line.trim_start().starts_with("//"))
}

/// The modules that `source`, a file of `module`, imports although they do not stand above it.
fn wrong_imports(module: &str, source: &str) -> Vec<String> {
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    let own = place(module).unwrap_or_else(|| panic!("module {module} is not in the order"));
    let mut wrong = Vec::new();
    for line in code_lines(source) {
        // A group would hide what follows; one path a line keeps this check simple.
        if line.contains("crate::{") {
            wrong.push(format!("{module} imports a group from the root: {}", line.trim()));
        }
        for after in line.split("crate::").skip(1) {
            let name: String =
                after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if name != module && place(&name).is_some_and(|other| other > own) {
                wrong.push(format!("{module} uses {name}: {}", line.trim()));
            }
        }
    }
    wrong
}

/// The top-level module of a file under `src`.
fn module_of(path: &Path) -> String {
    let relative = path.strip_prefix(root().join("src")).unwrap();
    let first = relative.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

#[test]
fn imports_point_one_way() {
    let mut wrong = Vec::new();
    for path in rust_files(&root().join("src")) {
        let module = module_of(&path);
        if module != "lib" {
            wrong.extend(wrong_imports(&module, &fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_planted_wrong_import_is_found() {
    assert_eq!(wrong_imports("stats", "use crate::detect::Report;\n").len(), 1);
    assert_eq!(wrong_imports("stats", "    let x = crate::engine::run();\n").len(), 1);
    assert_eq!(wrong_imports("stats", "use crate::{engine::Model, error::Error};\n").len(), 1);
    assert!(wrong_imports("detect", "use crate::stats::PValue;\n// crate::engine\n").is_empty());
}

#[test]
fn top_level_files_reach_others_by_their_full_path_only() {
    for path in rust_files(&root().join("src")) {
        if path.parent() == Some(&root().join("src")) {
            let source = fs::read_to_string(&path).unwrap();
            let relative = code_lines(&source).find(|line| line.contains("super::"));
            assert_eq!(relative, None, "{}", path.display());
        }
    }
}

#[test]
fn every_module_of_the_library_is_in_the_order() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let declared: Vec<&str> = code_lines(&lib)
        .filter_map(|line| line.strip_prefix("pub mod "))
        .map(|rest| rest.trim_end_matches(';'))
        .collect();
    assert_eq!(declared, ORDER);
}

#[test]
fn the_detector_build_has_no_candle() {
    let tree = |features: &[&str]| {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--edges", "normal", "--prefix", "none", "--locked"])
            .args(features)
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let holds_candle = |text: &str| text.lines().any(|line| line.starts_with("candle"));
    assert!(!holds_candle(&tree(&["--no-default-features", "--features", "cli"])));
    assert!(holds_candle(&tree(&[])), "the check itself must be able to fail");
}

#[test]
fn only_the_engine_names_candle() {
    for path in rust_files(&root().join("src")) {
        let source = fs::read_to_string(&path).unwrap();
        let named = code_lines(&source).any(|line| line.contains("candle_"));
        assert!(!named || module_of(&path) == "engine", "{} names candle", path.display());
    }
}

#[test]
fn unsafe_code_stays_where_it_is_listed() {
    let found: Vec<String> = ["src", "bin"]
        .iter()
        .flat_map(|folder| rust_files(&root().join(folder)))
        .filter(|path| {
            let source = fs::read_to_string(path).unwrap();
            code_lines(&source).any(|line| line.contains("unsafe "))
        })
        .map(|path| path.strip_prefix(root()).unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(found, UNSAFE_FILES);
    for file in UNSAFE_FILES {
        let source = fs::read_to_string(root().join(file)).unwrap();
        let blocks = code_lines(&source).filter(|line| line.contains("unsafe {")).count();
        let reasons = source.matches("SAFETY:").count();
        assert!(reasons >= blocks, "{file}: {blocks} unsafe blocks, {reasons} SAFETY lines");
    }
}

#[test]
fn no_source_file_is_longer_than_a_reader_can_hold() {
    for folder in ["src", "bin", "tests"] {
        for path in rust_files(&root().join(folder)) {
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            assert!(lines <= 600, "{} has {lines} lines", path.display());
        }
    }
}

/// The committed PTX says of which source it was made.
#[test]
fn ptx_is_not_older_than_its_source() {
    use sha2::{Digest, Sha256};
    let folder = root().join("src/engine/kernels");
    let mut sources: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "cuh"));
    sources.sort();
    for name in ["layers", "sampler"] {
        let mut hash = Sha256::new();
        for source in &sources {
            // The layers are one file, the sampler all others.
            if source.ends_with("layers.cuh") == (name == "layers") {
                hash.update(fs::read(source).unwrap());
            }
        }
        let mut expected = String::from("// Made of source with SHA-256 ");
        for byte in hash.finalize() {
            write!(expected, "{byte:02x}").unwrap();
        }
        let ptx = fs::read_to_string(folder.join(format!("{name}.ptx"))).unwrap();
        assert_eq!(ptx.lines().next().unwrap(), expected, "{name}.ptx: run tools/gpu-ptx");
    }
}
