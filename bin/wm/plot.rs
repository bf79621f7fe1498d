//! Charts as one self-contained SVG: panels in a grid, lines with intervals, a legend each.
//!
//! The file holds no font, script or link. Series differ in colour and in the form of their
//! points, in colours that colour-blind readers can tell apart (Okabe and Ito 2008). A viewer that
//! prefers dark gets the same picture on a dark ground; one that knows no style sheets shows the
//! light one. It does not compute anything: intervals come from the caller.

mod axis;

use std::fmt::Write;
use std::ops::Range;

use anyhow::{Context, Result};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub(crate) use axis::{Axis, Scale};
use axis::{Ticked, back, forth, scaled, tick_label, within};

/// Size of one panel in pixels.
const PANEL: (u32, u32) = (480, 360);
/// Size of the letters of axes and legends in pixels; a letter is about 0.55 of it wide.
const LETTERS: u32 = 13;
const LEGEND_ROW: u32 = 18;

/// A colour on a light ground and its counterpart on a dark one.
struct Ink {
    light: RGBColor,
    dark: &'static str,
}

const GROUND: Ink = Ink { light: RGBColor(0xFF, 0xFF, 0xFF), dark: "#16181D" };
const TEXT: Ink = Ink { light: RGBColor(0x22, 0x25, 0x2B), dark: "#E4E6EB" };
const GRID: Ink = Ink { light: RGBColor(0xDD, 0xDF, 0xE4), dark: "#353942" };
const DIAGONAL: Ink = Ink { light: RGBColor(0x8A, 0x8F, 0x99), dark: "#8B919D" };
const SERIES: [Ink; 6] = [
    Ink { light: RGBColor(0x00, 0x72, 0xB2), dark: "#56B4E9" },
    Ink { light: RGBColor(0xD5, 0x5E, 0x00), dark: "#F0883E" },
    Ink { light: RGBColor(0x00, 0x8A, 0x64), dark: "#2CC596" },
    Ink { light: RGBColor(0xB0, 0x54, 0x8A), dark: "#E29CC4" },
    Ink { light: RGBColor(0x9A, 0x74, 0x00), dark: "#E8C33B" },
    Ink { light: RGBColor(0x5B, 0x61, 0x6E), dark: "#B4BAC6" },
];

/// A measured value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// Of `y`.
    pub(crate) interval: Option<(f64, f64)>,
}

/// Points that a line joins.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<Point>,
}

/// One panel. A point outside the ranges is not drawn; of its interval the part inside is.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    /// Whether the line y = x is drawn.
    pub(crate) diagonal: bool,
}

/// The charts in a grid of `columns`, as the text of an SVG file.
pub(crate) fn svg(charts: &[Chart], columns: usize) -> Result<String> {
    let columns = columns.clamp(1, charts.len().max(1));
    let rows = charts.len().div_ceil(columns).max(1);
    let (width, height) = (PANEL.0 * pixels(columns), PANEL.1 * pixels(rows));
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
        root.fill(&GROUND.light).context("cannot draw the ground of the plot")?;
        for (area, chart) in root.split_evenly((rows, columns)).iter().zip(charts) {
            panel(&root, area, chart)
                .with_context(|| format!("cannot draw the panel \"{}\"", chart.title))?;
        }
        root.present().context("cannot finish the plot")?;
    }
    Ok(with_style(&text))
}

/// A small count as pixels.
fn pixels(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX / 4096)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Plane<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ticked, Ticked>>;

fn panel(root: &Area<'_>, area: &Area<'_>, chart: &Chart) -> Result<()> {
    let legend = legend_rows(&chart.series, area.dim_in_pixel().0);
    let (head, body) = area.split_vertically(38 + LEGEND_ROW * pixels(legend.len()));
    head.draw(&Text::new(chart.title.clone(), (16, 14), letters(LETTERS + 2)))?;
    let (left, top) = head.get_base_pixel();
    for (row, entries) in legend.iter().enumerate() {
        let y = 46 + i32::try_from(LEGEND_ROW * pixels(row))?;
        for &(index, x) in entries {
            head.draw(&PathElement::new([(x, y), (x + 24, y)], line(index)))?;
            mark(root, index, (left + x + 12, top + y))?;
            let at = (x + 30, y);
            let style = letters(LETTERS).pos(Pos::new(HPos::Left, VPos::Center));
            head.draw(&Text::new(chart.series[index].name.clone(), at, style))?;
        }
    }
    let (x_range, x_ticks) = scaled(&chart.x);
    let (y_range, y_ticks) = scaled(&chart.y);
    let mut plane = ChartBuilder::on(&body)
        .margin_top(8)
        .margin_right(20)
        .margin_left(6)
        .margin_bottom(4)
        .x_label_area_size(44)
        .y_label_area_size(62)
        .build_cartesian_2d(
            Ticked { places: x_range.clone().into(), ticks: x_ticks },
            Ticked { places: y_range.clone().into(), ticks: y_ticks },
        )?;
    plane
        .configure_mesh()
        .bold_line_style(GRID.light)
        .light_line_style(TRANSPARENT)
        .axis_style(DIAGONAL.light)
        .label_style(letters(LETTERS - 1))
        .axis_desc_style(letters(LETTERS))
        .x_desc(chart.x.label.as_str())
        .y_desc(chart.y.label.as_str())
        .x_label_formatter(&|value| tick_label(back(*value, chart.x.scale)))
        .y_label_formatter(&|value| tick_label(back(*value, chart.y.scale)))
        .draw()?;
    if chart.diagonal {
        draw_diagonal(&mut plane, chart, &x_range, &y_range)?;
    }
    for (index, series) in chart.series.iter().enumerate() {
        let points = series.points.iter().map(|point| Place::new(point, chart)).collect::<Vec<_>>();
        draw_series(root, &mut plane, index, &points, (&x_range, &y_range))?;
    }
    Ok(())
}

