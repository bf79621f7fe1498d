//! `wm generate` with a tiny checkpoint: what the flags do, in milliseconds.

use serde_json::Value;

use crate::support::{KEY, User, read, tiny_model, tiny_tokenizer};

pub(crate) struct Bench {
    pub(crate) user: User,
    /// Model, tokenizer and key, each behind its flag.
    pub(crate) flags: Vec<String>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let user = User::new();
        let key = user.key("team.key", KEY);
        let flags = vec![
            "--model".into(),
            tiny_model("llama"),
            "--tokenizer".into(),
            tiny_tokenizer(),
            "--key-file".into(),
            key,
        ];
        Self { user, flags }
    }

    pub(crate) fn generate(&self, more: &[&str]) -> crate::support::Run {
        let mut args = vec!["generate"];
        args.extend(self.flags.iter().map(String::as_str));
        args.extend(more);
        self.user.run(&args)
    }

    /// The only sample of a run that prints JSON.
    fn sample(&self, more: &[&str]) -> Value {
        let base =
            ["the rain", "--json", "--seed", "7", "--max-tokens", "60", "--min-tokens", "60"];
        self.generate(&[&base[..], more].concat()).json()["samples"][0].clone()
    }
}

#[test]
fn w15_delta_zero_equals_no_watermark_and_a_large_delta_is_all_green() {
    let bench = Bench::new();
    let plain = bench.sample(&["--no-watermark"]);
    assert_eq!(plain["ids"].as_array().unwrap().len(), 60);
    assert_eq!(bench.sample(&["--delta", "0"])["ids"], plain["ids"]);
    assert_ne!(bench.sample(&["--delta", "2"])["ids"], plain["ids"]);
    let green = bench.sample(&["--delta", "50"]);
    let ids = bench.user.file("ids.json", green["ids"].to_string());
    let report = bench
        .user
        .run(&[
            "detect",
            "--ids",
            &ids,
            "--key-file",
            &bench.flags[5],
            "--tokenizer",
            &bench.flags[3],
            "--json",
        ])
        .json();
    assert_eq!(report["green_fraction"], 1.0);
    assert_eq!(report["verdict"], "watermarked");
}

#[test]
fn w32_another_key_gives_another_text_and_does_not_find_the_first() {
    let bench = Bench::new();
    let first = bench.sample(&["--delta", "10"]);
    let ids = bench.user.file("ids.json", first["ids"].to_string());
    let detect = |key: &str| {
        bench
            .user
            .run(&[
                "detect",
                "--ids",
                &ids,
                "--key-file",
                key,
                "--tokenizer",
                &bench.flags[3],
                "--json",
            ])
            .json()["z"]
            .as_f64()
            .unwrap()
    };
    assert!(detect(&bench.flags[5]) > 5.0);
    let (mut sum, keys) = (0.0, 20);
    for n in 1..=keys {
        let key = bench.user.key(&format!("k{n}"), &format!("{n:064x}"));
        let z = detect(&key);
        assert!(z < 4.0, "key {n} has z {z}");
        sum += z.abs();
    }
    assert!(sum / f64::from(keys) < 1.5, "{sum}");
    let mut other = Bench::new();
    other.flags[5] = other.user.key("other.key", &format!("{:064x}", 99));
    assert_ne!(other.sample(&["--delta", "10"])["ids"], first["ids"]);
}

#[test]
fn w22_defaults_to_defaults_works_for_every_scheme() {
    let bench = Bench::new();
    for scheme in ["green-list", "gumbel"] {
        let out = bench.user.path(&format!("{scheme}.txt")).display().to_string();
        // Only capital letters: none of them merge, so the text gives the ids back.
        let letters: Vec<String> = (b'A'..=b'Z').map(|c| (3 + u32::from(c)).to_string()).collect();
        let run = bench.generate(&[
            "the rain",
            "--scheme",
            scheme,
            "--seed",
            "3",
            "--max-tokens",
            "240",
            "--min-tokens",
            "240",
            "--temperature",
            "3",
            "--allowed-tokens",
            &letters.join(","),
            "--out",
            &out,
        ]);
        assert_eq!(run.code, 0, "{}", run.block());
        let detect = |scheme: &str| {
            bench.user.run(&[
                "detect",
                &out,
                "--key-file",
                &bench.flags[5],
                "--tokenizer",
                &bench.flags[3],
                "--scheme",
                scheme,
            ])
        };
        assert_eq!(detect(scheme).code, 10, "{}", detect(scheme).block());
        let other = if scheme == "gumbel" { "green-list" } else { "gumbel" };
        detect(other).refused(2, &["scheme disagrees", scheme, other]);
    }
}

