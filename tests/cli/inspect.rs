//! `wm inspect`.

use serde_json::{Value, json};

use crate::support::{KEY, User, read, tiny_tokenizer};

#[test]
fn green_list_prints_the_golden_values() {
    let user = User::new();
    let path = format!("{}/data/vectors/green_list.json", env!("CARGO_MANIFEST_DIR"));
    let vectors: Value = serde_json::from_str(&read(path)).unwrap();
    for case in vectors["green_lists"].as_array().unwrap() {
        let key = user.key("k", case["key"].as_str().unwrap());
        let context: Vec<String> =
            case["context"].as_array().unwrap().iter().map(Value::to_string).collect();
        let json = user
            .run(&[
                "inspect",
                "green-list",
                "--key-file",
                &key,
                "--context",
                &context.join(","),
                "--gamma",
                &case["gamma"].to_string(),
                "--vocab",
                &case["vocab"].to_string(),
                "--json",
            ])
            .json();
        for field in ["seed", "first_words", "green_count", "first_green", "sha256_of_sorted_u32le"]
        {
            assert_eq!(json[field], case[field], "{field}");
        }
    }
}

fn chain(user: &User, logits: &str, flags: &[&str]) -> Value {
    let base = ["inspect", "chain", "--logits", logits, "--json"];
    user.run(&[&base[..], flags].concat()).json()
}

fn probabilities(report: &Value) -> Vec<(u32, f64)> {
    report["probabilities"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(id, p)| (id.parse().unwrap(), p.as_f64().unwrap()))
        .collect()
}

