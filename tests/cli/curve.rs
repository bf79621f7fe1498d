//! `wm eval curve`: its form with a tiny checkpoint, its figures with the default model.

use serde_json::Value;

use crate::model::default_model;
use crate::support::{Run, User, read, tiny_model, tiny_tokenizer};

fn tiny(user: &User, more: &[&str]) -> Run {
    let (model, tokenizer) = (tiny_model("llama"), tiny_tokenizer());
    let base = ["eval", "curve", "--model", &model, "--tokenizer", &tokenizer];
    user.run(&[&base[..], more].concat())
}

#[test]
fn a_tiny_run_prints_every_table_and_draws_every_panel() {
    let user = User::new();
    let flags = ["--texts", "2", "--tokens", "26", "--deltas", "0,5", "--gammas", "0.5"];
    let run = tiny(&user, &[&flags[..], &["--plot", "curve.svg"]].concat());
    insta::assert_snapshot!(run.block(), @"");
    let plot = read(user.path("curve.svg"));
    assert!(plot.starts_with("<svg ") && plot.trim_end().ends_with("</svg>"));
    for panel in [
        "Found at false positive rate 1e-3, gamma 0.5",
        "Found at false positive rate 1e-5, gamma 0.5",
        "Perplexity under the unmarked model",
        "Repetition",
        "Found after deletion at 1e-3, gamma 0.5",
        "Found after substitution at 1e-3, gamma 0.5",
        "Found after crop at 1e-3, gamma 0.5",
    ] {
        assert!(plot.contains(panel), "{panel}");
    }
    // The threads of the engine change nothing, and neither does a second run.
    let again = tiny(&user, &[&flags[..], &["--threads", "1"]].concat());
    assert_eq!(again.stdout, run.stdout);
    assert_ne!(tiny(&user, &[&flags[..], &["--seed", "2"]].concat()).stdout, run.stdout);
}

#[test]
fn wrong_flags_are_refused_before_the_work() {
    let user = User::new();
    for (flags, parts) in [
        (&["--texts", "1"][..], &["texts: 1", "2 to"][..]),
        (&["--tokens", "0"], &["tokens: 0"]),
        (&["--deltas", "0,-1"], &["delta: -1"]),
        (&["--gammas", "0.5,1"], &["gamma: 1"]),
        (&["--deltas", "x"], &["--deltas"]),
        (&["--tokens", "9999"], &["context"]),
        (&["--plot", "/nonexistent/x.svg"], &["/nonexistent/x.svg"]),
    ] {
        let run = tiny(&user, flags);
        run.refused(2, parts);
        assert_eq!(run.stdout, "", "{flags:?}");
    }
}

/// The rows of a run with the default model.
fn rows(more: &[&str]) -> Vec<Value> {
    let model = default_model().display().to_string();
    let base = ["eval", "curve", "--json", "--model", &model];
    let run = User::new().run(&[&base[..], more].concat());
    assert_eq!(run.code, 0, "{}", run.block());
    let json = run.json();
    assert_eq!(json["delta_zero"]["equal"], json["delta_zero"]["texts"]);
    json["rows"].as_array().unwrap().clone()
}

fn detected(version: &Value, rate: usize) -> u64 {
    version["rates"][rate]["detected"].as_u64().unwrap()
}

fn perplexity(row: &Value) -> f64 {
    row["perplexity"]["mean"].as_f64().unwrap()
}

#[test]
fn a_strong_mark_is_found_soon_and_costs_perplexity() {
    let flags = ["--texts", "4", "--tokens", "60", "--deltas", "0,5", "--gammas", "0.5"];
    let rows = rows(&flags);
    let [plain, strong, gumbel] = rows.as_slice() else { panic!("{rows:?}") };
    // 0 of 4 at 1e-3 without a mark, 4 of 4 with one.
    for length in 0..3 {
        assert_eq!(detected(&plain["by_length"][length], 0), 0);
        assert_eq!(plain["by_length"][length]["rates"][0]["upper"], {
            let upper: f64 = 1.0 - 0.025f64.powf(0.25);
            serde_json::json!(upper)
        });
    }
    assert_eq!(detected(&strong["by_length"][2], 0), 4, "{strong}");
    assert_eq!(detected(&strong["by_length"][2], 1), 4, "{strong}");
    assert_eq!(detected(&gumbel["by_length"][2], 0), 4, "{gumbel}");
    assert!(perplexity(strong) > 1.5 * perplexity(plain), "{strong}");
    for row in &rows {
        let attacks = row["attacks"].as_array().unwrap();
        let names: Vec<_> = attacks.iter().map(|attack| attack["attack"].as_str()).collect();
        let of = |name| [Some(name); 3];
        assert_eq!(names, [of("deletion"), of("substitution"), of("crop")].concat());
        let scored = |version: &Value| version["mean_scored"].as_f64().unwrap();
        // A crop of half of the text leaves half of the tokens; a substitution leaves them all.
        let whole = scored(&row["by_length"][2]);
        assert!((scored(&attacks[8]) - whole / 2.0).abs() < 4.0, "{row}");
        assert!((scored(&attacks[5]) - whole).abs() < 8.0, "{row}");
    }
}

#[test]
#[ignore = "long: tools/check-stats"]
fn detection_rises_with_delta_and_length_and_perplexity_with_delta() {
    let rows = rows(&["--quick"]);
    let green = &rows[..3];
    let at = |row: &Value, length: usize| detected(&row["by_length"][length], 0);
    for pair in green.windows(2) {
        assert!(perplexity(&pair[0]) < perplexity(&pair[1]), "{rows:?}");
        for length in 0..4 {
            assert!(at(&pair[0], length) <= at(&pair[1], length), "{rows:?}");
        }
    }
    for row in &rows[1..] {
        for length in 0..3 {
            assert!(at(row, length) <= at(row, length + 1), "{row}");
        }
        // 20 texts of 200 tokens, all found, at delta 2, at delta 5 and by gumbel; 19 for a loop.
        assert!(at(row, 3) >= 19, "{row}");
    }
    // Half of the tokens replaced costs more than half of them cut away.
    let after = |row: &Value, attack: usize| detected(&row["attacks"][attack], 1);
    assert!(after(&rows[1], 5) < after(&rows[1], 8), "{}", rows[1]);
    // Gumbel draws from the model's own distribution, as texts without a mark do.
    let interval = |row: &Value| {
        let of = |end: &str| row["perplexity"][end].as_f64().unwrap();
        (of("lower"), of("upper"))
    };
    let (plain, gumbel) = (interval(&rows[0]), interval(&rows[3]));
    assert!(plain.0 < gumbel.1 && gumbel.0 < plain.1, "{plain:?} {gumbel:?}");
}
