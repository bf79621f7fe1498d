//! What stands beside a text: `wm generate --out` and what `wm detect` makes of it.

use serde_json::Value;

use crate::generate::Bench;
use crate::support::{KEY, read};

#[test]
fn the_sidecar_rules() {
    let bench = Bench::new();
    let out = bench.user.path("answer.txt").display().to_string();
    let flags = ["the rain", "--seed", "7", "--max-tokens", "60", "--gamma", "0.25", "--out", &out];
    let run = bench.generate(&flags);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.block());
    let sidecar: Value = serde_json::from_str(&read(format!("{out}.wm.json"))).unwrap();
    assert_eq!(sidecar["profile"]["scheme"]["gamma"], 0.25);
    let entropies = sidecar["entropies"].as_array().unwrap();
    assert_eq!(entropies[0]["byte"], 0);
    assert!(entropies.iter().all(|entry| entry["nats"].as_f64().unwrap() >= 0.0));
    assert!(!read(format!("{out}.wm.json")).contains(KEY));

    let detect = |more: &[&str]| {
        let base = [
            "detect",
            &out,
            "--json",
            "--key-file",
            &bench.flags[5],
            "--tokenizer",
            &bench.flags[3],
        ];
        bench.user.run(&[&base[..], more].concat())
    };
    detect(&[]).refused(2, &["gamma disagrees", "0.5", "0.25", "--sidecar", "--ignore-sidecar"]);
    let followed = detect(&["--sidecar"]).json();
    assert_eq!(followed["profile"]["scheme"]["gamma"], 0.25);
    assert_eq!(followed["generation"]["seed"], 7);
    assert_eq!(detect(&["--ignore-sidecar"]).json()["profile"]["scheme"]["gamma"], 0.5);
    assert_eq!(detect(&["--gamma", "0.25"]).json()["generation"]["seed"], 7);
    detect(&["--sidecar", "--gamma", "0.5"]).refused(2, &["gamma disagrees", "command line"]);
    assert_eq!(detect(&["--sidecar", "--gamma", "0.25"]).json()["scored"], followed["scored"]);
    detect(&["--gamma", "0.25", "--delta", "3"]).refused(2, &["delta disagrees", "3", "2"]);
    assert_eq!(detect(&["--gamma", "0.25"]).json()["profile"], sidecar["profile"]);
    // A folder never loads one.
    let folder = bench.user.path("").display().to_string();
    std::fs::create_dir(bench.user.path("only")).unwrap();
    std::fs::copy(&out, bench.user.path("only/answer.txt")).unwrap();
    std::fs::copy(format!("{out}.wm.json"), bench.user.path("only/answer.txt.wm.json")).unwrap();
    let only = format!("{folder}only");
    let base =
        ["detect", &only, "--json", "--key-file", &bench.flags[5], "--tokenizer", &bench.flags[3]];
    let run = bench.user.run(&base);
    // The second record is the summary of the run.
    let first: serde_json::Value =
        serde_json::from_str(run.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["report"]["profile"]["scheme"]["gamma"], 0.5);
    // A changed text has no sidecar any more.
    std::fs::write(&out, "something else entirely").unwrap();
    let json = detect(&[]).json();
    assert_eq!(json["warnings"][0]["code"], "stale_sidecar");
    detect(&["--sidecar"]).refused(2, &["text SHA-256 disagrees"]);
    let args =
        ["detect", "-", "--sidecar", "--key-file", &bench.flags[5], "--tokenizer", &bench.flags[3]];
    bench.user.run_with_stdin(&args, b"text").refused(2, &["sidecar", "standard input"]);
    assert!(json.get("generation").is_none());
}

#[test]
fn a_profile_file_and_a_sidecar_that_differ_stop_the_run() {
    let bench = Bench::new();
    let out = bench.user.path("f.txt").display().to_string();
    bench.generate(&[
        "the rain",
        "--seed",
        "7",
        "--max-tokens",
        "60",
        "--context-prompt",
        "none",
        "--out",
        &out,
    ]);
    let flags = ["--key-file", &bench.flags[5], "--tokenizer", &bench.flags[3]];
    let shown = bench.user.run(&[&["profile", "show"][..], &flags].concat()).stdout;
    let profile = bench.user.file("p.json", shown);
    bench
        .user
        .run(&[&["detect", &out, "--profile", &profile][..], &flags].concat())
        .refused(2, &["context prompt disagrees", "tail", "none", "--ignore-sidecar"]);
}

#[test]
fn a_rule_for_the_prompt_is_no_reason_to_refuse_a_sidecar() {
    let bench = Bench::new();
    let out = bench.user.path("c.txt").display().to_string();
    let flags = ["the rain", "--seed", "7", "--max-tokens", "60", "--context-prompt", "none"];
    bench.generate(&[&flags[..], &["--out", &out]].concat());
    let prompt = bench.user.file("p.txt", "the rain");
    let base =
        ["detect", &out, "--json", "--key-file", &bench.flags[5], "--tokenizer", &bench.flags[3]];
    let json = bench.user.run(&base).json();
    assert_eq!(json["profile"]["context"]["prompt"], "none");
    // Nor does a prompt seed what the rule left unmarked.
    let with = bench.user.run(&[&base[..], &["--prompt-file", &prompt]].concat()).json();
    assert_eq!(with["skipped"]["prefix"], 1);
}
