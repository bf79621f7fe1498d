//! Benjamini-Hochberg.

use greenmark::stats::{LogProbability, benjamini_hochberg};

use crate::close;

fn q_values(p: &[f64]) -> Vec<f64> {
    let logs: Vec<LogProbability> = p.iter().map(|p| LogProbability::from_ln(p.ln())).collect();
    benjamini_hochberg(&logs).into_iter().map(|q| q.ln().exp()).collect()
}

#[test]
fn the_example_of_the_paper_has_its_four_rejections() {
    // Benjamini and Hochberg 1995, section 3.2: at .05 the four smallest of 15 are rejected.
    let p = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
        0.5719, 0.6528, 0.7590, 1.0,
    ];
    let q = q_values(&p);
    assert_eq!(q.iter().filter(|q| **q <= 0.05).count(), 4);
    close(q[3], 0.0095 * 15.0 / 4.0, 1e-12);
    // 0.0278 * 15 / 6 and 0.0298 * 15 / 7 exceed 0.0344 * 15 / 8: the smaller one counts.
    close(q[5], 0.0298 * 15.0 / 7.0, 1e-12);
    close(q[4], 0.0201 * 15.0 / 5.0, 1e-12);
}

#[test]
fn the_order_of_the_input_is_kept_and_ties_are_equal() {
    let q = q_values(&[0.5, 0.01, 0.5, 0.02]);
    for (q, expected) in q.iter().zip([0.5, 0.04, 0.5, 0.04]) {
        close(*q, expected, 1e-12);
    }
    assert!(benjamini_hochberg(&[]).is_empty());
}

#[test]
fn evidence_below_the_smallest_double_keeps_its_logarithm() {
    let logs = [-5000.0, -1.0].map(LogProbability::from_ln);
    close(benjamini_hochberg(&logs)[0].ln(), -5000.0 + 2f64.ln(), 1e-14);
}