#[test]
fn the_same_request_gives_the_same_tokens_alone_in_a_batch_and_on_any_number_of_threads() {
    let bench = Bench::new();
    let flags = ["the rain", "--json", "--seed", "5", "--max-tokens", "40", "--n"];
    let texts = |more: &[&str]| {
        let json = bench.generate(&[&flags[..], more].concat()).json();
        json["samples"].as_array().unwrap().iter().map(|s| s["ids"].clone()).collect::<Vec<_>>()
    };
    let one = texts(&["1", "--threads", "1"]);
    let five = texts(&["5", "--threads", "2"]);
    assert_eq!(one[0], five[0]);
    assert_eq!(texts(&["5", "--threads", "1"]), five);
    assert!(five[1..].iter().all(|ids| *ids != five[0]), "samples differ");
}

#[test]
fn only_the_continuation_is_printed_and_streaming_equals_json() {
    let bench = Bench::new();
    let base = ["the rain", "--seed", "7", "--max-tokens", "60", "--min-tokens", "60"];
    let json = bench.sample(&[]);
    let run = bench.generate(&base);
    assert_eq!(run.code, 0, "{}", run.block());
    assert_eq!(run.stdout, json["text"].as_str().unwrap());
    assert!(run.stderr.contains("60 tokens (length), marked, expected z"), "{}", run.stderr);
    let piped = bench.user.run_with_stdin(
        &[
            &["generate"][..],
            &bench.flags.iter().map(String::as_str).collect::<Vec<_>>(),
            &base[1..],
        ]
        .concat(),
        b"the rain",
    );
    assert_eq!(piped.stdout, run.stdout);
    let prompt = bench.user.file("p.txt", "the rain");
    let file = bench.generate(&[&["--prompt-file", &prompt][..], &base[1..]].concat());
    assert_eq!(file.stdout, run.stdout);
    let prompt = bench.user.file("p.txt", "the rain\n");
    let other = bench.generate(&[&["--prompt-file", &prompt][..], &base[1..]].concat());
    assert_ne!(other.stdout, run.stdout, "a final newline is part of the prompt");
}

#[test]
fn s06_temperature_zero_is_greedy_for_every_seed_and_marks() {
    let bench = Bench::new();
    let greedy = |seed: &str, more: &[&str]| {
        let base =
            ["the rain", "--json", "--temperature", "0", "--max-tokens", "40", "--seed", seed];
        bench.generate(&[&base[..], more].concat()).json()["samples"][0]["ids"].clone()
    };
    assert_eq!(greedy("1", &[]), greedy("2", &[]));
    assert_ne!(greedy("1", &[]), greedy("1", &["--no-watermark"]));
    bench
        .generate(&["the rain", "--temperature", "0", "--scheme", "gumbel"])
        .refused(2, &["temperature"]);
    for bad in ["-1", "nan", "inf"] {
        bench.generate(&["the rain", "--temperature", bad]).refused(2, &["temperature"]);
    }
}

#[test]
fn s15_a_banned_id_never_appears_even_when_green() {
    let bench = Bench::new();
    let free = bench.sample(&["--delta", "10"]);
    let banned = &free["ids"][0];
    for bias in [format!("{banned}=-100"), format!("{banned}=-inf")] {
        for mark in [&["--delta", "10"][..], &["--no-watermark"], &["--temperature", "0"]] {
            let sample = bench.sample(&[mark, &["--logit-bias", &bias]].concat());
            let ids = sample["ids"].as_array().unwrap();
            assert!(ids.iter().all(|id| *id != *banned), "{bias} {mark:?}");
        }
    }
}

