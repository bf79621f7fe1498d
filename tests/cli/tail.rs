//! `wm inspect tail`.

use serde_json::{Value, json};

use crate::support::{Run, User};

fn tail(args: &[&str]) -> Run {
    User::new().run(&[&["inspect", "tail"], args].concat())
}

fn tail_json(args: &[&str]) -> Value {
    tail(&[args, &["--json"]].concat()).json()
}

fn assert_close(value: &Value, expected: f64, relative: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() <= relative * expected.abs(), "{value:e} {expected:e}");
}

#[test]
fn w10_the_exact_binomial_tail() {
    let report = tail_json(&["binomial", "--n", "36", "--k", "28", "--p", "0.25"]);
    assert_close(&report["p"], 4.623e-11, 5e-4);
    assert_close(&report["log10_p"], 4.623e-11f64.log10(), 1e-4);
    assert_eq!(report.get("p_status"), None);
    let run = tail(&["binomial", "--n", "1", "--k", "1", "--p", "0.5"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "p 5e-1, log10 p -0.301030\n"));
}

#[test]
fn w11_a_tail_no_double_holds_has_a_logarithm_and_a_status() {
    let report = tail_json(&["normal", "--z", "40"]);
    assert_eq!((&report["p"], &report["p_status"]), (&Value::Null, &json!("underflow")));
    assert_close(&report["log10_p"], -349.437, 1e-6);
    let all = tail_json(&["binomial", "--n", "10000000", "--k", "10000000", "--p", "0.5"]);
    assert_close(&all["log10_p"], -3_010_299.956_639_812, 1e-12);
    assert_eq!(tail(&["normal", "--z", "40"]).stdout, "p below 1e-300, log10 p -349.437006\n");
}

#[test]
fn gamma_and_normal_tails_have_closed_forms() {
    let report = tail_json(&["gamma", "--shape", "2", "--x", "10"]);
    assert_close(&report["p"], 11.0 * (-10f64).exp(), 1e-12);
    assert_close(&tail_json(&["normal", "--z", "4"])["p"], 3.167_124_183_311_992e-5, 1e-12);
    assert_eq!(tail_json(&["normal", "--z", "-40"])["p"], 1.0);
}

#[test]
fn an_impossible_count_says_so() {
    let report = tail_json(&["binomial", "--n", "10", "--k", "11", "--p", "0.5"]);
    assert_eq!(report, json!({ "p": 0.0, "p_status": "impossible", "log10_p": null }));
    let report = tail_json(&["weighted", "--weights", "[1,2]", "--p", "0.5", "--x", "3.5"]);
    assert_eq!(report["p_status"], "impossible");
    assert_eq!(report["lower"]["p_status"], "impossible");
}

#[test]
fn weighted_tails_have_both_bounds_and_the_method() {
    let args = ["weighted", "--weights", "[0.1,0.2,0.3]", "--p", "0.5", "--x", "0.3"];
    let report = tail_json(&args);
    // {0.3}, {0.1, 0.2}, {0.1, 0.3}, {0.2, 0.3}, all: five of eight.
    assert_close(&report["p"], 0.625, 1e-9);
    assert_close(&report["lower"]["p"], 0.625, 1e-9);
    assert!(report["method"] == "exact" || report["method"] == "lattice");
    let rates = ["weighted", "--weights", "[1,2]", "--p", "[0.25,0.5]", "--x", "3"];
    assert_close(&tail_json(&rates)["p"], 0.125, 1e-9);
    let user = User::new();
    let weights: Vec<f64> = (0..300).map(|i| f64::from(i * i % 97) / 97.0).collect();
    let file = format!("@{}", user.file("w.json", serde_json::to_string(&weights).unwrap()));
    let flags = ["--weights", &file, "--p", "0.5", "--x", "100"];
    let report =
        user.run(&[&["inspect", "tail", "weighted", "--json"][..], &flags].concat()).json();
    let ratio = report["p"].as_f64().unwrap() / report["lower"]["p"].as_f64().unwrap();
    assert!((1.0..=1.02).contains(&ratio), "{ratio}");
}

#[test]
fn values_outside_their_range_are_refused_by_name() {
    for (args, parts) in [
        (&["binomial", "--n", "-1", "--k", "1", "--p", "0.5"][..], &["n: -1", "0 to 10000000"][..]),
        (&["binomial", "--n", "10000001", "--k", "1", "--p", "0.5"], &["n: 10000001"]),
        (&["binomial", "--n", "5", "--k", "-2", "--p", "0.5"], &["k: -2"]),
        (&["binomial", "--n", "5", "--k", "2", "--p", "nan"], &["p: NaN", "from 0 to 1"]),
        (&["binomial", "--n", "5", "--k", "2", "--p", "1.5"], &["p: 1.5"]),
        (&["binomial", "--n", "10000000", "--k", "5000000", "--p", "5e-324"], &["2.3e-308 to 1"]),
        (&["weighted", "--weights", "[1,2,3]", "--p", "1e-320", "--x", "6"], &["2.3e-308 to 1"]),
        (&["gamma", "--shape", "0", "--x", "1"], &["shape: 0", "from 0.001"]),
        (&["gamma", "--shape", "2", "--x", "-1"], &["x: -1"]),
        (&["normal", "--z", "inf"], &["z: inf"]),
        (&["weighted", "--weights", "[1,-2]", "--p", "0.5", "--x", "1"], &["weights: -2"]),
        (&["weighted", "--weights", "1,2", "--p", "0.5", "--x", "1"], &["weights", "JSON list"]),
        (&["weighted", "--weights", "[1,2]", "--p", "[0.5]", "--x", "1"], &["p: 1 numbers"]),
        (&["weighted", "--weights", "[1,2]", "--p", "2", "--x", "1"], &["p: 2"]),
        (&["weighted", "--weights", "[1,2]", "--p", "0.5", "--x", "nan"], &["x: NaN"]),
    ] {
        tail(args).refused(2, parts);
    }
}

#[test]
fn weights_far_apart_have_bounds_that_agree() {
    let weights = ["weighted", "--weights", "[1,1e-13,1e-14,1e-15]"];
    let report = tail_json(&[&weights[..], &["--p", ".25", "--x", "1.0000000000001"]].concat());
    assert_close(&report["p"], 0.0625, 1e-3);
    assert_close(&report["lower"]["p"], 0.0625, 1e-3);
}
