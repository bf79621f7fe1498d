//! The program `wm` on a device: the text is that of the CPU, and the detector finds the mark.

use std::os::unix::fs::PermissionsExt;
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

    /// A key of their own, always the same.
    fn key(&self) -> String {
        let path = self.0.path().join("key");
        if !path.exists() {
            std::fs::write(&path, "05".repeat(32)).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        path.to_str().unwrap().to_owned()
    }

    /// The ids and the text.
    fn generate(&self, extra: &[&str]) -> (Value, String) {
        let (model, key) = (checkpoint("qwen3"), self.key());
        let model = model.to_str().unwrap();
        let mut args = vec!["generate", "--model", model, "--tokenizer", TOKENIZER, "the rain"];
        args.extend(["--key-file", &key, "--delta", "6", "--seed", "7"]);
        args.extend(["--max-tokens", "240", "--json"]);
        args.extend(extra);
        let output = self.wm(&args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
        let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
        // The default is a fixed shape, for the one text that is asked for.
        if extra == ["--device", "cuda:0"] {
            let kernels = report["kernels"].as_str().unwrap();
            assert!(kernels.ends_with("8 rows a pass"), "{kernels}");
        }
        let sample = report["samples"][0].take();
        (sample["ids"].clone(), sample["text"].as_str().unwrap().to_owned())
    }
}

#[test]
fn a_text_is_that_of_the_cpu_and_its_mark_is_found() {
    let user = User::new();
    let cpu = user.generate(&["--device", "cpu"]);
    assert_eq!(cpu.0.as_array().unwrap().len(), 240);
    for extra in [
        &["--device", "cuda:0"][..],
        &["--device", "cuda:0", "--sampler", "cpu"],
        &["--device", "cuda:0", "--deterministic", "16"],
        &["--device", "cuda:0", "--dtype", "f32", "--deterministic", "off"],
    ] {
        assert_eq!(user.generate(extra), cpu, "{extra:?}");
    }
    let file = user.0.path().join("text.txt");
    std::fs::write(&file, cpu.1).unwrap();
    let (file, key) = (file.to_str().unwrap(), user.key());
    let args = ["detect", file, "--tokenizer", TOKENIZER, "--key-file", &key, "--json"];
    let output = user.wm(&args);
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
    assert_eq!(output.status.code(), Some(0));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let first = &report["devices"]["devices"][0];
    assert_eq!(first["device"], "cuda:0", "{report}");
    assert_eq!(is_mock(), first["name"].as_str().unwrap().contains("mock"), "{report}");
    assert!(report["devices"]["driver"].is_string(), "{report}");
}
