//! Where a model computes: every command that loads one takes the same flags and refuses the same.

use serde_json::Value;

use crate::generate::Bench;
use crate::support::{KEY, Run, User, tiny_model, tiny_tokenizer};

/// Runs each command that loads a model with these flags.
fn everywhere(flags: &[&str]) -> Vec<Run> {
    let user = User::new();
    let (key, model, tokenizer) = (user.key("key", KEY), tiny_model("llama"), tiny_tokenizer());
    let text = user.file("text.txt", "the rain");
    let both = ["--model", &model, "--tokenizer", &tokenizer];
    let commands: [&[&str]; 9] = [
        &["generate", "the rain", "--key-file", &key, both[0], both[1], both[2], both[3]],
        &["demo", both[0], both[1], both[2], both[3]],
        &["eval", "quick", both[0], both[1], both[2], both[3]],
        &["eval", "curve", both[0], both[1], both[2], both[3]],
        &["eval", "entropy", both[0], both[1], both[2], both[3]],
        &["power", "--prompt-file", &text, "--model", &model],
        &["inspect", "model", "--ids", "5,6", "--model", &model],
        &["detect", &text, "--entropy", &model, "--key-file", &key, "--tokenizer", &tokenizer],
        &["serve", "--port", "0", "--key-file", &key, both[0], both[1], both[2], both[3]],
    ];
    commands.iter().map(|command| user.run(&[command, flags].concat())).collect()
}

#[test]
fn a_device_that_has_no_such_name_is_refused_with_the_forms() {
    for run in everywhere(&["--device", "gpu"]) {
        run.refused(2, &["device: gpu is not allowed", "auto, cpu, or cuda:N", "cuda:0"]);
    }
    for (flag, value, allowed) in [
        ("--dtype", "f16", "auto, f32 or bf16"),
        ("--sampler", "gpu", "auto or cpu"),
        ("--deterministic", "yes", "off, on (64 rows), or a number of rows, 1 to 512"),
        ("--deterministic", "0", "1 to 512"),
        ("--deterministic", "513", "1 to 512"),
    ] {
        for run in everywhere(&[flag, value]) {
            run.refused(2, &[&format!("{}: {value} is not allowed", &flag[2..]), allowed]);
        }
    }
}

#[cfg(not(feature = "cuda"))]
#[test]
fn a_build_without_cuda_refuses_a_gpu_by_name_and_says_how_to_get_one() {
    for run in everywhere(&["--device", "cuda:0"]) {
        run.refused(2, &["unsupported device cuda:0", "no CUDA", "feature `cuda`"]);
    }
}

#[test]
fn the_cpu_computes_in_the_numbers_of_the_file_only() {
    for run in everywhere(&["--device", "cpu", "--dtype", "bf16"]) {
        run.refused(2, &["unsupported dtype on the CPU bf16", "auto"]);
    }
}

#[test]
fn a_flag_that_no_model_would_read_is_refused() {
    let user = User::new();
    let text = user.file("text.txt", "the rain");
    user.run(&["detect", &text, "--device", "cpu"]).refused(2, &["device", "--entropy"]);
    user.run(&["power", "--spike-entropy", "0.8", "--deterministic"])
        .refused(2, &["deterministic", "--prompt-file"]);
}

#[test]
fn the_cpu_says_where_it_ran_and_is_deterministic_whatever_is_asked() {
    let bench = Bench::new();
    let base = ["the rain", "--seed", "7", "--max-tokens", "20", "--min-tokens", "20"];
    let run = |more: &[&str]| bench.generate(&[&base[..], more].concat());
    let json = |more: &[&str]| run(&[&["--json", "--device", "cpu"], more].concat()).json();
    let plain = json(&[]);
    assert!(plain["kernels"].as_str().unwrap().starts_with("CPU, "), "{plain}");
    assert_eq!(plain.get("drawn_on"), None::<&Value>);
    for more in [
        &["--deterministic"][..],
        &["--deterministic", "off"],
        &["--deterministic", "512"],
        &["--sampler", "cpu", "--dtype", "auto"],
    ] {
        assert_eq!(json(more)["samples"][0]["ids"], plain["samples"][0]["ids"], "{more:?}");
    }
    let said = run(&["--device", "cpu", "--verbose"]);
    let kernels = plain["kernels"].as_str().unwrap();
    assert!(said.stderr.contains(&format!("F32 on {kernels}\n")), "{}", said.block());
    assert!(said.stderr.contains(&format!(" tokens/s on {kernels}\n")), "{}", said.block());
}