/// y = x, also between axes of different scale.
fn draw_diagonal(
    plane: &mut Plane<'_, '_>,
    chart: &Chart,
    x_range: &Range<f64>,
    y_range: &Range<f64>,
) -> Result<()> {
    // Straight between axes of one scale: more points would only show the pixels.
    let steps = if chart.x.scale == chart.y.scale { 1 } else { 200 };
    let start = x_range.start.max(forth(back(y_range.start, chart.y.scale), chart.x.scale));
    let end = x_range.end.min(forth(back(y_range.end, chart.y.scale), chart.x.scale));
    let points: Vec<(f64, f64)> = (0..=steps)
        .map(|index| start + (end - start) * f64::from(index) / f64::from(steps))
        .map(|x| (x, forth(back(x, chart.x.scale), chart.y.scale)))
        .filter(|(_, y)| within(*y, y_range))
        .collect();
    if points.len() > 1 {
        plane.draw_series([PathElement::new(points, DIAGONAL.light.stroke_width(1))])?;
    }
    Ok(())
}

/// A point in the coordinates of the plane.
struct Place {
    at: (f64, f64),
    interval: Option<(f64, f64)>,
}

impl Place {
    fn new(point: &Point, chart: &Chart) -> Self {
        let y = |value| forth(value, chart.y.scale);
        Self {
            at: (forth(point.x, chart.x.scale), y(point.y)),
            interval: point.interval.map(|(low, high)| (y(low), y(high))),
        }
    }
}

fn draw_series(
    root: &Area<'_>,
    plane: &mut Plane<'_, '_>,
    index: usize,
    points: &[Place],
    (x_range, y_range): (&Range<f64>, &Range<f64>),
) -> Result<()> {
    let shown = |place: &Place| within(place.at.0, x_range) && within(place.at.1, y_range);
    for place in points.iter().filter(|place| within(place.at.0, x_range)) {
        let Some((low, high)) = place.interval else { continue };
        let (low, high) = (low.max(y_range.start), high.min(y_range.end));
        if low < high {
            let ends = [(place.at.0, low), (place.at.0, high)];
            plane.draw_series([PathElement::new(ends, line(index))])?;
        }
    }
    // A point that is not drawn parts the line: what would join its neighbours was not measured.
    for run in points.split(|place| !shown(place)).filter(|run| run.len() > 1) {
        let run: Vec<(f64, f64)> = run.iter().map(|place| place.at).collect();
        plane.draw_series([PathElement::new(run, line(index))])?;
    }
    for place in points.iter().filter(|place| shown(place)) {
        mark(root, index, plane.backend_coord(&place.at))?;
    }
    Ok(())
}

fn line(index: usize) -> ShapeStyle {
    SERIES[index % SERIES.len()].light.stroke_width(2)
}

/// A series' mark around a pixel. Forms differ, so that colour is never the only difference.
fn mark(root: &Area<'_>, index: usize, (x, y): (i32, i32)) -> Result<()> {
    const FORMS: [&[(i32, i32)]; 6] = [
        &[
            (4, 1),
            (4, -1),
            (3, -3),
            (1, -4),
            (-1, -4),
            (-3, -3),
            (-4, -1),
            (-4, 1),
            (-3, 3),
            (-1, 4),
            (1, 4),
            (3, 3),
        ],
        &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
        &[(0, -5), (5, 4), (-5, 4)],
        &[(0, -6), (5, 0), (0, 6), (-5, 0)],
        &[(0, 5), (5, -4), (-5, -4)],
        &[(-2, -5), (2, -5), (2, 5), (-2, 5)],
    ];
    let form = FORMS[index % FORMS.len()].iter().map(|(dx, dy)| (x + dx, y + dy));
    root.draw(&Polygon::new(
        form.collect::<Vec<_>>(),
        SERIES[index % SERIES.len()].light.filled(),
    ))?;
    Ok(())
}