#[test]
fn chain_shows_every_stage_and_the_final_probabilities() {
    let user = User::new();
    let report = chain(&user, "[2,1,0,-1,-2]", &["--temperature", "2", "--top-p", "0.9"]);
    let names: Vec<&str> = report["stages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stage| stage["processor"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["temperature", "top_p"]);
    assert_eq!(report["stages"][1]["kept"], json!([0, 1, 2, 3]));
    assert_eq!(report["stages"][0]["logits"], json!([1.0, 0.5, 0.0, -0.5, -1.0]));
    let expected = [0.4551, 0.2760, 0.1674, 0.1015];
    for ((_, actual), expected) in probabilities(&report).into_iter().zip(expected) {
        assert!((actual - expected).abs() < 6e-5, "{actual} {expected}");
    }
    // Truncation before temperature keeps fewer.
    let report = chain(
        &user,
        "[2,1,0,-1,-2]",
        &["--temperature", "2", "--top-p", "0.9", "--order", "top_p;temperature"],
    );
    let expected = [0.5065, 0.3072, 0.1863];
    assert_eq!(probabilities(&report).len(), 3);
    for ((_, actual), expected) in probabilities(&report).into_iter().zip(expected) {
        assert!((actual - expected).abs() < 6e-5, "{actual} {expected}");
    }
}

#[test]
fn w16_the_mark_comes_after_every_other_member() {
    let user = User::new();
    // A key under which, after token 1, token 2 is green and tokens 0 and 1 are not.
    let key = (1u32..1000)
        .map(|n| user.key("k", &format!("{n:064x}")))
        .find(|key| {
            let flags = ["--key-file", key, "--context", "1", "--vocab", "3", "--json"];
            let list = user.run(&[&["inspect", "green-list"][..], &flags[..]].concat()).json();
            list["first_green"] == json!([2])
        })
        .unwrap();
    let mark = ["--watermark", "--key-file", &key, "--history", "1", "--delta"];
    let report = chain(&user, "[2,1,0]", &[&mark[..], &["3", "--top-k", "1"][..]].concat());
    assert_eq!(report["outcome"]["token"], 0, "the bias must not bring back what top-k removed");
    // Token 0 is red, token 2 green, equal logits: the temperature does not divide the bias.
    let flags = ["2", "--temperature", "0.5"];
    let report = chain(&user, "[0,null,0]", &[&mark[..], &flags[..]].concat());
    let green = probabilities(&report).into_iter().find(|(id, _)| *id == 2).unwrap().1;
    assert!((green - 0.88080).abs() < 1e-5, "{green}");
}

#[test]
fn chain_refuses_what_it_cannot_honour() {
    let user = User::new();
    let run = |logits: &str, flags: &[&str]| {
        user.run(&[&["inspect", "chain", "--logits", logits][..], flags].concat())
    };
    run("[1,2", &[]).refused(2, &["logits", "JSON list"]);
    run("[]", &[]).refused(2, &["logits"]);
    run("[1,\"nan\",2]", &[]).refused(2, &["logits: 1 of 3 NaN"]);
    run("[null,null]", &[]).refused(2, &["no token allowed"]);
    run("[1,2]", &["--temperature", "-1"]).refused(2, &["temperature"]);
    run("[1,2]", &["--top-p", "1.1"]).refused(2, &["top_p"]);
    run("[1,2]", &["--history", "2"]).refused(2, &["token id 2 at position 0", "2 ids"]);
    run("[1,2]", &["--order", "watermark;top_k"]).refused(2, &["watermark last"]);
    run("[1,2]", &["--order", "top_p", "--top-k", "1"]).refused(2, &["top_k"]);
    run("[1,2]", &["--logit-bias", "7"]).refused(2, &["logit_bias"]);
}

#[test]
fn a_member_that_was_asked_for_has_its_stage_even_when_it_changes_nothing() {
    let user = User::new();
    let flags =
        ["--temperature", "1", "--top-k", "1000", "--top-p", "1", "--repetition-penalty", "1"];
    let report = chain(&user, "[2,1,0,-1,-2]", &flags);
    let stages = report["stages"].as_array().unwrap();
    let names: Vec<&str> =
        stages.iter().map(|stage| stage["processor"].as_str().unwrap()).collect();
    assert_eq!(names, ["repetition", "temperature", "top_k", "top_p"]);
    assert!(stages.iter().all(|stage| stage["logits"] == json!([2.0, 1.0, 0.0, -1.0, -2.0])));
    assert_eq!(report["effective"]["order"], json!([]), "nothing acts");
}

#[test]
fn s08_a_real_vocabulary_comes_from_a_file() {
    let user = User::new();
    // Head .3 and 10,000 tails of 7e-5: top-p .9 keeps 8,572 tails, min-p .1 none.
    let logits: Vec<f64> =
        std::iter::once(0.3f64.ln()).chain(std::iter::repeat_n(7e-5f64.ln(), 10_000)).collect();
    let file = user.file("logits.json", serde_json::to_string(&logits).unwrap());
    let file = format!("@{file}");
    assert_eq!(probabilities(&chain(&user, &file, &["--top-p", "0.9"])).len(), 8573);
    assert_eq!(probabilities(&chain(&user, &file, &["--min-p", "0.1"])).len(), 1);
}

#[test]
fn top_n_sigma_does_not_depend_on_the_temperature() {
    let user = User::new();
    for temperature in ["1", "0.001", "0.0001", "0.00002"] {
        let flags = ["--top-n-sigma", "1", "--temperature", temperature];
        let report = chain(&user, "[5,4.9,4,3,2,1,0,-1]", &flags);
        let stages = report["stages"].as_array().unwrap();
        let kept = &stages.iter().find(|s| s["processor"] == "top_n_sigma").unwrap()["kept"];
        assert_eq!(*kept, json!([0, 1, 2, 3]), "temperature {temperature}");
    }
}

#[test]
fn a_context_that_the_history_used_up_is_not_marked_again() {
    let user = User::new();
    let key = user.key("k", KEY);
    let flags = ["--watermark", "--key-file", &key, "--repeats", "skip", "--history"];
    let report = chain(&user, "[2,1,0,-1,-2]", &[&flags[..], &["1,2,1,2"]].concat());
    assert_eq!(report["outcome"]["green_mass"], Value::Null);
    let report = chain(&user, "[2,1,0,-1,-2]", &[&flags[..], &["1,2,3"]].concat());
    assert_ne!(report["outcome"]["green_mass"], Value::Null);
}

#[test]
fn tokens_have_offsets_into_the_original() {
    let user = User::new();
    let (key, tokenizer) = (user.key("k", KEY), tiny_tokenizer());
    let file = user.file("t.txt", "\u{feff}the héro");
    let run = user.run(&[
        "inspect",
        "tokens",
        &file,
        "--key-file",
        &key,
        "--tokenizer",
        &tokenizer,
        "--json",
    ]);
    let rows = run.json();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows[0]["bytes"], json!([3, 5]), "offsets count the byte-order mark");
    assert_eq!(rows[0]["chars"], json!([1, 3]));
    assert_eq!(rows[0]["skipped"], "prefix");
    assert_eq!(rows.last().unwrap()["bytes"][1], 12);
    assert!(rows[1..].iter().all(|row| row["colour"] == "green" || row["colour"] == "red"));
}
