//! HTML: the text that a page shows, with the line breaks of `innerText` of the HTML standard:
//! a blank line around `p`, a line break around other blocks and table cells, one for `br`; white
//! space collapses except in `pre`. Style sheets and scripts do nothing here.
//!
//! html2text's parser makes the tree. Its renderer is not used: it wraps, draws lists and tables,
//! and calls itself for every level of a page, which a stranger may nest as deep as memory allows.

use std::collections::HashMap;

use html2text::{Element, Handle, RcDom};

use super::{Format, Limits, Note, plain};
use crate::error::{Error, Result};

/// Elements whose content is no text of the page. A browser that runs scripts does not show
/// `noscript`; the content of a `template` is no child of it.
const LEFT_OUT: [&str; 20] = [
    "audio", "canvas", "datalist", "head", "iframe", "noembed", "noframes", "noscript", "object",
    "rp", "rt", "script", "select", "style", "svg", "template", "textarea", "title", "video",
    "xmp",
];

/// Elements that begin and end a line.
const BLOCKS: [&str; 47] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "center",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "hr",
    "legend",
    "li",
    "listing",
    "main",
    "menu",
    "nav",
    "ol",
    "pre",
    "search",
    "section",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "ul",
];

/// What is still to be done in the tree.
enum Visit {
    Enter { node: Handle, in_element: bool },
    Leave(Layout),
}

/// How an element shapes the lines around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Inline,
    Block,
    Paragraph,
    Preformatted,
}

impl Layout {
    fn of(name: &str) -> Self {
        match name {
            "p" => Self::Paragraph,
            "pre" | "listing" => Self::Preformatted,
            _ if BLOCKS.contains(&name) => Self::Block,
            _ => Self::Inline,
        }
    }

    /// Line breaks before and after.
    fn breaks(self) -> usize {
        match self {
            Self::Inline => 0,
            Self::Block | Self::Preformatted => 1,
            Self::Paragraph => 2,
        }
    }
}

/// Elements that others close, or that hold nothing: their start tags do not add up.
const CLOSED_BY_OTHERS: [&str; 30] = [
    "area", "base", "body", "br", "caption", "col", "colgroup", "dd", "dt", "embed", "head", "hr",
    "html", "img", "input", "li", "link", "meta", "optgroup", "option", "p", "param", "rp", "rt",
    "source", "td", "th", "tr", "track", "wbr",
];

/// Levels of a page. Browsers build 512; the parser looks through all of them at many tags, so
/// that time grows with their square.
const DEEPEST: usize = 10_000;

pub(super) fn text(bytes: &[u8], limits: &Limits) -> Result<(String, Vec<Note>)> {
    let mut notes = Vec::new();
    let source = decode(bytes, &mut notes)?;
    if is_nested_too_deep(source) {
        return Err(Error::document(
            Format::Html.what(),
            None,
            format!("nested above {DEEPEST} levels"),
            "save it again from a browser, or give its text",
        ));
    }
    let dom = html2text::config::plain_no_decorate()
        .parse_html(source.as_bytes())
        .map_err(|error| Error::backend("reading HTML from memory", error))?;
    let text = walk(&dom, limits, &mut notes)?;
    Ok((text, notes))
}

/// The page as text: UTF-8, whatever it declares.
fn decode<'a>(bytes: &'a [u8], notes: &mut Vec<Note>) -> Result<&'a str> {
    let declared = declared_charset(bytes);
    let declared = declared.filter(|name| !matches!(name.as_str(), "utf-8" | "utf8"));
    match (plain::utf8(Format::Html, bytes), declared) {
        (Ok(text), Some(declared)) if !text.is_ascii() => {
            notes.push(Note::OtherCharset { declared });
            Ok(text)
        }
        (Ok(text), _) => Ok(text),
        (Err(Error::Document { offset: Some(offset), .. }), Some(declared)) if offset > 0 => {
            Err(plain::other_charset(Format::Html, offset, &declared))
        }
        (Err(error), _) => Err(error),
    }
}

/// The character set that a `meta` element near the start declares, in lower case.
fn declared_charset(bytes: &[u8]) -> Option<String> {
    // As far as browsers look.
    let head = bytes.get(..bytes.len().min(1024)).unwrap_or(bytes).to_ascii_lowercase();
    let head = String::from_utf8_lossy(&head);
    head.split("<meta").skip(1).find_map(|element| {
        let element = element.split('>').next()?;
        let value = element.split_once("charset")?.1.trim_start().strip_prefix('=')?;
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        // The name becomes part of a command in a message.
        let name: String = value
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
            .take(40)
            .collect();
        (!name.is_empty() && !name.starts_with('-')).then_some(name)
    })
}

