//! The figures as tables on standard output.

use anyhow::Result;
use greenmark::stats::MeanInterval;

use super::Curve;
use super::measure::{Detection, Found, Row};
use super::plan::{RATES, SHARES, Setting};
use crate::output;

pub(super) fn print(curve: &Curve) -> Result<()> {
    output::line(&format!(
        "{} texts of {} tokens a setting, seed {}, weights {}; intervals at {:.0}%",
        curve.texts,
        curve.tokens,
        curve.seed,
        curve.model,
        curve.confidence * 100.0
    ))?;
    output::line(&format!(
        "green-list at delta 0 against no mark: {} of {} texts equal",
        curve.delta_zero.equal, curve.delta_zero.texts
    ))?;
    quality(curve)?;
    for (index, (_, name)) in RATES.iter().enumerate() {
        output::line(&format!("\n% of texts found at false positive rate {name}, by tokens"))?;
        let lengths = curve.rows.first().map(|row| &row.by_length);
        let heads = lengths.into_iter().flatten().map(|at| format!("T={}", at.tokens)).collect();
        table(curve, heads, |row| row.by_length.iter().map(|at| cell(&at.found, index)).collect())?;
    }
    for attack in attacks(curve) {
        output::line(&format!(
            "\n% of texts found after {attack} of a share of {} tokens, at each false positive rate",
            curve.tokens
        ))?;
        let heads = RATES.iter().flat_map(|(_, name)| {
            SHARES.iter().map(move |share| format!("{:.0}% {name}", share * 100.0))
        });
        table(curve, heads.collect(), |row| {
            (0..RATES.len()).flat_map(|index| after(row, attack, index)).collect()
        })?;
    }
    Ok(())
}

fn quality(curve: &Curve) -> Result<()> {
    output::line(&format!(
        "\n{}  {:>23}  {:>20}  {:>20}  {:>9}  {:>7}",
        head(),
        "perplexity",
        "repeated 4-grams %",
        "distinct 2-grams %",
        "scored",
        "changed"
    ))?;
    for row in &curve.rows {
        let scored = row.by_length.last().map_or(0.0, |at| at.found.mean_scored);
        output::line(&format!(
            "{}  {:>23}  {:>20}  {:>20}  {scored:>9.1}  {:>7}",
            name(row.setting),
            interval(row.perplexity, 2),
            share(row.repeated_4grams),
            share(row.distinct_2grams),
            row.changed_by_round_trip
        ))?;
    }
    Ok(())
}

fn table(curve: &Curve, heads: Vec<String>, cells: impl Fn(&Row) -> Vec<String>) -> Result<()> {
    let line = |name: String, cells: Vec<String>| {
        let cells = cells.iter().map(|cell| format!("{cell:>13}")).collect::<Vec<_>>();
        output::line(&format!("{name}  {}", cells.join("  ")))
    };
    line(head(), heads)?;
    for row in &curve.rows {
        line(name(row.setting), cells(row))?;
    }
    Ok(())
}

/// The names of the attacks, each once.
pub(super) fn attacks(curve: &Curve) -> Vec<&'static str> {
    let mut names = Vec::new();
    for after in curve.rows.iter().flat_map(|row| &row.attacks) {
        if !names.contains(&after.attack) {
            names.push(after.attack);
        }
    }
    names
}

fn after<'a>(row: &'a Row, attack: &'a str, rate: usize) -> impl Iterator<Item = String> + 'a {
    let of = row.attacks.iter().filter(move |after| after.attack == attack);
    of.map(move |after| cell(&after.found, rate))
}

fn cell(found: &Found, rate: usize) -> String {
    let Detection { rate, lower, upper, .. } = found.rates[rate];
    format!("{:.0} [{:.0}, {:.0}]", rate * 100.0, lower * 100.0, upper * 100.0)
}

fn interval(MeanInterval { mean, lower, upper }: MeanInterval, digits: usize) -> String {
    format!("{mean:.digits$} [{lower:.digits$}, {upper:.digits$}]")
}

fn share(value: Option<MeanInterval>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| interval(value.map(|share| share * 100.0), 1))
}

fn head() -> String {
    format!("{:<10}  {:>5}  {:>5}", "scheme", "gamma", "delta")
}

fn name(setting: Setting) -> String {
    match setting {
        Setting::GreenList { gamma, delta } => {
            format!("{:<10}  {gamma:>5}  {delta:>5}", "green-list")
        }
        Setting::Gumbel => format!("{:<10}  {:>5}  {:>5}", "gumbel", "-", "-"),
    }
}
