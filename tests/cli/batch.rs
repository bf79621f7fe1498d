//! `wm detect` over many texts.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::detect::{Bench, HUMAN};
use crate::support::Run;

/// A block without the time that the last line of standard error ends with.
fn block(run: &Run) -> String {
    let block = run.block();
    match block.rsplit_once(" in ") {
        Some((before, time)) if time.trim_end().ends_with(" s") => format!("{before} in [time]\n"),
        _ => block,
    }
}

fn rows(run: &Run) -> Vec<Value> {
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Lines of JSON: good ones, and one of each fault.
fn mixed() -> String {
    let marked = json!({"id": 7, "text": Bench::marked(120)});
    let human = json!({"text": HUMAN, "id": {"shelf": "b"}, "other": [1, {"text": 2}]});
    format!(
        "{marked}\n\n{human}\n{{\"text\": 5, \"id\": 1}}\nsecret\n\"secret\"\n{{\"id\": 2}}\n\
         {{\"text\": \"a\", \"text\": \"b\"}}\n{{\"text\": \"\\ud83d secret\"}}\n\
         {{\"text\": \"Too short.\"}}\r\n{{\"text\": \"cut"
    )
}

#[test]
fn one_bad_line_is_its_own_record_and_the_rest_goes_on() {
    let bench = Bench::new();
    let file = bench.user.file("texts.jsonl", mixed());
    let run = bench.detect(&[&file, "--jsonl", "text"]);
    insta::assert_snapshot!(block(&run), @r"
    exit code: 2
    ----- stdout -----
    [home]/texts.jsonl:1: z 10.05  p 3.944e-31  log10 p -30.40  green 101 of 101  watermarked
      a text written without key team (1c45091c382083eb) would be this surprising in at most 3.17e-5 of cases
      not scored of 120 tokens: 1 without context, 18 repeated
    [home]/texts.jsonl:3: z 0.00  p 5.505e-1  log10 p -0.26  green 31 of 62  not detected
      no mark of key team (1c45091c382083eb) at alpha 3.17e-5; this does not say who or what wrote the text
      not scored of 134 tokens: 1 without context, 71 repeated
    [home]/texts.jsonl:10: z -2.83  p 1.000e0  log10 p 0.00  green 0 of 8  insufficient
      8 scored tokens are too few to conclude anything: a count of green tokens needs at least 15 (alpha 3.17e-5, --min-scored)
      not scored of 9 tokens: 1 without context
    ----- stderr -----
    wm: [home]/texts.jsonl (byte 364): line 4: the field `text` is a number, not a text; each line is one JSON object with a text in the field `text`
    wm: [home]/texts.jsonl (byte 385): line 5: not a JSON object; each line is one JSON object with a text in the field `text`
    wm: [home]/texts.jsonl (byte 392): line 6: not a JSON object; each line is one JSON object with a text in the field `text`
    wm: [home]/texts.jsonl (byte 401): line 7: there is no field `text`; each line is one JSON object with a text in the field `text`
    wm: [home]/texts.jsonl (byte 411): line 8: the field `text` stands twice; each line is one JSON object with a text in the field `text`
    wm: [home]/texts.jsonl (byte 454): line 9: unexpected end of hex escape; each line is one JSON object with a text in the field `text`
    wm: [home]/texts.jsonl (byte 500): line 11: EOF while parsing a string; each line is one JSON object with a text in the field `text`
    wm: 10 texts: 1 watermarked, 1 not detected, 1 insufficient, 7 errors; 263 tokens in [time]
    ");
    let run = bench.detect(&[&file, "--jsonl", "text", "--json"]);
    assert!(!run.stdout.contains("secret") && !run.stderr.contains("secret"), "{}", run.block());
    let rows = rows(&run);
    let content = mixed();
    for row in &rows[..rows.len() - 1] {
        let number = row["line"].as_u64().unwrap() as usize;
        if let Some(at) = row["byte_offset"].as_u64() {
            // The offset lies in the line that the record names.
            assert_eq!(content.as_bytes()[..at as usize].split(|b| *b == b'\n').count(), number);
        }
    }
    assert_eq!((&rows[0]["id"], &rows[1]["id"]), (&json!(7), &json!({"shelf": "b"})));
    // A bad item has its id too when its line can be read.
    assert_eq!((&rows[2]["id"], &rows[2]["line"]), (&json!(1), &json!(4)));
    assert_eq!(
        rows.last().unwrap()["summary"],
        json!({"texts": 10, "watermarked": 1, "not_detected": 1, "insufficient": 1, "errors": 7,
               "tokens": 120 + 134 + 9})
    );
    // A line gives the report of its text in a file.
    let human = bench.user.file("human.txt", HUMAN);
    assert_eq!(rows[1]["report"], bench.detect(&[&human, "--json"]).json());
}

#[test]
fn the_output_is_the_same_for_any_number_of_threads() {
    let bench = Bench::new();
    let mut lines = String::new();
    for index in 0..120u64 {
        // Lengths that finish out of order.
        let text = HUMAN.repeat(1 + (index as usize * 37 % 50));
        let text = if index % 7 == 3 { Bench::marked(60 + index as usize) } else { text };
        lines.push_str(&json!({"id": index, "text": text}).to_string());
        lines.push('\n');
        bench.user.file(&format!("in/{index:03}.txt"), &text);
    }
    bench.user.file("in/012.txt", b"\xff");
    let file = bench.user.file("texts.jsonl", lines);
    for flags in [
        &["--jsonl", "text", "--json", &file][..],
        &["--jsonl", "text", "--json", "--q-values", &file],
        &["--json", "in"],
        &["in", "--q-values"],
    ] {
        let run = |threads| bench.detect(&[flags, &["--threads", threads]].concat());
        let one = run("1");
        for threads in ["2", "8"] {
            let more = run(threads);
            assert_eq!((more.code, &more.stdout), (one.code, &one.stdout), "{threads} threads");
        }
        if flags.contains(&"--json") {
            let places: Vec<String> = rows(&one)
                .iter()
                .filter(|row| row.get("summary").is_none())
                .map(|row| format!("{:?} {:?}", row["path"], row["line"].as_u64()))
                .collect();
            assert_eq!(places.len(), 120);
            assert!(places.iter().is_sorted_by_key(|place| (place.len(), place.clone())));
        }
    }
    for threads in ["0", "513"] {
        bench.detect(&["in", "--threads", threads]).refused(2, &["--threads", "1..=512"]);
    }
}

#[test]
fn q_values_are_those_of_benjamini_and_hochberg() {
    let bench = Bench::new();
    let file = bench.user.file("texts.jsonl", mixed());
    let rows = rows(&bench.detect(&[&file, "--jsonl", "text", "--json", "--q-values"]));
    let judged: Vec<&Value> = rows.iter().filter(|row| row.get("report").is_some()).collect();
    let p: Vec<f64> =
        judged.iter().map(|row| row["report"]["corrected_log10_p"].as_f64().unwrap()).collect();
    // Three texts, the marked one first: its p times three, and the largest p of the others.
    let q = |index: usize| judged[index]["log10_q"].as_f64().unwrap();
    assert!((q(0) - (p[0] + 3f64.log10())).abs() < 1e-9, "{p:?}");
    let middle = (p[1] + 1.5f64.log10()).min(p[2]);
    assert!((q(1) - middle).abs() < 1e-9 && (q(2) - p[2]).abs() < 1e-9, "{p:?}");
    let value = judged[0]["q_value"].as_f64().unwrap();
    assert!((value.log10() - q(0)).abs() < 1e-9);
    // Errors have no q, and the rest of the output is that of a run without.
    assert_eq!(rows.iter().filter(|row| row.get("error").is_some()).count(), 7);
    // One text is a batch of one.
    let human = bench.user.file("human.txt", HUMAN);
    let run = bench.detect(&[&human, "--q-values"]);
    assert!(run.stdout.contains("among 1 text (Benjamini-Hochberg)"), "{}", run.block());
    bench.detect(&["--ids", &human, "--q-values"]).refused(2, &["--q-values"]);
}

#[test]
fn lines_come_from_standard_input_and_folders_too() {
    let bench = Bench::new();
    let line = format!("\u{feff}{}\n", json!({"body": HUMAN}));
    let run = bench.user.run_with_stdin(&bench.args(&["--jsonl", "body"]), line.as_bytes());
    assert!(run.code == 0 && run.stdout.starts_with("-:1: z "), "{}", run.block());
    bench.user.file("in/a.jsonl", &line);
    bench.user.file("in/b.jsonl", "\n \n");
    let run = bench.detect(&["in", "--jsonl", "body"]);
    run.refused(2, &["b.jsonl", "no line of JSON"]);
    assert!(run.stdout.contains("in/a.jsonl:1: z "), "{}", run.block());
    bench.detect(&["none.jsonl", "--jsonl", "body"]).refused(2, &["none.jsonl"]);
    bench.detect(&["in", "--jsonl", "body", "--sidecar"]).refused(2, &["--sidecar"]);
}

#[test]
fn a_line_without_end_is_refused_by_its_length() {
    let bench = Bench::new();
    let mut lines = format!("{{\"text\": \"{}\"}}\n", "x".repeat(33 << 20)).into_bytes();
    lines.extend_from_slice(format!("{}\n", json!({"text": HUMAN})).as_bytes());
    let run = bench.user.run_with_stdin(&bench.args(&["--jsonl", "text", "--json"]), &lines);
    let rows = rows(&run);
    assert_eq!((run.code, rows.len()), (2, 3));
    let error = rows[0]["error"].as_str().unwrap();
    assert!(error.contains("line 1 is longer than 33554432 bytes"), "{error}");
    assert_eq!(
        (&rows[1]["line"], &rows[1]["report"]["verdict"]),
        (&json!(2), &json!("not_detected"))
    );
}

#[test]
fn records_come_out_while_more_input_may_follow_and_a_closed_pipe_ends_the_run() {
    let bench = Bench::new();
    let line = format!("{}\n", json!({"text": HUMAN}));
    let mut child = bench
        .user
        .command(&bench.args(&["--jsonl", "text", "--json"]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut record = String::new();
    // Each record is read before the next line is written.
    for number in 1..=3 {
        stdin.write_all(line.as_bytes()).unwrap();
        record.clear();
        stdout.read_line(&mut record).unwrap();
        let record: Value = serde_json::from_str(&record).unwrap();
        assert_eq!(record["line"], number);
    }
    // The reader goes away; standard input stays open.
    drop(stdout);
    stdin.write_all(line.as_bytes()).unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(141), ""));
}

#[cfg(feature = "engine")]
#[test]
fn a_model_reads_the_texts_of_many_judges_one_at_a_time() {
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    let bench = Bench::new();
    let model = crate::support::tiny_model("llama");
    // Short, since the model reads them token by token; no two are the same.
    let line = |index: usize| format!("{}\n", json!({"id": index, "text": &HUMAN[index..80]}));
    let flags = ["--jsonl", "text", "--json", "--offline", "--entropy", &model, "--threads"];
    let mut child = bench
        .user
        .command(&bench.args(&[&flags[..], &["4"]].concat()))
        .stdin(Stdio::piped())
        // A file takes everything while nobody reads, a pipe does not.
        .stdout(std::fs::File::create(bench.user.path("out.jsonl")).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for index in 0..8 {
        stdin.write_all(line(index).as_bytes()).unwrap();
        sleep(Duration::from_millis(3));
    }
    drop(stdin);
    // Far longer than the run takes: only judges that wait for each other use it up.
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > Duration::from_mins(2) {
            child.kill().unwrap();
            panic!("the judges wait for each other");
        }
        sleep(Duration::from_millis(10));
    }
    let lines: String = (0..8).map(line).collect();
    let one =
        bench.user.run_with_stdin(&bench.args(&[&flags[..], &["1"]].concat()), lines.as_bytes());
    assert_eq!(crate::support::read(bench.user.path("out.jsonl")), one.stdout, "{}", one.block());
    let rows = rows(&one);
    assert_eq!(rows.len(), 9);
    for row in &rows[..8] {
        assert_eq!(row["report"]["entropy"]["source"]["name"], model.as_str(), "{row}");
    }
}

#[cfg(feature = "engine")]
#[test]
fn a_model_that_cannot_read_the_texts_stops_the_run_before_the_first() {
    let bench = Bench::new();
    let file = bench.user.file("texts.jsonl", mixed());
    let none = bench.user.path("none.gguf").display().to_string();
    let human = bench.user.file("human.txt", HUMAN);
    for paths in [&[&file, "--jsonl", "text"][..], &[&human], &[&human, &human]] {
        let run = bench.detect(&[paths, &["--json", "--offline", "--entropy", &none]].concat());
        run.refused(2, &["none.gguf"]);
        assert_eq!((run.stderr.lines().count(), run.stdout.as_str()), (1, ""), "{}", run.block());
    }
    // The inputs are not waited for: standard input stays open and empty.
    let mut child = bench
        .user
        .command(&bench.args(&["--offline", "--entropy", &none]))
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _open = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(2));
}
