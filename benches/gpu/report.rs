//! Measurements as JSON lines.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use serde_json::Value;

/// Where measurements go.
pub(crate) struct Report(Option<File>);

impl Report {
    /// To a file, behind what it holds; else nowhere.
    pub(crate) fn new(path: Option<&Path>) -> io::Result<Self> {
        let open = |path: &Path| File::options().append(true).create(true).open(path);
        Ok(Self(path.map(open).transpose()?))
    }

    /// Adds a line at once: a run that is cut short leaves what it had.
    pub(crate) fn line(&mut self, measurement: &Value) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), |file| writeln!(file, "{measurement}"))
    }
}

/// The median; 0 of nothing.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
