//! Axes: from values to places in the plane and back, and where labels stand.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::Ranged;

/// How an axis runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Equal steps are equal differences.
    #[cfg_attr(
        not(any(feature = "engine", test)),
        expect(dead_code, reason = "only evaluations on a model draw such axes")
    )]
    Linear,
    /// Equal steps are equal ratios; the range is above 0.
    Log,
}

/// An axis.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) scale: Scale,
    /// Smallest and largest value shown.
    pub(crate) range: (f64, f64),
}

/// The places of an axis in the plane, with labels where they are told.
pub(super) struct Ticked {
    pub(super) places: RangedCoordf64,
    pub(super) ticks: Vec<f64>,
}

impl Ranged for Ticked {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.places.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.places.range()
    }
}

/// A value in the plane: its decimal logarithm on a logarithmic axis.
pub(super) fn forth(value: f64, scale: Scale) -> f64 {
    match scale {
        Scale::Linear => value,
        Scale::Log => value.log10(),
    }
}

/// The value at a place of the plane.
pub(super) fn back(place: f64, scale: Scale) -> f64 {
    match scale {
        Scale::Linear => place,
        Scale::Log => 10f64.powf(place),
    }
}

pub(super) fn within(place: f64, range: &Range<f64>) -> bool {
    // The ends of a range are computed as the points are, up to rounding.
    let slack = (range.end - range.start) * 1e-9;
    place >= range.start - slack && place <= range.end + slack
}

/// The range of an axis in the plane, and where its labels stand.
pub(super) fn scaled(axis: &Axis) -> (Range<f64>, Vec<f64>) {
    let (low, high) = (forth(axis.range.0, axis.scale), forth(axis.range.1, axis.scale));
    // A range without extent (one value measured) or without meaning still gives a picture.
    let (low, high) = match (low.is_finite() && high.is_finite(), low < high) {
        (true, true) => (low, high),
        (true, false) => (low - 0.5, low + 0.5),
        (false, _) => (0.0, 1.0),
    };
    let ticks = match axis.scale {
        Scale::Linear => even_ticks(low, high, nice_step((high - low) / 6.0)),
        Scale::Log if high - low < 2.0 => (-330..310)
            .flat_map(|decade| [1.0, 2.0, 5.0].map(|digit: f64| f64::from(decade) + digit.log10()))
            .filter(|tick| within(*tick, &(low..high)))
            .collect(),
        Scale::Log => even_ticks(low, high, ((high - low) / 8.0).ceil()),
    };
    (low..high, ticks)
}

/// The multiples of `step` in the range.
fn even_ticks(low: f64, high: f64, step: f64) -> Vec<f64> {
    let first = (low / step - 1e-9).ceil();
    (0..64)
        .map(|index| (first + f64::from(index)) * step)
        .take_while(|tick| *tick <= high + step * 1e-9)
        .collect()
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `step`.
fn nice_step(step: f64) -> f64 {
    let decade = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|digit| digit * decade)
        .into_iter()
        .find(|nice| *nice >= step * (1.0 - 1e-9))
        .unwrap_or(step)
}

/// A number in few letters: 0.25, 200, 1e-5.
pub(super) fn tick_label(value: f64) -> String {
    if value.abs() < 1e-12 {
        return "0".to_owned();
    }
    if (0.0099..99_999.0).contains(&value.abs()) {
        // Six digits hide the rounding of logarithms and steps.
        let text = format!("{value:.6}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let text = format!("{value:.1e}");
    text.replace(".0e", "e")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_and_steps_are_round() {
        let labels = [0.0, 0.25, 0.3000000001, 200.0, 1e-5, 2.5e-7, 1e6, 0.01].map(tick_label);
        assert_eq!(labels, ["0", "0.25", "0.3", "200", "1e-5", "2.5e-7", "1e6", "0.01"]);
        assert_eq!([0.011, 0.2, 0.3, 7.0].map(nice_step), [0.02, 0.2, 0.5, 10.0]);
        assert_eq!(even_ticks(0.0, 1.0, 0.25), [0.0, 0.25, 0.5, 0.75, 1.0]);
    }
}
