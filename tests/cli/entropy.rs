//! `wm detect --entropy` from a sidecar and from a model, and `wm power`.

use serde_json::Value;

use crate::generate::Bench;
use crate::support::{read, tiny_model};

fn written(bench: &Bench) -> String {
    let out = bench.user.path("answer.txt").display().to_string();
    let flags = ["the rain", "--seed", "7", "--max-tokens", "80", "--min-tokens", "80"];
    let run = bench.generate(&[&flags[..], &["--delta", "1.5", "--out", &out]].concat());
    assert_eq!(run.code, 0, "{}", run.block());
    assert!(run.stderr.contains("tokens could carry it, chance to detect it"), "{}", run.stderr);
    out
}

fn detect(bench: &Bench, out: &str, more: &[&str]) -> crate::support::Run {
    let flags = ["--key-file", &bench.flags[5], "--tokenizer", &bench.flags[3], "--delta", "1.5"];
    bench.user.run(&[&["detect", out][..], &flags, more].concat())
}

#[test]
fn a_model_that_reads_the_text_agrees_with_the_sidecar_of_its_generation() {
    let bench = Bench::new();
    let out = written(&bench);
    let prompt = bench.user.file("prompt.txt", "the rain");
    let base = ["--json", "--details", "--prompt-file", &prompt];
    let beside = detect(&bench, &out, &[&base[..], &["--entropy"]].concat()).json();
    let model = tiny_model("llama");
    let read_back = detect(&bench, &out, &[&base[..], &["--entropy", &model]].concat()).json();
    assert_eq!(beside["entropy"]["source"]["kind"], "sidecar");
    assert_eq!(read_back["entropy"]["source"], serde_json::json!({"kind": "model", "name": model}));
    for report in [&beside, &read_back] {
        assert_eq!(report["entropy"]["sampling"]["status"], "known");
        assert_eq!(report["hypotheses"], 2);
        assert_eq!(report["tests"][1]["name"], "green-list (likelihood ratio)");
        let rules: Vec<&str> = report["entropy"]["tests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|test| test["rule"].as_str().unwrap())
            .collect();
        assert_eq!(rules, ["sweet", "ewd", "step_average", "likelihood_ratio"]);
        assert!(report["entropy"]["sentence"].as_str().unwrap().contains("could carry a mark"));
    }
    // Up to the first token that decoding and encoding do not give back, both know the same.
    let mut compared = 0;
    let details = |report: &Value| report["token_details"].as_array().unwrap().clone();
    for (one, other) in details(&beside).iter().zip(&details(&read_back)) {
        let Some(one) = one["weight"].as_f64() else { break };
        let other = other["weight"].as_f64().unwrap();
        assert!((one - other).abs() < 1e-9, "{one} {other}");
        compared += 1;
    }
    assert!(compared > 0, "this text begins with a token that comes back");
    // Without the sidecar nothing is known of the sampling.
    let assumed = detect(&bench, &out, &["--json", "--ignore-sidecar", "--entropy", &model]).json();
    assert_eq!(assumed["entropy"]["sampling"]["status"], "assumed");
    // Without --entropy nothing changes.
    assert!(detect(&bench, &out, &["--json"]).json().get("entropy").is_none());
    let text = detect(&bench, &out, &["--entropy"]).stdout;
    assert!(text.contains("likelihood_ratio") && text.contains("if marked"), "{text}");
}

#[test]
fn generate_promises_what_each_command_delivers() {
    let bench = Bench::new();
    let flags = ["the rain", "--seed", "7", "--max-tokens", "80", "--min-tokens", "80", "--json"];
    let run = bench.generate(&[&flags[..], &["--delta", "1.5"]].concat());
    let expected = &run.json()["samples"][0]["expected"];
    // Q(4) for the plain count; half of it where the likelihood ratio is a second family.
    for (test, alpha) in [("plain", 3.167_124e-5), ("likelihood_ratio", 1.583_562e-5)] {
        let found = expected[test]["alpha"].as_f64().unwrap();
        assert!((found / alpha - 1.0).abs() < 1e-6, "{test} {found}");
    }
    let power = expected["plain"]["power"].as_f64().unwrap();
    assert!((0.01..=0.99).contains(&power), "{power}");
    let words = format!("chance to detect it {:.0}%,", power * 100.0);
    assert!(run.stderr.contains(&words), "{words}: {}", run.stderr);
}

#[test]
fn a_text_in_the_place_of_a_model_is_named() {
    let bench = Bench::new();
    let text = bench.user.file("text.txt", "some words");
    let flags = ["--key-file", &bench.flags[5], "--tokenizer", &bench.flags[3]];
    bench
        .user
        .run(&[&["detect", "--entropy", &text][..], &flags].concat())
        .refused(2, &["put the text first"]);
}

#[test]
fn an_old_sidecar_still_serves_and_says_what_it_lacks() {
    let bench = Bench::new();
    let out = written(&bench);
    let beside = format!("{out}.wm.json");
    let mut sidecar: Value = serde_json::from_str(&read(&beside)).unwrap();
    for entry in sidecar["entropies"].as_array_mut().unwrap() {
        let entry = entry.as_object_mut().unwrap();
        assert!(entry.remove("id").is_some() && entry.remove("chances").is_some());
    }
    std::fs::write(&beside, sidecar.to_string()).unwrap();
    assert_ne!(detect(&bench, &out, &["--json"]).code, 2);
    // A number that cannot be is refused by its place.
    sidecar["entropies"][3]["nats"] = (-1).into();
    std::fs::write(&beside, sidecar.to_string()).unwrap();
    detect(&bench, &out, &["--json"]).refused(2, &["entropies[3]"]);
}

#[test]
fn power_from_every_kind_of_profile() {
    let bench = Bench::new();
    let out = written(&bench);
    let power = |more: &[&str]| bench.user.run(&[&["power", "--json"][..], more].concat());
    // Chance of green .75 against .5 at alpha .01 in 10 tokens: all 10 or 9 green are too few...
    let chances = bench.user.file("chances.json", "[0.7, 0.8]");
    let plan = power(&["--entropy-profile", &chances, "--tokens", "10", "--alpha", "0.011"]).json();
    // P(X >= 9) = 11/1024 = .0107: nine or ten green, .75^10 + 10 * .75^9 * .25 = .2440.
    assert!((plan["power"].as_f64().unwrap() - 0.244_025_2).abs() < 1e-6, "{plan}");
    let lists = bench.user.file("lists.json", "[[0.5, 0.5], [1.0]]");
    let plan = power(&["--entropy-profile", &lists]).json();
    assert!(plan["tokens"].as_u64().unwrap() > 50 && plan["power"].as_f64().unwrap() >= 0.9);
    let beside = format!("{out}.wm.json");
    // Of 80 steps the first has no context in a detection.
    let plan = power(&["--entropy-profile", &beside, "--delta", "1.5", "--tokens", "60"]).json();
    assert_eq!((plan["source"].as_str(), plan["steps"].as_u64()), (Some("sidecar"), Some(79)));
    assert!(plan["likelihood_ratio_z"].as_f64() >= plan["z"].as_f64());
    power(&["--entropy-profile", &beside]).refused(2, &["gamma and delta disagrees"]);
    let plan = power(&["--spike-entropy", "0.9"]).json();
    assert_eq!(plan["source"], "spike_entropy");
    power(&["--spike-entropy", "0.1"]).refused(2, &["spike_entropy"]);
    power(&[]).refused(2, &["--entropy-profile"]);
    // A certain text holds no mark however long it is.
    let certain = bench.user.file("certain.json", "[[1.0]]");
    let plan = power(&["--entropy-profile", &certain]).json();
    assert_eq!(
        (plan["tokens"].clone(), plan["tokens_status"].as_str()),
        (Value::Null, Some("out_of_reach"))
    );
}
