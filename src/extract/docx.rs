//! DOCX: the text of `w:t` in document order, a line break after each paragraph.
//!
//! Left out is what a reader of the printed page does not see as text: deletions, the origin of
//! moved text, field codes, hidden runs, ruby, equations; and what stands outside the body:
//! footnotes, endnotes, headers, footers, comments. Table cells follow each other, one paragraph
//! a line. A text box follows the paragraph that holds it, once, although files hold it twice.

use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::reader::NsReader;

use super::{Format, Limits, Note, package, too_large};
use crate::error::{Error, Result};

/// Word's own elements, in the transitional and the strict form of the standard.
const WORD: [&str; 2] = [
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
];
const COMPATIBILITY: &str = "http://schemas.openxmlformats.org/markup-compatibility/2006";
const MATH: [&str; 2] = [
    "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "http://purl.oclc.org/ooxml/officeDocument/math",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Vocabulary {
    Word,
    Compatibility,
    Math,
    Other,
}

impl Vocabulary {
    fn of(resolved: &ResolveResult<'_>) -> Self {
        match resolved {
            ResolveResult::Bound(Namespace(name)) if WORD.contains(name) => Self::Word,
            ResolveResult::Bound(Namespace(COMPATIBILITY)) => Self::Compatibility,
            ResolveResult::Bound(Namespace(name)) if MATH.contains(name) => Self::Math,
            _ => Self::Other,
        }
    }
}

/// An element that is open.
enum Open {
    Paragraph,
    Run {
        hidden: bool,
    },
    RunProperties,
    Text,
    /// Several forms of one content, of which one is read.
    Alternatives {
        taken: bool,
    },
    Other,
}

/// A paragraph as it grows.
#[derive(Default)]
struct Paragraph {
    text: String,
    /// Of the text boxes in it.
    boxes: String,
}

#[derive(Default)]
struct Walk {
    text: String,
    open: Vec<Open>,
    /// A text box nests paragraphs.
    paragraphs: Vec<Paragraph>,
    /// Depth inside an element that is left out.
    skipped: usize,
    /// Open runs that are hidden.
    hidden: usize,
    /// Bytes written.
    written: u64,
    notes: Vec<Note>,
    has_root: bool,
}

pub(super) fn text(bytes: &[u8], limits: &Limits) -> Result<(String, Vec<Note>)> {
    let xml = package::main_part(bytes, limits)?;
    let mut reader = NsReader::from_str(&xml);
    reader.config_mut().expand_empty_elements = true;
    let mut walk = Walk::default();
    loop {
        let position = reader.buffer_position();
        let (resolved, event) =
            reader.read_resolved_event().map_err(|error| broken(position, &error.to_string()))?;
        match event {
            Event::Start(element) => walk.start(Vocabulary::of(&resolved), &element),
            Event::End(_) => walk.end(),
            Event::Text(text) => walk.characters(&text.xml10_content()),
            Event::CData(text) => walk.characters(&text.xml10_content()),
            Event::GeneralRef(reference) => {
                let character = match reference.resolve_char_ref() {
                    Ok(Some(character)) => Some(character),
                    Ok(None) => predefined(&reference.xml10_content()),
                    Err(_) => None,
                };
                let character = character
                    .ok_or_else(|| broken(position, "an entity that XML does not have"))?;
                walk.characters(character.encode_utf8(&mut [0; 4]));
            }
            Event::DocType(_) => {
                return Err(broken(position, "a document type definition, which DOCX has not"));
            }
            Event::Eof => break,
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
        if walk.written > limits.text_bytes {
            let found = format!("more than {} bytes", limits.text_bytes);
            return Err(too_large("text", &found, limits.text_bytes, Format::Docx));
        }
    }
    if !walk.has_root || !walk.open.is_empty() || walk.skipped > 0 {
        let problem = if walk.has_root { "it ends too soon" } else { "it is no Word document" };
        return Err(broken(reader.buffer_position(), problem));
    }
    Ok((walk.text, walk.notes))
}

fn broken(position: u64, problem: &str) -> Error {
    Error::document(
        Format::Docx.what(),
        None,
        format!("damaged at byte {position} of the unpacked text: {problem}"),
        "save it again as a DOCX file",
    )
}

/// The five entities that every XML document has.
fn predefined(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "apos" => Some('\''),
        "quot" => Some('"'),
        _ => None,
    }
}