#[test]
fn s16_top_k_zero_and_top_k_of_everything_filter_nothing() {
    let bench = Bench::new();
    let off = bench.sample(&[]);
    for k in ["0", "300", "9999999", "-1"] {
        assert_eq!(bench.sample(&["--top-k", k])["ids"], off["ids"], "{k}");
    }
    let greedy = bench.sample(&["--temperature", "0", "--no-watermark"]);
    assert_eq!(bench.sample(&["--top-k", "1", "--no-watermark"])["ids"], greedy["ids"]);
    bench.generate(&["x", "--top-k", "-2"]).refused(2, &["top_k"]);
}

#[test]
fn s20_every_declared_end_id_stops_the_text() {
    let bench = Bench::new();
    let run = |bias: &str| {
        let flags = ["the rain", "--json", "--max-tokens", "20", "--logit-bias", bias];
        bench.generate(&[&flags[..], &["--seed", "1"]].concat()).json()["samples"][0].clone()
    };
    let sample = run("2=100");
    assert_eq!(sample["finish_reason"], "stop");
    assert_eq!((sample["ids"].as_array().unwrap().len(), &sample["text"]), (0, &"".into()));

    // The same checkpoint with a list of end ids.
    let folder = bench.user.path("two-ends");
    std::fs::create_dir(&folder).unwrap();
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(format!("{}/{name}", tiny_model("llama")), folder.join(name)).unwrap();
    }
    bench.user.file("two-ends/generation_config.json", r#"{"eos_token_id": [2, 0]}"#);
    for id in ["0", "2"] {
        let args = ["generate", "the rain", "--json", "--max-tokens", "20", "--seed", "1"];
        let model = folder.display().to_string();
        let bias = format!("{id}=100");
        let flags = [
            "--model",
            &model,
            "--tokenizer",
            &bench.flags[3],
            "--key-file",
            &bench.flags[5],
            "--logit-bias",
            &bias,
        ];
        let json = bench.user.run(&[&args[..], &flags[..]].concat()).json();
        assert_eq!(json["samples"][0]["finish_reason"], "stop", "end id {id}");
        assert_eq!(json["samples"][0]["ids"], serde_json::json!([]));
    }
}

#[test]
fn s21_a_stop_string_ends_the_text_before_itself() {
    let bench = Bench::new();
    let whole = bench.sample(&[])["text"].as_str().unwrap().to_owned();
    // A piece of the text that crosses tokens, taken from its middle.
    let middle: String = whole.chars().skip(20).take(4).collect();
    let sample = bench.sample(&["--stop", &middle]);
    assert_eq!(sample["text"].as_str().unwrap(), &whole[..whole.find(&middle).unwrap()]);
    assert_eq!(
        (&sample["finish_reason"], &sample["stop"]),
        (&"stop".into(), &middle.as_str().into())
    );
    let base = ["the rain", "--seed", "7", "--max-tokens", "60", "--min-tokens", "60"];
    let streamed = bench.generate(&[&base[..], &["--stop", &middle]].concat());
    assert_eq!(streamed.stdout, sample["text"].as_str().unwrap());
    bench.generate(&["x", "--stop", ""]).refused(2, &["stop"]);
}

#[test]
fn s27_the_models_defaults_are_used_and_every_flag_wins_over_them() {
    let bench = Bench::new();
    let folder = bench.user.path("model");
    std::fs::create_dir(&folder).unwrap();
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(format!("{}/{name}", tiny_model("llama")), folder.join(name)).unwrap();
    }
    bench.user.file("model/generation_config.json", r#"{"temperature": 0.6, "top_p": 0.9}"#);
    let model = folder.display().to_string();
    let effective = |more: &[&str]| {
        let args = [
            "generate",
            "the rain",
            "--json",
            "--max-tokens",
            "5",
            "--model",
            &model,
            "--tokenizer",
            &bench.flags[3],
            "--key-file",
            &bench.flags[5],
        ];
        let json = bench.user.run(&[&args[..], more].concat()).json();
        let values = &json["effective"]["parameters"];
        (values["temperature"].as_f64().unwrap(), values["top_p"].as_f64().unwrap())
    };
    assert_eq!(effective(&[]), (0.6, 0.9));
    assert_eq!(effective(&["--temperature", "0"]), (0.0, 0.9));
    assert_eq!(effective(&["--temperature", "1", "--top-p", "0"]), (1.0, 0.0));
}

