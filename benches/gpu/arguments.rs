//! The command line of the bench.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::Result;

/// What was asked for.
pub(crate) struct Arguments {
    pub(crate) mode: String,
    /// Sizes that the mock driver gets through in seconds.
    pub(crate) small: bool,
    /// Where measurements go as JSON.
    pub(crate) json: Option<PathBuf>,
    numbers: BTreeMap<String, usize>,
}

impl Arguments {
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Self> {
        // What cargo adds to the arguments of a bench.
        let mut arguments = arguments.filter(|argument| argument != "--bench");
        let mode = arguments.next().ok_or("which of chain, bits, generate and decode?")?;
        let mut found = Self { mode, small: false, json: None, numbers: BTreeMap::new() };
        while let Some(argument) = arguments.next() {
            let name = argument.strip_prefix("--").ok_or(format!("{argument} is no option"))?;
            if name == "small" {
                found.small = true;
                continue;
            }
            let value = arguments.next().ok_or(format!("{argument} has no value"))?;
            if name == "json" {
                found.json = Some(value.into());
            } else {
                let number = value.parse().map_err(|_| format!("{argument} {value}: no number"))?;
                found.numbers.insert(name.to_owned(), number);
            }
        }
        Ok(found)
    }

    /// The number of that name, or one of the two that stand for it: on a device, and when small.
    pub(crate) fn number(&self, name: &str, full: usize, small: usize) -> usize {
        let default = if self.small { small } else { full };
        self.numbers.get(name).copied().unwrap_or(default)
    }
}
