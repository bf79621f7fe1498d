//! The package of a DOCX file: a ZIP archive whose relations name the part that holds the text
//! (ECMA-376 part 2). Parts are unpacked in memory, up to a limit.

use std::borrow::Cow;
use std::io::{Cursor, Read};

use quick_xml::events::Event;
use quick_xml::{Reader, XmlVersion};
use zip::ZipArchive;
use zip::result::ZipError;

use super::{Format, Limits, plain, too_large};
use crate::error::{Error, Result};

/// Where the main part nearly always is.
const USUAL_PART: &str = "word/document.xml";

/// Whether a ZIP archive looks like a DOCX file. A damaged one still does.
pub(super) fn is_docx(bytes: &[u8]) -> bool {
    // Names stand uncompressed in the archive.
    bytes.windows(5).any(|window| window == b"word/")
}

/// The XML of the main part.
pub(super) fn main_part(bytes: &[u8], limits: &Limits) -> Result<String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(&error))?;
    let name = match part(&mut archive, "_rels/.rels", limits)? {
        Some(relations) => office_document(&relations).unwrap_or_else(|| USUAL_PART.to_owned()),
        None => USUAL_PART.to_owned(),
    };
    part(&mut archive, &name, limits)?.ok_or_else(|| {
        Error::document(
            Format::Docx.what(),
            None,
            format!("it has no part {name}"),
            "save it again as a DOCX file",
        )
    })
}

/// A part as text; none when the package does not have it.
fn part(
    archive: &mut ZipArchive<Cursor<&[u8]>>,
    name: &str,
    limits: &Limits,
) -> Result<Option<String>> {
    let file = match archive.by_name(name) {
        Ok(file) => file,
        Err(ZipError::FileNotFound) => return Ok(None),
        Err(error) => return Err(damaged(&error)),
    };
    let mut unpacked = Vec::new();
    // The size that an archive claims is not believed.
    file.take(limits.unpacked_bytes.saturating_add(1))
        .read_to_end(&mut unpacked)
        .map_err(|error| damaged(&error))?;
    if unpacked.len() as u64 > limits.unpacked_bytes {
        let found = format!("more than {} bytes", limits.unpacked_bytes);
        let part = format!("unpacked part {name}");
        return Err(too_large(&part, &found, limits.unpacked_bytes, Format::Docx));
    }
    plain::text(Format::Docx, &unpacked).map(Some)
}

fn damaged(error: &dyn std::error::Error) -> Error {
    Error::document(
        Format::Docx.what(),
        None,
        format!("damaged or cut short ({error})"),
        "save it again as a DOCX file without a password",
    )
}

/// The target of the relation to the main part, as a name in the archive.
fn office_document(relations: &str) -> Option<String> {
    let mut reader = Reader::from_str(relations);
    loop {
        match reader.read_event() {
            Ok(Event::Start(element) | Event::Empty(element)) => {
                let attribute = |name: &str| {
                    let found = element.try_get_attribute(name).ok().flatten()?;
                    found.normalized_value(XmlVersion::Implicit1_0).ok().map(Cow::into_owned)
                };
                if attribute("Type").is_some_and(|kind| kind.ends_with("/officeDocument")) {
                    return attribute("Target").map(|to| to.trim_start_matches('/').to_owned());
                }
            }
            // A part that cannot be read names nothing; the usual place is tried.
            Ok(Event::Eof | Event::DocType(_)) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}