#[test]
fn s29_the_room_of_the_context_is_exact() {
    let bench = Bench::new();
    let run = |max: &str| {
        bench.generate(&[
            "abcd",
            "--json",
            "--seed",
            "1",
            "--max-tokens",
            max,
            "--min-tokens",
            "252",
        ])
    };
    // Context 256, prompt 4 ids.
    assert_eq!(run("252").json()["samples"][0]["ids"].as_array().unwrap().len(), 252);
    run("253").refused(2, &["4 prompt tokens", "253", "256", "at most 252"]);
    run("0").refused(2, &["max_tokens"]);
    let unset = bench.generate(&["abcd", "--json", "--seed", "1", "--min-tokens", "252"]).json();
    assert_eq!(unset["samples"][0]["ids"].as_array().unwrap().len(), 252);
    let long = "Q".repeat(300);
    bench.generate(&[&long]).refused(2, &["300 prompt tokens", "256"]);
}

#[test]
fn s31_an_empty_prompt_starts_from_the_start_token() {
    let bench = Bench::new();
    let run = bench.generate(&["", "--json", "--seed", "1", "--max-tokens", "5"]);
    assert_eq!(run.json()["prompt_tokens"], 1);
    let empty = bench.user.file("empty.txt", "");
    let bom = bench.user.file("bom.txt", "\u{feff}");
    for file in [&empty, &bom] {
        let json = bench.generate(&["--prompt-file", file, "--json", "--max-tokens", "5"]).json();
        assert_eq!(json["prompt_tokens"], 1, "{file}");
    }
}

#[test]
fn s08_no_token_allowed_is_an_error() {
    let bench = Bench::new();
    bench
        .generate(&["x", "--allowed-tokens", "2", "--min-tokens", "5"])
        .refused(2, &["no token allowed"]);
}

#[test]
fn t01_json_says_whether_the_text_gives_the_ids_back() {
    let bench = Bench::new();
    // "t" then "h" is one token of this vocabulary, so these ids cannot survive the text.
    let run = |allowed: &str, n: &str| {
        let flags = ["", "--json", "--seed", "1", "--max-tokens", n, "--min-tokens", n];
        bench
            .generate(&[&flags[..], &["--allowed-tokens", allowed, "--no-watermark"]].concat())
            .json()["samples"][0]
            .clone()
    };
    let single = run("40", "1");
    assert_eq!(single["round_trip"], true);
    let t = 3 + u32::from(b't');
    let h = 3 + u32::from(b'h');
    let sample = run(&format!("{t},{h}"), "40");
    assert!(sample["text"].as_str().unwrap().contains("th"));
    assert_eq!(sample["round_trip"], false);
}

#[test]
fn no_wrong_flag_leaves_a_key_or_loses_a_text() {
    let bench = Bench::new();
    let base = ["generate", "the rain", "--model", &bench.flags[1], "--tokenizer", &bench.flags[3]];
    for flags in [
        &["--max-tokens", "3", "--min-tokens", "9"][..],
        &["--max-tokens", "999"],
        &["--out", "/nonexistent/x.txt"],
    ] {
        assert_eq!(bench.user.run(&[&base[..], flags].concat()).code, 2);
        assert!(!bench.user.path("config/wm/key").exists(), "{flags:?}");
    }
    assert_eq!(bench.user.run(&[&base[..], &["--max-tokens", "3"]].concat()).code, 0);
    assert!(bench.user.path("config/wm/key").exists());
    // The text is kept even when nobody reads the JSON.
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    if let Ok(full) = full {
        let flags = ["--max-tokens", "3", "--json", "--out", "kept.txt"];
        let status =
            bench.user.command(&[&base[..], &flags].concat()).stdout(full).status().unwrap();
        assert_eq!(status.code(), Some(1));
        assert!(bench.user.path("kept.txt").exists());
    }
}