/// The entries of the legend in rows that fit `width`: the number of the series and its place.
fn legend_rows(series: &[Series], width: u32) -> Vec<Vec<(usize, i32)>> {
    const START: u32 = 16;
    let mut rows: Vec<Vec<(usize, i32)>> = Vec::new();
    let mut x = width;
    // One series needs no name beside the title.
    for (index, series) in series.iter().enumerate().filter(|_| series.len() > 1) {
        // No font is at hand to measure with; a letter of a common sans serif is this wide.
        let needed = 30 + pixels(series.name.chars().count()) * LETTERS * 55 / 100 + 18;
        if x + needed > width {
            rows.push(Vec::new());
            x = START;
        }
        if let Some(row) = rows.last_mut() {
            row.push((index, i32::try_from(x).unwrap_or(i32::MAX)));
        }
        x += needed;
    }
    rows
}

fn letters(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&TEXT.light)
}

/// Puts in the style sheet that exchanges the colours where a dark ground is preferred.
fn with_style(svg: &str) -> String {
    let hex = |RGBColor(r, g, b): RGBColor| format!("#{r:02X}{g:02X}{b:02X}");
    let mut rules = String::new();
    for ink in [&GROUND, &TEXT, &GRID, &DIAGONAL].into_iter().chain(&SERIES) {
        let (light, dark) = (hex(ink.light), ink.dark);
        for property in ["fill", "stroke"] {
            // A String takes every write.
            let _ = write!(rules, "[{property}=\"{light}\"]{{{property}:{dark}}}");
        }
    }
    let style = format!(
        "<style>text{{font-family:system-ui,sans-serif}}\
         @media (prefers-color-scheme:dark){{{rules}}}</style>\n"
    );
    match svg.find('>') {
        Some(end) => format!("{}\n{style}{}", &svg[..=end], svg[end + 1..].trim_start()),
        None => svg.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<Point>) -> Chart {
        Chart {
            title: "a < b & c".to_owned(),
            x: Axis { label: "alpha".to_owned(), scale: Scale::Log, range: (1e-5, 1e-2) },
            y: Axis { label: "rate".to_owned(), scale: Scale::Linear, range: (0.0, 1.0) },
            series: vec![
                Series { name: "one".to_owned(), points: points.clone() },
                Series { name: "two".to_owned(), points },
            ],
            diagonal: true,
        }
    }

    fn point(x: f64, y: f64) -> Point {
        Point { x, y, interval: Some((y - 0.1, y + 0.1)) }
    }

    #[test]
    fn a_chart_is_one_closed_document_with_both_grounds() {
        let text = svg(&[chart(vec![point(1e-4, 0.5)]), chart(Vec::new())], 2).unwrap();
        assert!(text.starts_with("<svg ") && text.trim_end().ends_with("</svg>"));
        assert!(text.contains("prefers-color-scheme:dark") && text.contains("a &lt; b &amp; c"));
        assert_eq!(text.matches("://").count(), 1, "only the name of the namespace");
        for label in ["1e-5", "1e-4", "1e-3", "0.01", "0.2", "alpha", "rate", "one", "two"] {
            let shown = text.lines().any(|line| line.trim() == label);
            assert!(shown, "{label} is missing: {text}");
        }
        // Every colour that is used has a counterpart in the dark.
        for part in text.split("fill=\"#").skip(1).chain(text.split("stroke=\"#").skip(1)) {
            let colour = &part[..6];
            assert!(text.contains(&format!("=\"#{colour}\"]")), "#{colour}");
        }
    }

    #[test]
    fn a_point_outside_is_left_out_and_parts_the_line() {
        let marks = |points: &[Point]| {
            svg(&[chart(points.to_vec())], 1).unwrap().matches("<polygon").count()
        };
        let inside = [point(1e-4, 0.5), point(1e-3, 0.6), point(1e-2, 0.7)];
        // Two marks of the legend, then the points of both series.
        assert_eq!(marks(&[]), 2);
        assert_eq!(marks(&inside), 2 + 6);
        for outside in
            [point(0.0, 0.5), point(1e-3, 2.0), point(f64::NAN, 0.5), point(1e-3, f64::INFINITY)]
        {
            assert_eq!(marks(&[inside[0], outside, inside[2]]), 2 + 4, "{outside:?}");
        }
    }

    #[test]
    fn ranges_without_extent_still_give_a_picture() {
        for range in [(0.0, 0.0), (3.0, 3.0), (2.0, 1.0), (f64::NAN, 1.0), (1e-310, 1e300)] {
            for scale in [Scale::Linear, Scale::Log] {
                let mut chart = chart(vec![point(1.0, 1.0)]);
                chart.y = Axis { label: String::new(), scale, range };
                chart.x = chart.y.clone();
                assert!(svg(&[chart], 1).unwrap().contains("</svg>"), "{range:?} {scale:?}");
            }
        }
        assert!(svg(&[], 3).unwrap().contains("</svg>"));
    }
}