impl Walk {
    fn start(&mut self, vocabulary: Vocabulary, element: &BytesStart<'_>) {
        let name = element.local_name();
        let name = name.as_ref();
        if self.skipped > 0 {
            if vocabulary == Vocabulary::Word {
                self.note_reference(name);
            }
            self.skipped += 1;
            return;
        }
        let opened = match vocabulary {
            Vocabulary::Word => {
                self.note_reference(name);
                self.word(name, element)
            }
            Vocabulary::Compatibility => self.compatibility(name),
            Vocabulary::Math => {
                self.note(Note::EquationsLeftOut);
                None
            }
            Vocabulary::Other => Some(Open::Other),
        };
        match opened {
            Some(opened) => self.open.push(opened),
            None => self.skipped = 1,
        }
    }

    /// What a Word element opens; none when it is left out with all that is in it.
    fn word(&mut self, name: &str, element: &BytesStart<'_>) -> Option<Open> {
        match name {
            "document" => self.has_root = true,
            "p" => {
                self.paragraphs.push(Paragraph::default());
                return Some(Open::Paragraph);
            }
            "r" => return Some(Open::Run { hidden: false }),
            "rPr" => return Some(Open::RunProperties),
            "t" => return Some(Open::Text),
            // Tab stops and the mark of a paragraph are no characters of the text.
            "pPr" | "del" | "moveFrom" | "delText" | "instrText" | "delInstrText" | "rt" => {
                return None;
            }
            "tab" | "ptab" => self.write("\t"),
            "br" | "cr" => self.write("\n"),
            "noBreakHyphen" => self.write("\u{2011}"),
            "softHyphen" => self.write("\u{ad}"),
            "vanish" => self.vanish(element),
            _ => {}
        }
        Some(Open::Other)
    }

    /// One of the alternatives is read: the first, which is the one for newer programs.
    fn compatibility(&mut self, name: &str) -> Option<Open> {
        match (name, self.open.last_mut()) {
            ("AlternateContent", _) => Some(Open::Alternatives { taken: false }),
            ("Choice" | "Fallback", Some(Open::Alternatives { taken })) => {
                (!std::mem::replace(taken, true)).then_some(Open::Other)
            }
            _ => Some(Open::Other),
        }
    }

    fn vanish(&mut self, element: &BytesStart<'_>) {
        let off = element.attributes().flatten().any(|attribute| {
            attribute.key.local_name().as_ref() == "val"
                && matches!(attribute.value.as_ref(), "0" | "false" | "off")
        });
        if let [.., Open::Run { hidden }, Open::RunProperties] = self.open.as_mut_slice()
            && !off
            && !*hidden
        {
            *hidden = true;
            self.hidden += 1;
        }
    }

    fn end(&mut self) {
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        match self.open.pop() {
            Some(Open::Paragraph) => {
                let Some(Paragraph { mut text, boxes }) = self.paragraphs.pop() else { return };
                text.push('\n');
                text.push_str(&boxes);
                self.written += 1;
                match self.paragraphs.last_mut() {
                    Some(outer) => outer.boxes.push_str(&text),
                    None => self.text.push_str(&text),
                }
            }
            Some(Open::Run { hidden: true }) => self.hidden -= 1,
            _ => {}
        }
    }

    fn characters(&mut self, text: &str) {
        if self.skipped == 0 && matches!(self.open.last(), Some(Open::Text)) {
            self.write(text);
        }
    }

    fn write(&mut self, text: &str) {
        if self.hidden > 0 {
            self.note(Note::HiddenTextLeftOut);
        } else if let Some(paragraph) = self.paragraphs.last_mut() {
            self.written += text.len() as u64;
            paragraph.text.push_str(text);
        }
    }

    fn note_reference(&mut self, name: &str) {
        match name {
            "footnoteReference" | "endnoteReference" => self.note(Note::NotesLeftOut),
            "headerReference" | "footerReference" => self.note(Note::HeadersLeftOut),
            _ => {}
        }
    }

    fn note(&mut self, note: Note) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