#[test]
fn values_that_would_run_away_are_refused_before_the_work() {
    let bench = Bench::new();
    bench.generate(&["x", "--threads", "100000"]).refused(2, &["threads: 100000", "512"]);
    bench.generate(&["x", "--n", "1000000"]).refused(2, &["n: 1000000", "1024"]);
    bench
        .generate(&["x", "--max-tokens", "5", "--min-tokens", "6"])
        .refused(2, &["min_tokens: 6", "--max-tokens, which is 5"]);
    bench.generate(&["x", "--out", "/nonexistent/x.txt"]).refused(2, &["/nonexistent/x.txt"]);
    bench.generate(&["x", "--no-watermark", "--gamma", "0.3"]).refused(2, &["--no-watermark"]);
    bench.generate(&["x", "--chat"]).refused(2, &["no chat template"]);
}

#[test]
fn an_unmarked_run_names_no_watermark() {
    let bench = Bench::new();
    let json = bench.generate(&["x", "--json", "--no-watermark", "--max-tokens", "3"]).json();
    assert_eq!(
        (&json["watermark"], &json["effective"]["order"]),
        (&false.into(), &serde_json::json!([]))
    );
    assert!(json.get("profile").is_none());
}

#[test]
fn w02_another_tokenizer_than_the_models_own_is_refused() {
    let bench = Bench::new();
    let folder = bench.user.path("model");
    std::fs::create_dir(&folder).unwrap();
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(format!("{}/{name}", tiny_model("llama")), folder.join(name)).unwrap();
    }
    std::fs::copy(tiny_tokenizer(), folder.join("tokenizer.json")).unwrap();
    let model = folder.display().to_string();
    let run = |tokenizer: &str| {
        bench.user.run(&[
            "generate",
            "x",
            "--max-tokens",
            "3",
            "--model",
            &model,
            "--tokenizer",
            tokenizer,
            "--key-file",
            &bench.flags[5],
        ])
    };
    assert_eq!(run(&bench.flags[3]).code, 0);
    // One merge less is another tokenizer.
    let mut other: Value = serde_json::from_str(&read(tiny_tokenizer())).unwrap();
    other["model"]["merges"].as_array_mut().unwrap().pop();
    let other = bench.user.file("other.json", other.to_string());
    run(&other).refused(2, &["tokenizer fingerprint disagrees", "the model", "other.json"]);
}

#[test]
fn s07_a_model_whose_logits_are_no_numbers_is_an_error_everywhere() {
    let bench = Bench::new();
    let folder = bench.user.path("broken");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(format!("{}/config.json", tiny_model("llama")), folder.join("config.json"))
        .unwrap();
    let mut weights = std::fs::read(format!("{}/model.safetensors", tiny_model("llama"))).unwrap();
    // Every value of the last tensor, the final norm.
    let at = weights.len() - 48 * 4;
    for value in weights[at..].chunks_exact_mut(4) {
        value.copy_from_slice(&f32::NAN.to_le_bytes());
    }
    std::fs::write(folder.join("model.safetensors"), weights).unwrap();
    let model = folder.display().to_string();
    bench
        .user
        .run(&["inspect", "model", "--model", &model, "--ids", "5,6", "--greedy", "2", "--json"])
        .refused(1, &["300 of 300 logits are NaN"]);
    for temperature in ["0", "1"] {
        let args = ["generate", "x", "--model", &model, "--tokenizer", &bench.flags[3]];
        let flags = ["--key-file", &bench.flags[5], "--temperature", temperature];
        bench
            .user
            .run(&[&args[..], &flags].concat())
            .refused(1, &["step 0", "300 of 300 logits are NaN"]);
    }
}

#[test]
fn w34_samples_of_a_keyed_draw_come_with_a_warning() {
    let bench = Bench::new();
    let run = bench.generate(&[
        "the rain",
        "--scheme",
        "gumbel",
        "--n",
        "4",
        "--json",
        "--seed",
        "1",
        "--max-tokens",
        "20",
    ]);
    assert!(run.stderr.contains("samples of this scheme begin alike"), "{}", run.block());
}
