//! The regions of a report in words: where, never what stands there.

use greenmark::detect::{Correction, Region, Report};

/// A line for the best window of each look, then the regions that are significant.
pub(super) fn lines(report: &Report) -> Vec<String> {
    let best = report.windows.iter().map(|region| {
        let correction = match region.correction {
            Correction::UnionBound => "union bound",
            Correction::FirstPassage => "first-passage bound",
        };
        format!("best window: {} ({correction} over {} windows)", place(region), region.windows)
    });
    let spans = report.spans.iter().map(|region| format!("marked region: {}", place(region)));
    best.chain(spans).collect()
}

fn place(region: &Region) -> String {
    let [from, to] = region.tokens;
    let offsets = match (region.bytes, region.chars) {
        (Some([from, to]), Some([first, last])) => {
            format!(", bytes {from}..{to}, characters {first}..{last}")
        }
        _ => String::new(),
    };
    let look = match region.normalization.as_str() {
        "none" => String::new(),
        normalization => format!(" after {normalization}"),
    };
    let share = match region.green {
        Some(green) => format!("green {green} of {}", region.scored),
        None => format!("{} scored", region.scored),
    };
    format!(
        "tokens {from}..{to}{offsets}{look}, {share}, z {:.2}, log10 p {:.2}, corrected {:.2}",
        region.z, region.log10_p, region.corrected_log10_p
    )
}
