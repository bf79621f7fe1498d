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
    run("[1,\"nan\",2]", &[]).refused(1, &["1 of 3 logits are NaN"]);
    run("[null,null]", &[]).refused(2, &["no token allowed"]);
    run("[1,2]", &["--temperature", "-1"]).refused(2, &["temperature"]);
    run("[1,2]", &["--top-p", "1.1"]).refused(2, &["top_p"]);
    run("[1,2]", &["--history", "2"]).refused(2, &["token id 2 at position 0", "2 ids"]);
    run("[1,2]", &["--order", "watermark;top_k"]).refused(2, &["watermark last"]);
    run("[1,2]", &["--order", "top_p", "--top-k", "1"]).refused(2, &["top_k"]);
    run("[1,2]", &["--logit-bias", "7"]).refused(2, &["logit_bias"]);
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
