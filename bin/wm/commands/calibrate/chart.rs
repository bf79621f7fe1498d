//! The two tables as charts: a panel for each length.

use greenmark::detect::calibration::Summary;

use crate::plot::{Axis, Chart, Point, Scale, Series};

/// Panels side by side at most.
const COLUMNS: usize = 4;

/// The charts and in how many columns they stand.
pub(super) fn charts(summary: &Summary) -> (Vec<Chart>, usize) {
    let mut charts: Vec<Chart> = summary
        .validity
        .iter()
        .map(|row| {
            let measured = row.rates.iter().map(|rate| (rate.alpha, rate.measured, rate.interval));
            let attainable = row.rates.iter().map(|rate| (rate.alpha, rate.attainable));
            chart(format!("Fresh keys, {} tokens", row.tokens), measured, attainable)
        })
        .collect();
    charts.extend(summary.fixed_keys.iter().map(|row| {
        let measured = row.rates.iter().map(|rate| (rate.alpha, rate.rate, rate.interval));
        let attainable = row.rates.iter().map(|rate| (rate.alpha, rate.attainable));
        let keys = if row.keys == 1 {
            "One fixed key".to_owned()
        } else {
            format!("{} fixed keys", row.keys)
        };
        chart(format!("{keys}, {} tokens", row.tokens), measured, attainable)
    }));
    (charts, summary.validity.len().min(COLUMNS))
}

fn chart(
    title: String,
    measured: impl Iterator<Item = (f64, f64, (f64, f64))>,
    attainable: impl Iterator<Item = (f64, f64)>,
) -> Chart {
    let measured: Vec<Point> =
        measured.map(|(x, y, interval)| Point { x, y, interval: Some(interval) }).collect();
    let attainable: Vec<Point> = attainable.map(|(x, y)| Point { x, y, interval: None }).collect();
    let alphas = || measured.iter().map(|point| point.x);
    let (low, high) = (alphas().fold(1.0, f64::min), alphas().fold(0.0, f64::max));
    Chart {
        title,
        x: Axis { label: "alpha".to_owned(), scale: Scale::Log, range: (low / 2.0, high * 2.0) },
        y: Axis {
            label: "share of texts with p at most alpha".to_owned(),
            scale: Scale::Log,
            range: (low / 20.0, high * 4.0),
        },
        series: vec![
            Series { name: "measured".to_owned(), points: measured },
            Series { name: "attainable".to_owned(), points: attainable },
        ],
        diagonal: true,
    }
}