/// Whether more elements are open at once than [`DEEPEST`], by a count of tags. A page can be
/// written to pass this and still be slow; the limit of time is for that.
fn is_nested_too_deep(page: &str) -> bool {
    let mut open: HashMap<String, usize> = HashMap::new();
    let mut levels = 0_usize;
    for tag in page.split('<').skip(1) {
        let inner = tag.split('>').next().unwrap_or(tag);
        let (name, closes) = inner.strip_prefix('/').map_or((inner, false), |name| (name, true));
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let name = name[..end.unwrap_or(name.len())].to_ascii_lowercase();
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic());
        // Foreign elements such as those of SVG close themselves so.
        if !is_name || inner.ends_with('/') || CLOSED_BY_OTHERS.contains(&name.as_str()) {
            continue;
        }
        let count = open.entry(name).or_default();
        if !closes {
            *count += 1;
            levels += 1;
        } else if *count > 0 {
            *count -= 1;
            levels -= 1;
        }
        if levels > DEEPEST {
            return true;
        }
    }
    false
}

/// Goes through the tree without recursion.
fn walk(dom: &RcDom, limits: &Limits, notes: &mut Vec<Note>) -> Result<String> {
    let mut lines = Lines::default();
    let mut todo = vec![Visit::Enter { node: dom.document.clone(), in_element: false }];
    while let Some(visit) = todo.pop() {
        let (node, in_element) = match visit {
            Visit::Enter { node, in_element } => (node, in_element),
            Visit::Leave(layout) => {
                lines.leave(layout);
                continue;
            }
        };
        if let Element { name, attrs, .. } = &node.data {
            let name: &str = &name.local;
            let note = if name == "math" {
                Some(Note::EquationsLeftOut)
            } else if attrs.borrow().iter().any(|attribute| &*attribute.name.local == "hidden") {
                Some(Note::HiddenTextLeftOut)
            } else {
                None
            };
            if note.is_some() || LEFT_OUT.contains(&name) {
                notes.extend(note.filter(|note| !notes.contains(note)));
                continue;
            }
            if name == "br" {
                lines.line_break();
            }
            let layout = Layout::of(name);
            lines.enter(layout);
            todo.push(Visit::Leave(layout));
            push_children(&mut todo, &node, true);
        } else if matches!(node.data, html2text::Document) {
            push_children(&mut todo, &node, false);
        } else if in_element && !matches!(node.data, html2text::Comment { .. }) {
            lines.text(&text_of(&node)?);
            // What is left to read cannot make it shorter.
            super::limit("text", lines.text.len() as u64, limits.text_bytes, Format::Html)?;
        }
    }
    Ok(lines.text)
}

fn push_children(todo: &mut Vec<Visit>, node: &Handle, in_element: bool) {
    let children = node.children.borrow();
    todo.extend(children.iter().rev().map(|node| Visit::Enter { node: node.clone(), in_element }));
}

/// The characters of a text node. The parser gives them only as a serialisation, whose four
/// escapes are undone here.
fn text_of(node: &Handle) -> Result<String> {
    let mut escaped = Vec::new();
    let failed = |error| Error::backend("reading a text of an HTML page", error);
    node.serialize(&mut escaped).map_err(failed)?;
    let escaped = String::from_utf8_lossy(&escaped);
    Ok(escaped
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&nbsp;", "\u{a0}")
        .replace("&amp;", "&"))
}

/// The text as it grows. White space and line breaks wait until something follows them.
#[derive(Default)]
struct Lines {
    text: String,
    space: bool,
    /// Line breaks that the blocks around this place ask for.
    blocks: usize,
    /// Line breaks that stand in the page.
    explicit: usize,
    /// Open preformatted elements.
    preformatted: usize,
}

impl Lines {
    fn enter(&mut self, layout: Layout) {
        self.block(layout.breaks());
        if layout == Layout::Preformatted {
            self.preformatted += 1;
        }
    }

    fn leave(&mut self, layout: Layout) {
        self.block(layout.breaks());
        if layout == Layout::Preformatted {
            self.preformatted -= 1;
        }
    }

    fn block(&mut self, breaks: usize) {
        if breaks > 0 {
            self.blocks = self.blocks.max(breaks);
            self.space = false;
        }
    }

    fn line_break(&mut self) {
        self.explicit += 1;
        self.space = false;
    }

    fn text(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '\n' if self.preformatted > 0 => self.line_break(),
                _ if self.preformatted > 0 => self.character(character),
                // A no-break space is a character like any other.
                ' ' | '\t' | '\n' | '\r' | '\u{c}' => self.space = true,
                _ => self.character(character),
            }
        }
    }

    fn character(&mut self, character: char) {
        // The last break of a block is the one that ends it anyway.
        let breaks = match (self.blocks, self.explicit) {
            (0, explicit) => explicit,
            (blocks, 0) => blocks,
            (blocks, explicit) => blocks + explicit - 1,
        };
        if !self.text.is_empty() {
            if breaks > 0 {
                self.text.extend(std::iter::repeat_n('\n', breaks));
            } else if self.space {
                self.text.push(' ');
            }
        }
        (self.space, self.blocks, self.explicit) = (false, 0, 0);
        self.text.push(character);
    }
}
