//! Data on standard output, where a closed pipe or a full disk is an error value and never a
//! panic; talk on standard error, where nothing can be done about either.

use std::fmt::Arguments;
use std::io::{self, Write};

use anyhow::{Context, Result};
use serde::Serialize;

/// Writes `text` and flushes it, so that a reader of a stream sees it at once.
pub(crate) fn write(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .context("cannot write to standard output")
}

/// Writes a line.
pub(crate) fn line(text: &str) -> Result<()> {
    write(&format!("{text}\n"))
}

/// Writes a value as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    line(&serde_json::to_string_pretty(value).context("cannot write the result as JSON")?)
}

/// Says something on standard error, after the program's name.
macro_rules! note {
    ($($part:tt)*) => { $crate::output::say(format_args!($($part)*)) };
}
pub(crate) use note;

/// The function behind [`note!`].
pub(crate) fn say(text: Arguments<'_>) {
    // Nobody is left to tell when standard error is gone.
    let _ = writeln!(io::stderr().lock(), "wm: {text}");
}
