//! `--highlight`: the text with every token marked, for a terminal or a pipe.
//!
//! Colour is never alone. On a terminal green tokens are underlined and what was not scored stands
//! in dim brackets; without colour brackets say it all. Control characters of the text are shown
//! by name and never reach the terminal.

use std::fmt::Write;
use std::io::IsTerminal;

use greenmark::detect::{Report, TokenDetail};
use greenmark::document::marked::{Mark, merged, stretches};
use greenmark::document::visible::{Part, label, parts};

use crate::args::ColorChoice;

/// Brackets that hold green tokens, tokens that were not scored, and characters of several tokens.
const GREEN: [char; 2] = ['⟦', '⟧'];
const UNSCORED: [char; 2] = ['⟨', '⟩'];
const MIXED: [char; 2] = ['⟪', '⟫'];

/// Whether colours are used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Coloured,
}

impl Style {
    /// What was asked for; by default colours on a terminal, unless `NO_COLOR` is set to anything.
    pub(super) fn of(choice: ColorChoice) -> Self {
        let silenced = |name: &str, values: &dyn Fn(&str) -> bool| {
            std::env::var_os(name).is_some_and(|value| values(&value.to_string_lossy()))
        };
        let coloured = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                std::io::stdout().is_terminal()
                    && !silenced("NO_COLOR", &|value| !value.is_empty())
                    && !silenced("TERM", &|value| value == "dumb")
            }
        };
        if coloured { Self::Coloured } else { Self::Plain }
    }

    /// What stands before and behind a stretch: brackets where colour does not say it.
    fn around(self, mark: Mark) -> (&'static str, Option<[char; 2]>) {
        match (self, mark) {
            (Self::Plain, Mark::For) => ("", Some(GREEN)),
            (Self::Plain, Mark::Against) => ("", None),
            (Self::Plain, Mark::Mixed) => ("", Some(MIXED)),
            (Self::Plain, Mark::Unscored) => ("", Some(UNSCORED)),
            (Self::Coloured, Mark::For) => ("\x1b[32;4m", None),
            (Self::Coloured, Mark::Against) => ("\x1b[31m", None),
            (Self::Coloured, Mark::Mixed) => ("\x1b[33m", Some(MIXED)),
            (Self::Coloured, Mark::Unscored) => ("\x1b[2m", Some(UNSCORED)),
        }
    }

    fn put(self, out: &mut String, mark: Mark, words: &str) {
        let (colour, brackets) = self.around(mark);
        // A line end inside an underlined stretch would draw the line to the edge of the screen.
        for (index, line) in words.split('\n').enumerate() {
            if index > 0 {
                out.push('\n');
            }
            if line.is_empty() {
                continue;
            }
            out.push_str(colour);
            out.extend(brackets.map(|[open, _]| open));
            out.push_str(line);
            out.extend(brackets.map(|[_, close]| close));
            if !colour.is_empty() {
                out.push_str("\x1b[0m");
            }
        }
    }
}

/// A legend, an empty line and the marked text.
pub(super) fn text(style: Style, report: &Report, text: &str, details: &[TokenDetail]) -> String {
    let (green, red) =
        if report.gamma.is_some() { ("green", "red") } else { ("high score", "low score") };
    let mut out = String::from("\n  tokens of the text as given: ");
    style.put(&mut out, Mark::For, green);
    out.push(' ');
    style.put(&mut out, Mark::Against, red);
    out.push(' ');
    style.put(&mut out, Mark::Unscored, "not scored");
    out.push_str("\n\n");
    for stretch in merged(&stretches(text, details)) {
        style.put(&mut out, stretch.mark, &safe(&text[stretch.bytes]));
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// The text as a terminal may have it; its own brackets of our kind are named too.
fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for part in parts(text) {
        match part {
            Part::Shown(shown) => {
                for character in shown.chars() {
                    if [GREEN, UNSCORED, MIXED].as_flattened().contains(&character) {
                        // A String takes every write.
                        let _ = write!(safe, "<U+{:04X}>", u32::from(character));
                    } else {
                        safe.push(character);
                    }
                }
            }
            Part::Hidden(run) => {
                let _ = write!(safe, "<{}>", label(run));
            }
        }
    }
    safe
}
