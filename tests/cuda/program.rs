//! The program `wm` on a device: the text is that of the CPU, and the detector finds the mark.

use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::device::{device, is_mock};
use crate::fixtures::checkpoint;

const TOKENIZER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/models/tokenizer-300.json");

/// A user with folders of their own.
struct User(TempDir);

impl User {
    fn new() -> Self {
        device();
        Self(TempDir::new().unwrap())
    }

    fn wm(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_wm"))
            .args(args)
            .env("XDG_CONFIG_HOME", self.0.path().join("config"))
            .env("WM_CACHE", self.0.path().join("cache"))
            .output()
            .unwrap()
    }

    fn generate(&self, extra: &[&str]) -> Value {
        let model = checkpoint("qwen3");
        let model = model.to_str().unwrap();
        let mut args = vec![
            "generate",
            "--model",
            model,
            "--tokenizer",
            TOKENIZER,
            "the rain",
            "--seed",
            "7",
            "--max-tokens",
            "120",
            "--json",
        ];
        args.extend(extra);
        let output = self.wm(&args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["samples"][0].clone()
    }
}

#[test]
fn a_text_is_that_of_the_cpu_and_its_mark_is_found() {
    let user = User::new();
    let cpu = user.generate(&["--device", "cpu"]);
    assert_eq!(cpu["ids"].as_array().unwrap().len(), 120, "{cpu}");
    for extra in [
        &["--device", "cuda:0"][..],
        &["--device", "cuda:0", "--sampler", "cpu"],
        &["--device", "cuda:0", "--deterministic", "16"],
        &["--device", "cuda:0", "--dtype", "f32"],
    ] {
        let found = user.generate(extra);
        assert_eq!(found["text"], cpu["text"], "{extra:?}");
        assert_eq!(found["ids"], cpu["ids"], "{extra:?}");
    }
    // By its ids: what a model without sense writes is no text that gives its ids back.
    let file = user.0.path().join("ids.json");
    std::fs::write(&file, cpu["ids"].to_string()).unwrap();
    let file = file.to_str().unwrap();
    let output = user.wm(&["detect", "--ids", file, "--tokenizer", TOKENIZER, "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &report["verdict"]), (Some(10), &"watermarked".into()));
    assert!(report["z"].as_f64().unwrap() > 4.0, "{report}");
}

#[test]
fn what_the_device_lacks_is_named() {
    let user = User::new();
    let model = checkpoint("qwen3");
    let args = [
        "generate",
        "--model",
        model.to_str().unwrap(),
        "--tokenizer",
        TOKENIZER,
        "the rain",
        "--device",
        "cuda:0",
        "--mirostat",
        "2",
    ];
    let output = user.wm(&args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("mirostat") && errors.contains("--sampler cpu"), "{errors}");
    let with_cpu: Vec<&str> = args.iter().copied().chain(["--sampler", "cpu"]).collect();
    assert!(user.wm(&with_cpu).status.success());
}

#[test]
fn the_doctor_sees_the_device() {
    let output = User::new().wm(&["doctor", "--json", "--offline"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let first = &report["devices"]["devices"][0];
    assert_eq!(first["device"], "cuda:0", "{report}");
    assert_eq!(is_mock(), first["name"].as_str().unwrap().contains("mock"), "{report}");
    assert!(report["devices"]["driver"].is_string(), "{report}");
}
