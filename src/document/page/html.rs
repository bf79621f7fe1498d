//! Writing HTML: everything that comes from outside goes through [`Escaped`].

use std::fmt::{self, Display, Formatter, Write};

use crate::document::visible::one_line;

/// Appends formatted markup to a `String`, which takes every write.
macro_rules! put {
    ($html:expr, $($part:tt)*) => {{
        let _ = ::std::fmt::Write::write_fmt($html, format_args!($($part)*));
    }};
}
pub(super) use put;

/// A name, a sentence or a value as one line of text: markup is escaped and hidden characters are
/// named. Safe between tags and inside quoted attributes.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        escape(formatter, &one_line(self.0))
    }
}

/// Writes `text`, which holds no hidden characters, with its markup escaped.
pub(super) fn escape(out: &mut impl Write, text: &str) -> fmt::Result {
    for character in text.chars() {
        match character {
            '&' => out.write_str("&amp;")?,
            '<' => out.write_str("&lt;")?,
            '>' => out.write_str("&gt;")?,
            '"' => out.write_str("&quot;")?,
            '\'' => out.write_str("&#39;")?,
            _ => out.write_char(character)?,
        }
    }
    Ok(())
}

/// A term and its value in a definition list. `value` is markup.
pub(super) fn entry(html: &mut String, term: &str, value: impl Display) {
    put!(html, "<div><dt>{term}</dt><dd>{value}</dd></div>\n");
}

/// A table that scrolls by itself on narrow screens, also by keyboard.
pub(super) fn table(html: &mut String, caption: &str, heads: &[&str], rows: impl Display) {
    put!(
        html,
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\">\n<table>\n\
         <caption>{caption}</caption>\n<thead><tr>"
    );
    for head in heads {
        // Words start at the left, numbers end at the right.
        let start = if matches!(*head, "Begins" | "Text") { " class=\"start\"" } else { "" };
        put!(html, "<th scope=\"col\"{start}>{head}</th>");
    }
    put!(html, "</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n");
}
