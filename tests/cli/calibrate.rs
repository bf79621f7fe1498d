//! `wm calibrate`: the tables, the state of a stopped run, and what it refuses.

use std::fs;

use greenmark::document::sha256_hex;
use serde_json::json;

use crate::support::{KEY, Run, User, read, tiny_tokenizer};

/// A few human passages as JSON lines.
fn corpus(user: &User) -> String {
    let all = read(format!("{}/data/human/passages.jsonl", env!("CARGO_MANIFEST_DIR")));
    let lines: Vec<&str> = all.lines().take(24).collect();
    user.file("texts.jsonl", lines.join("\n"))
}

fn calibrate(user: &User, texts: &[&str], flags: &[&str]) -> Run {
    let tokenizer = tiny_tokenizer();
    let common = ["--tokenizer", &tokenizer, "--offline"];
    user.run(&[&["calibrate"], texts, &common, flags].concat())
}

const SMALL: [&str; 12] = [
    "--jsonl",
    "text",
    "--passage-tokens",
    "50",
    "--pairs",
    "40000",
    "--keys",
    "3",
    "--alphas",
    "0.05,0.001",
    "--top",
    "3",
];

#[test]
fn the_tables_of_a_small_corpus() {
    let user = User::new();
    let texts = corpus(&user);
    let run = calibrate(&user, &[&texts], &SMALL);
    insta::assert_snapshot!(run.block(), @r"
    exit code: 0
    ----- stdout -----
    570 passages of 24 documents

    Validity of the test: 40000 pairs of a passage and a fresh key
    tokens  scored     pairs   alpha  attainable  measured    count  99.9% at attainable
        25    23.1     40000  5.00e-2  3.60e-2     3.48e-2      1394  1318 to 1563
        25    23.1     40000  1.00e-3  5.57e-4     6.00e-4        24  9 to 39
        50    44.8     38806  5.00e-2  3.65e-2     3.50e-2      1358  1295 to 1538
        50    44.8     38806  1.00e-3  6.03e-4     6.18e-4        24  9 to 41
        25 tokens: Kolmogorov-Smirnov distance of the randomised p 0.00430, p 0.450
        50 tokens: Kolmogorov-Smirnov distance of the randomised p 0.00456, p 0.394

    Fixed keys: 3 (every passage under each key; 95% intervals resample documents and keys)
    tokens  passages   alpha  attainable      rate  95% interval             keys: smallest   largest  deviation  if independent
        25       570  5.00e-2  3.60e-2     3.22e-2   1.88e-2 to 4.72e-2            2.46e-2   4.39e-2   1.03e-2    7.80e-3
        25       570  1.00e-3  5.57e-4     5.85e-4   0 to 3.25e-3                  0         1.75e-3   1.01e-3    9.89e-4
        50       553  5.00e-2  3.65e-2     3.19e-2   1.72e-2 to 5.16e-2            1.99e-2   4.52e-2   1.27e-2    7.97e-3
        50       553  1.00e-3  6.03e-4     0         0 to 2.22e-3                  0         0         0          1.04e-3

    Passages that fire under most of the keys they met, at the largest alpha
    [home]/texts.jsonl:6 byte 1258: 10 of 73 keys, smallest log10 p -2.27
    [home]/texts.jsonl:18 byte 1177: 9 of 74 keys, smallest log10 p -1.95
    [home]/texts.jsonl:2 byte 937: 8 of 73 keys, smallest log10 p -4.90
    ----- stderr -----
    ");
}

#[test]
fn the_json_result_holds_the_same_and_no_text() {
    let user = User::new();
    let texts = corpus(&user);
    let plot = user.path("plot.svg").display().to_string();
    let run = calibrate(&user, &[&texts], &[&SMALL[..], &["--json", "--plot", &plot]].concat());
    let json = run.json();
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    for (table, lengths) in [("validity", 2), ("fixed_keys", 2)] {
        let rows = json[table].as_array().unwrap();
        assert_eq!(rows.len(), lengths, "{table}");
        for row in rows {
            let rates = row["rates"].as_array().unwrap();
            assert_eq!(rates.len(), 2);
            for rate in rates {
                let alpha = rate["alpha"].as_f64().unwrap();
                let attainable = rate["attainable"].as_f64().unwrap();
                assert!(attainable > 0.0 && attainable <= alpha, "{rate}");
            }
        }
    }
    assert_eq!(json["validity"][0]["pairs"], 40_000);
    assert_eq!(json["fixed_keys"][0]["rates"][0]["keys"].as_array().unwrap().len(), 3);
    assert_eq!(json["left_out"], serde_json::json!([]));
    let listed = &json["most_firing"][0];
    assert!(listed["text"].is_null() && listed["rate"].as_f64().unwrap() > 0.0);
    assert!(read(&plot).starts_with("<svg ") && read(&plot).contains("Fresh keys, 25 tokens"));

    let shown = calibrate(&user, &[&texts], &[&SMALL[..], &["--json", "--show-text"]].concat());
    let shown = shown.json()["most_firing"][0].clone();
    let text = shown["text"].as_str().unwrap();
    let (document, line) = shown["document"].as_str().unwrap().rsplit_once(':').unwrap();
    let record = read(document).lines().nth(line.parse::<usize>().unwrap() - 1).unwrap().to_owned();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let whole = record["text"].as_str().unwrap();
    let offset = shown["offset"].as_u64().unwrap() as usize;
    assert!(whole[offset..].starts_with(text), "the path and the offset lead to the passage");
}

#[test]
fn a_stopped_run_goes_on_and_gives_the_same() {
    let user = User::new();
    let texts = corpus(&user);
    let state = user.path("state").display().to_string();
    let flags = [&SMALL[..], &["--json", "--state", &state]].concat();
    let expected = calibrate(&user, &[&texts], &[&SMALL[..], &["--json"]].concat()).stdout;
    assert_eq!(calibrate(&user, &[&texts], &flags).stdout, expected);
    let whole = fs::read(&state).unwrap();
    let ends: Vec<usize> =
        (0..whole.len()).filter(|index| whole[*index] == b'\n').map(|index| index + 1).collect();
    assert!(ends.len() > 3, "a line that names the run, and several blocks");
    // Stopped before anything was written, in the first line, after it, in a block, between
    // blocks, before the last line feed, and not at all.
    for cut in [0, 10, ends[0], ends[1] + 100, ends[2], whole.len() - 1, whole.len()] {
        fs::write(&state, &whole[..cut]).unwrap();
        let run = calibrate(&user, &[&texts], &flags);
        assert_eq!((run.code, run.stdout.as_str()), (0, expected.as_str()), "{cut}");
        assert_eq!(fs::read(&state).unwrap(), whole, "{cut}");
    }
    // The order of the blocks does not matter, and those that are there stay.
    let text = String::from_utf8(whole.clone()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    fs::write(&state, [lines[0], lines[2], lines[1]].concat()).unwrap();
    assert_eq!(calibrate(&user, &[&texts], &flags).stdout, expected);
    assert!(read(&state).starts_with(&[lines[0], lines[2], lines[1]].concat()));
}

#[test]
fn a_killed_run_leaves_a_state_to_go_on_from() {
    let user = User::new();
    let texts = corpus(&user);
    let state = user.path("state").display().to_string();
    let tokenizer = tiny_tokenizer();
    let flags = [&SMALL[..], &["--json", "--state", &state]].concat();
    let expected = calibrate(&user, &[&texts], &[&SMALL[..], &["--json"]].concat()).stdout;
    let common = ["calibrate", &texts, "--tokenizer", &tokenizer, "--offline"];
    let mut child = user
        .command(&[&common[..], &flags].concat())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // As soon as there is a block, or when the run was quicker than this loop.
    let blocks = || fs::read(&state).map_or(0, |bytes| bytes.split(|byte| *byte == b'\n').count());
    while blocks() < 3 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let _ = child.kill();
    child.wait().unwrap();
    assert_eq!(calibrate(&user, &[&texts], &flags).stdout, expected);
}

#[test]
fn order_and_threads_change_nothing() {
    let user = User::new();
    let all = read(corpus(&user));
    let lines: Vec<&str> = all.lines().collect();
    let (a, b) =
        (user.file("a.jsonl", lines[..9].join("\n")), user.file("b.jsonl", lines[9..].join("\n")));
    let flags = [&SMALL[..], &["--json"]].concat();
    let expected = calibrate(&user, &[&a, &b], &flags).stdout;
    let tokenizer = tiny_tokenizer();
    for threads in ["1", "3"] {
        let common = ["calibrate", &b, &a, "--tokenizer", &tokenizer, "--offline"];
        let output = user
            .command(&[&common[..], &flags].concat())
            .env("RAYON_NUM_THREADS", threads)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{threads} threads");
    }
}

#[test]
fn a_state_of_something_else_is_refused_and_left_as_it_is() {
    let user = User::new();
    let texts = corpus(&user);
    let state = user.path("state").display().to_string();
    let with = |state: &str, more: &[&str]| {
        let less = ["--jsonl", "text", "--pairs", "100", "--keys", "1", "--state", state];
        calibrate(&user, &[&texts], &[&less[..], more].concat())
    };
    assert_eq!(with(&state, &[]).code, 0);
    let before = fs::read(&state).unwrap();
    with(&state, &["--seed", "1"]).refused(2, &["other texts, flags or keys", "--state"]);
    with(&state, &["--gamma", "0.25"]).refused(2, &["other texts, flags or keys"]);
    assert_eq!(fs::read(&state).unwrap(), before);

    let other = user.file("notes.txt", "my only copy");
    with(&other, &[]).refused(2, &["not the state of a calibration"]);
    assert_eq!(read(&other), "my only copy");

    let mut damaged = before.clone();
    let at = before.iter().position(|byte| *byte == b'\n').unwrap() + 5;
    damaged[at] = b'?';
    fs::write(&state, &damaged).unwrap();
    with(&state, &[]).refused(2, &["a damaged block", &format!("byte {}", at - 4)]);

    // A block that reads as JSON and cannot be of this calibration.
    let text = String::from_utf8(before.clone()).unwrap();
    let (head, block) = text.trim_end().split_once('\n').unwrap();
    let (_, block) = block.lines().next().unwrap().split_once(' ').unwrap();
    let write = |wrong: &serde_json::Value| {
        let wrong = wrong.to_string();
        let checksum = &sha256_hex(wrong.as_bytes())[..16];
        fs::write(&state, format!("{head}\n{checksum} {wrong}\n")).unwrap();
        with(&state, &[]).refused(2, &["a damaged block"]);
    };
    for (field, value) in [
        ("tallies", json!([])),
        ("fired", json!([[4_000_000, null, 0, 1, -3_000_000]])),
        ("fired", json!([[0, 4_000_000, 0, 1, -3_000_000]])),
        ("fired", json!([[0, null, 200, 1, -3_000_000]])),
        ("fired", json!([[0, null, 0, 200, -3_000_000]])),
    ] {
        let mut wrong: serde_json::Value = serde_json::from_str(block).unwrap();
        wrong[field] = value;
        write(&wrong);
    }
    let mut wrong: serde_json::Value = serde_json::from_str(block).unwrap();
    wrong["tallies"][0]["scored"][0][0] = json!(4_000_000);
    write(&wrong);
    // A digit that a disk has changed, and a checksum that was changed with nothing else.
    let (_, blocks) = text.split_at(head.len() + 1);
    for (from, to) in [("\"index\":0", "\"index\":1"), (&blocks[..2], "zz")] {
        fs::write(&state, format!("{head}\n{}", blocks.replacen(from, to, 1))).unwrap();
        with(&state, &[]).refused(2, &["a damaged block"]);
    }

    fs::write(&state, &before).unwrap();
    let held = fs::File::open(&state).unwrap();
    held.lock().unwrap();
    with(&state, &[]).refused(2, &["another run uses this state"]);
}

#[test]
fn folders_and_files_are_read_and_what_is_no_text_is_named() {
    let user = User::new();
    let prose = "The kettle had been whistling for some time before anyone noticed it. ".repeat(9);
    user.file("folder/a.txt", &prose);
    user.file("folder/deeper/b.txt", &prose);
    user.file("folder/.hidden", &prose);
    user.file("folder/a.txt.wm.json", &prose);
    user.file("folder/c.txt", b"\xff\xfe");
    let folder = user.path("folder").display().to_string();
    let key = user.key("key", KEY);
    let flags = ["--pairs", "1000", "--key-file", &key, "--json"];
    let run = calibrate(&user, &[&folder], &flags);
    assert_eq!(run.code, 0, "{}", run.block());
    let json = run.json();
    assert_eq!((&json["documents"], &json["profile"]["key"]["id"]), (&2.into(), &"key".into()));
    assert!(run.stderr.contains("c.txt (byte 0): the text is not UTF-8"), "{}", run.stderr);
    assert_eq!(json["left_out"].as_array().unwrap().len(), 1);

    let lines =
        user.file("t.jsonl", format!("{{\"body\":{prose:?}}}\n\n{{\"text\":1}}\nno json\n"));
    let flags = ["--pairs", "1000", "--keys", "0", "--json", "--jsonl", "body"];
    let run = calibrate(&user, &[&lines], &flags);
    let left_out = run.json()["left_out"].to_string();
    assert!(left_out.contains("line 3: there is no field"), "{left_out}");
    assert!(left_out.contains("line 4: not a JSON object"), "{left_out}");
    assert_eq!(run.json()["fixed_keys"], serde_json::json!([]));
}

#[test]
fn a_profile_is_followed_also_with_keys_of_its_own() {
    let user = User::new();
    let (texts, key, tokenizer) = (corpus(&user), user.key("key", KEY), tiny_tokenizer());
    let flags = ["--gamma", "0.25", "--key-file", &key, "--tokenizer", &tokenizer, "--offline"];
    let profile =
        user.file("p.json", user.run(&[&["profile", "show"], &flags[..]].concat()).stdout);
    let less = ["--jsonl", "text", "--pairs", "100", "--json", "--profile", &profile];
    for more in [&["--keys", "2"][..], &["--key-file", &key]] {
        let json = calibrate(&user, &[&texts], &[&less[..], more].concat()).json();
        assert_eq!(
            json["profile"],
            serde_json::from_str::<serde_json::Value>(&read(&profile)).unwrap()
        );
    }
    let other = user.key("other", &KEY.replace('0', "9"));
    calibrate(&user, &[&texts], &[&less[..], &["--key-file", &other]].concat())
        .refused(2, &["key fingerprint disagrees"]);
    calibrate(&user, &[&texts], &[&less[..], &["--keys", "2", "--gamma", "0.5"]].concat())
        .refused(2, &["gamma disagrees", "leave the flag out"]);
}

#[test]
fn wrong_input_is_refused() {
    let user = User::new();
    let texts = corpus(&user);
    let refused = |flags: &[&str], parts: &[&str]| {
        calibrate(&user, &[&texts], &[&["--jsonl", "text"], flags].concat()).refused(2, parts);
    };
    refused(&[], &["no default key", "--key-file"]);
    refused(&["--keys", "1", "--alphas", "2"], &["alpha", "below 1"]);
    refused(&["--keys", "1", "--lengths", "500"], &["lengths", "--passage-tokens 200"]);
    refused(&["--keys", "1", "--lengths", "0"], &["lengths: 0"]);
    refused(&["--keys", "1", "--passage-tokens", "0"], &["passage_tokens: 0"]);
    refused(&["--keys", "1", "--pairs", "99999999999"], &["pairs"]);
    refused(&["--keys", "99999999"], &["keys"]);
    refused(&["--keys", "1", "--key-file", "k"], &["cannot be used with"]);
    calibrate(&user, &["missing"], &["--keys", "1"]).refused(2, &["missing"]);
    let short = user.file("short.txt", "Too short.");
    calibrate(&user, &[&short], &["--keys", "1"]).refused(2, &["no passage", "25 tokens"]);
}
