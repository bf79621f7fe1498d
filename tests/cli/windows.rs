//! `wm detect --windows`: where in the text the mark is.

use crate::detect::Bench;

/// Letters that no key chose, each pair about as often green as red.
fn filler(length: usize, seed: u32) -> String {
    let mut state = seed;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(
                b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                    [(state >> 16) as usize % 62],
            )
        })
        .collect()
}

/// 60 letters marked, behind 200 that are not and before 300 that are not.
fn pasted() -> String {
    format!("{}{}{}", filler(200, 1), Bench::marked(60), filler(300, 2))
}

#[test]
fn the_text_says_where_the_mark_is() {
    let bench = Bench::new();
    let file = bench.user.file("pasted.txt", pasted());
    insta::assert_snapshot!(bench.detect(&[&file]).block(), @r#"
    exit code: 0
    ----- stdout -----
    z 2.03  p 2.374e-2  log10 p -1.62  green 281 of 516  not detected
      no mark of key team (1c45091c382083eb) at alpha 3.17e-5; this does not say who or what wrote the text
      not scored of 557 tokens: 1 without context, 40 repeated
    ----- stderr -----
    "#);
    insta::assert_snapshot!(bench.detect(&[&file, "--windows"]).block(), @r#"
    exit code: 10
    ----- stdout -----
    z 7.07  p 8.882e-16  log10 p -15.05  green 50 of 50  watermarked
      a text written without key team (1c45091c382083eb) would be this surprising in at most 3.17e-5 of cases
      not scored of 557 tokens: 1 without context, 40 repeated
      266772 tests are paid for; corrected log10 p -11.16
      best window: tokens 198..260, bytes 200..262, characters 200..262, green 50 of 50, z 7.07, log10 p -15.05, corrected -11.16 (first-passage bound over 133386 windows)
      marked region: tokens 198..260, bytes 200..262, characters 200..262, green 50 of 50, z 7.07, log10 p -15.05, corrected -11.16
    ----- stderr -----
    "#);
}

#[test]
fn without_a_mark_there_is_no_region() {
    let bench = Bench::new();
    let file = bench.user.file("plain.txt", filler(300, 3));
    insta::assert_snapshot!(bench.detect(&[&file, "--windows"]).block(), @r#"
    exit code: 0
    ----- stdout -----
    z 0.00  p 5.235e-1  log10 p -0.28  green 144 of 288  not detected
      no mark of key team (1c45091c382083eb) at alpha 3.17e-5; this does not say who or what wrote the text
      not scored of 298 tokens: 1 without context, 9 repeated
      2 tests are paid for; corrected log10 p 0.00
      best window: tokens 164..183, bytes 166..185, characters 166..185, green 15 of 17, z 3.15, log10 p -2.93, corrected 0.00 (first-passage bound over 41616 windows)
    ----- stderr -----
    "#);
    let empty = bench.user.file("empty.txt", "");
    let json = bench.detect(&[&empty, "--windows", "--json"]).json();
    assert_eq!(
        (&json["verdict"], &json["windows"]),
        (&"insufficient".into(), &serde_json::json!([]))
    );
}

#[test]
fn offsets_are_those_of_the_original_text() {
    let bench = Bench::new();
    // A byte-order mark, two-byte letters and invisible characters before and inside the mark.
    let marked: String = Bench::marked(60).chars().flat_map(|c| [c, '\u{200b}']).collect();
    let text = format!("\u{feff}éé{}{marked}{}", filler(200, 1), filler(300, 2));
    let file = bench.user.file("hidden.txt", &text);
    let json = bench.detect(&[&file, "--windows", "--json", "--normalize", "zero-width"]).json();
    assert_eq!(json["verdict"], "watermarked");
    assert_eq!(json["windows"].as_array().unwrap().len(), 2);
    let span = &json["spans"][0];
    assert_eq!(span["normalization"], "zero-width");
    let bytes: Vec<usize> = serde_json::from_value(span["bytes"].clone()).unwrap();
    let chars: Vec<usize> = serde_json::from_value(span["chars"].clone()).unwrap();
    let from_chars: Vec<usize> =
        [0, 1].map(|end| text.chars().take(chars[end]).map(char::len_utf8).sum()).to_vec();
    assert_eq!(bytes, from_chars, "both count in the original");
    // The mark stands at bytes 207..447 and the region is about that: it may end a few tokens off.
    let mark = 207..207 + marked.len();
    assert!(bytes[0].abs_diff(mark.start) < 40 && bytes[1].abs_diff(mark.end) < 40, "{bytes:?}");
}

#[test]
fn ids_have_token_ranges_only() {
    let bench = Bench::new();
    let tokenizer = greenmark::text::Tokenizer::open(crate::support::tiny_tokenizer()).unwrap();
    let ids = tokenizer.encode_ids(&pasted()).unwrap();
    let file = bench.user.file("ids.json", serde_json::to_string(&ids).unwrap());
    let run = bench.detect(&["--ids", &file, "--windows"]);
    assert!(
        run.stdout.contains("marked region: tokens ") && !run.stdout.contains("bytes"),
        "{}",
        run.block()
    );
    let text = bench.user.file("pasted.txt", pasted());
    let of_text = bench.detect(&[&text, "--windows", "--json"]).json();
    let of_ids = bench.detect(&["--ids", &file, "--windows", "--json"]).json();
    assert_eq!(of_ids["spans"][0]["tokens"], of_text["spans"][0]["tokens"]);
    assert_eq!(of_ids["spans"][0]["log10_p"], of_text["spans"][0]["log10_p"]);
}

#[test]
fn sums_have_windows_too() {
    let bench = Bench::new();
    let file = bench.user.file("plain.txt", filler(300, 3));
    let run = bench.detect(&[&file, "--windows", "--scheme", "gumbel", "--json"]);
    let json = run.json();
    assert_eq!((run.code, json["windows"].as_array().unwrap().len()), (0, 1));
    assert!(json["windows"][0].get("green").is_none());
}
