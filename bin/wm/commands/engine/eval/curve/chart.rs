//! The figures as panels of one SVG.

use anyhow::Result;
use greenmark::stats::MeanInterval;

use super::Curve;
use super::measure::{Detection, Found, Row};
use super::plan::{RATES, Setting};
use super::table::attacks;
use crate::plot::{self, Axis, Chart, Point, Scale, Series};

/// Panels beside each other.
const COLUMNS: usize = 3;

pub(super) fn svg(curve: &Curve) -> Result<String> {
    let gammas = gammas(curve);
    let mut charts = Vec::new();
    for (rate, (_, name)) in RATES.iter().enumerate() {
        charts.extend(gammas.iter().map(|&gamma| by_length(curve, gamma, rate, name)));
        charts.push(match rate {
            0 => by_delta(curve, "Perplexity under the unmarked model", "perplexity", |row| {
                Some(row.perplexity)
            }),
            _ => by_delta(curve, "Repetition", "repeated 4-grams, % of a text's", |row| {
                row.repeated_4grams.map(|share| share.map(|share| share * 100.0))
            }),
        });
    }
    if let Some(&gamma) = gammas.last() {
        charts.extend(attacks(curve).into_iter().map(|attack| by_share(curve, attack, gamma)));
    }
    plot::svg(&charts, COLUMNS)
}

/// The gammas of the run, each once.
fn gammas(curve: &Curve) -> Vec<f64> {
    let mut gammas = Vec::new();
    for row in &curve.rows {
        if let Setting::GreenList { gamma, .. } = row.setting
            && !gammas.contains(&gamma)
        {
            gammas.push(gamma);
        }
    }
    gammas
}

/// The settings of a panel: green-list with `gamma`, and gumbel.
fn beside(curve: &Curve, gamma: f64) -> impl Iterator<Item = (String, &Row)> {
    curve.rows.iter().filter_map(move |row| match row.setting {
        Setting::GreenList { gamma: own, delta } => {
            (own == gamma).then(|| (format!("delta {delta}"), row))
        }
        Setting::Gumbel => Some(("gumbel".to_owned(), row)),
    })
}

fn by_length(curve: &Curve, gamma: f64, rate: usize, name: &str) -> Chart {
    let series = beside(curve, gamma).map(|(name, row)| Series {
        name,
        points: row.by_length.iter().map(|at| point(at.tokens as f64, &at.found, rate)).collect(),
    });
    Chart {
        title: format!("Found at false positive rate {name}, gamma {gamma}"),
        x: axis("tokens", (0.0, curve.tokens as f64)),
        y: axis("% of texts", (0.0, 100.0)),
        series: series.collect(),
        diagonal: false,
    }
}

fn by_share(curve: &Curve, attack: &str, gamma: f64) -> Chart {
    let whole = |row: &Row| row.by_length.last().map(|at| point(0.0, &at.found, 0));
    let series = beside(curve, gamma).map(|(name, row)| {
        let after = row.attacks.iter().filter(|after| after.attack == attack);
        let after = after.map(|after| point(after.share.get() * 100.0, &after.found, 0));
        Series { name, points: whole(row).into_iter().chain(after).collect() }
    });
    Chart {
        title: format!("Found after {attack} at {}, gamma {gamma}", RATES[0].1),
        x: axis("% of the tokens touched", (0.0, 50.0)),
        y: axis("% of texts", (0.0, 100.0)),
        series: series.collect(),
        diagonal: false,
    }
}

fn by_delta(
    curve: &Curve,
    title: &str,
    label: &str,
    value: impl Fn(&Row) -> Option<MeanInterval>,
) -> Chart {
    let deltas = curve.rows.iter().filter_map(|row| match row.setting {
        Setting::GreenList { delta, .. } => Some(delta),
        Setting::Gumbel => None,
    });
    let widest = deltas.fold(1.0, f64::max);
    let measured = |x: f64, row: &Row| {
        value(row).map(|MeanInterval { mean, lower, upper }| Point {
            x,
            y: mean,
            interval: Some((lower, upper)),
        })
    };
    let mut series = Vec::new();
    for gamma in gammas(curve) {
        let points = curve.rows.iter().filter_map(|row| match row.setting {
            Setting::GreenList { gamma: own, delta } if own == gamma => measured(delta, row),
            _ => None,
        });
        series.push(Series { name: format!("gamma {gamma}"), points: points.collect() });
    }
    // It has no delta: a level line.
    let level = curve
        .rows
        .iter()
        .filter(|row| row.setting == Setting::Gumbel)
        .flat_map(|row| [measured(0.0, row), measured(widest, row)].into_iter().flatten());
    series.push(Series { name: "gumbel".to_owned(), points: level.collect() });
    let ends = series.iter().flat_map(|series| &series.points).filter_map(|point| point.interval);
    let highest = ends.map(|(_, upper)| upper).fold(1.0, f64::max);
    Chart {
        title: title.to_owned(),
        x: axis("delta", (0.0, widest)),
        y: axis(label, (0.0, highest * 1.05)),
        series,
        diagonal: false,
    }
}

fn point(x: f64, found: &Found, rate: usize) -> Point {
    let Detection { rate, lower, upper, .. } = found.rates[rate];
    Point { x, y: rate * 100.0, interval: Some((lower * 100.0, upper * 100.0)) }
}

fn axis(label: &str, range: (f64, f64)) -> Axis {
    Axis { label: label.to_owned(), scale: Scale::Linear, range }
}
