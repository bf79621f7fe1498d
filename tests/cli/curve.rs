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
    insta::assert_snapshot!(run.block(), @r#"
    exit code: 0
    ----- stdout -----
    2 texts of 26 tokens a setting, seed 1, weights 21 F32; intervals at 95%
    green-list at delta 0 against no mark: 2 of 2 texts equal

    scheme      gamma  delta               perplexity    repeated 4-grams %    distinct 2-grams %     scored  changed
    green-list    0.5      0   118.91 [16.03, 882.08]        0.0 [0.0, 0.0]  100.0 [100.0, 100.0]       25.0        2
    green-list    0.5      5    75.49 [2.02, 2815.26]        0.0 [0.0, 0.0]  100.0 [100.0, 100.0]       22.5        2
    gumbel          -      -     38.43 [23.86, 61.91]        0.0 [0.0, 0.0]    98.0 [72.6, 100.0]       37.5        2

    % of texts found at false positive rate 1e-3, by tokens
    scheme      gamma  delta           T=25           T=26
    green-list    0.5      0      0 [0, 84]      0 [0, 84]
    green-list    0.5      5      0 [0, 84]      0 [0, 84]
    gumbel          -      -      0 [0, 84]      0 [0, 84]

    % of texts found at false positive rate 1e-5, by tokens
    scheme      gamma  delta           T=25           T=26
    green-list    0.5      0      0 [0, 84]      0 [0, 84]
    green-list    0.5      5      0 [0, 84]      0 [0, 84]
    gumbel          -      -      0 [0, 84]      0 [0, 84]

    % of texts found after deletion of a share of 26 tokens, at each false positive rate
    scheme      gamma  delta       10% 1e-3       30% 1e-3       50% 1e-3       10% 1e-5       30% 1e-5       50% 1e-5
    green-list    0.5      0      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]
    green-list    0.5      5      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]
    gumbel          -      -      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]

    % of texts found after substitution of a share of 26 tokens, at each false positive rate
    scheme      gamma  delta       10% 1e-3       30% 1e-3       50% 1e-3       10% 1e-5       30% 1e-5       50% 1e-5
    green-list    0.5      0      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]
    green-list    0.5      5      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]
    gumbel          -      -      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]

    % of texts found after crop of a share of 26 tokens, at each false positive rate
    scheme      gamma  delta       10% 1e-3       30% 1e-3       50% 1e-3       10% 1e-5       30% 1e-5       50% 1e-5
    green-list    0.5      0      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]
    green-list    0.5      5      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]
    gumbel          -      -      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]      0 [0, 84]
    ----- stderr -----
    wm: 8 texts of 26 tokens
    wm: no mark: 2 texts written, 2 of 8
    wm: green-list gamma 0.5 delta 5: 2 texts written, 4 of 8
    wm: gumbel: 2 texts written, 6 of 8
    wm: green-list gamma 0.5 delta 0: 2 texts written, 8 of 8
    "#);
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
fn a_strong_mark_is_found_soon() {
    let flags = ["--texts", "4", "--tokens", "60", "--deltas", "0,5", "--gammas", "0.5"];
    let rows = rows(&flags);
    let [plain, strong, gumbel] = rows.as_slice() else { panic!("{rows:?}") };
    for length in &plain["by_length"].as_array().unwrap()[..] {
        // Of 4 texts at a true rate of 1e-3, more than one is beyond the 99.9% quantile.
        assert!(detected(length, 0) <= 1, "{plain}");
        assert_eq!(detected(length, 1), 0, "{plain}");
        // Of none in four the upper end has the closed form 1 - 0.025^(1/4).
        let upper = length["rates"][1]["upper"].as_f64().unwrap();
        assert!((upper - (1.0 - 0.025f64.powf(0.25))).abs() < 1e-9, "{upper}");
    }
    for rate in 0..2 {
        assert_eq!(detected(&strong["by_length"][2], rate), 4, "{strong}");
        assert_eq!(detected(&gumbel["by_length"][2], rate), 4, "{gumbel}");
    }
    for row in &rows {
        let attacks = row["attacks"].as_array().unwrap();
        let names: Vec<_> = attacks.iter().map(|attack| attack["attack"].as_str()).collect();
        let of = |name| [Some(name); 3];
        assert_eq!(names, [of("deletion"), of("substitution"), of("crop")].concat());
    }
    // A crop of half of the text leaves half of the tokens; a substitution leaves them all.
    let scored = |version: &Value| version["mean_scored"].as_f64().unwrap();
    let whole = scored(&plain["by_length"][2]);
    assert!((scored(&plain["attacks"][8]) - whole / 2.0).abs() < 4.0, "{plain}");
    assert!((scored(&plain["attacks"][5]) - whole).abs() < 8.0, "{plain}");
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
