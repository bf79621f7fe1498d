//! Which format a file has, and plain text.

use std::path::Path;

use greenmark::extract::{Format, Limits, text};
use greenmark::{Error, ErrorKind};

use crate::fixture::{archive, docx, paragraph, pdf};
use crate::{about_the_file, read, refusal};

fn detect(name: &str, media_type: &str, bytes: &[u8]) -> Result<Format, Error> {
    let name = (!name.is_empty()).then(|| Path::new(name));
    Format::detect(name, (!media_type.is_empty()).then_some(media_type), bytes)
}

fn refused(name: &str, media_type: &str, bytes: &[u8]) -> String {
    let error = detect(name, media_type, bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    error.to_string()
}

#[test]
fn the_name_says_the_format() {
    let (docx, pdf) = (docx(&paragraph("a")), pdf(&[""]));
    for (name, bytes, format) in [
        ("a.txt", &b"x"[..], Format::Text),
        ("A.TXT", b"", Format::Text),
        ("folder.pdf/a.md", b"# x", Format::Markdown),
        ("a.markdown", b"# x", Format::Markdown),
        ("a.html", b"x", Format::Html),
        ("a.htm", b"<p>", Format::Html),
        ("a.docx", &docx, Format::Docx),
        ("a.pdf", &pdf, Format::Pdf),
    ] {
        assert_eq!(detect(name, "", bytes).unwrap(), format, "{name}");
        // What a sender says of its file does not matter then.
        assert_eq!(detect(name, "image/png", bytes).unwrap(), format, "{name}");
    }
}

#[test]
fn the_media_type_counts_where_the_name_says_nothing_and_the_bytes_after_it() {
    let word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    let (docx, pdf) = (docx(&paragraph("a")), pdf(&[""]));
    assert_eq!(detect("", "text/html; charset=UTF-8", b"x").unwrap(), Format::Html);
    assert_eq!(detect("upload", "Text/Markdown", b"x").unwrap(), Format::Markdown);
    assert_eq!(detect("x.bin", "text/plain", b"x").unwrap(), Format::Text);
    assert_eq!(detect("", word, &docx).unwrap(), Format::Docx);
    assert_eq!(detect("", "application/pdf", &pdf).unwrap(), Format::Pdf);
    for media_type in ["", "application/octet-stream"] {
        assert_eq!(detect("", media_type, &docx).unwrap(), Format::Docx);
        assert_eq!(detect("x.bin", media_type, &pdf).unwrap(), Format::Pdf);
        assert_eq!(detect("README", media_type, b"words").unwrap(), Format::Text);
    }
}

#[test]
fn a_contradiction_names_both_sides() {
    let (docx, pdf) = (docx(&paragraph("a")), pdf(&[""]));
    assert!(
        refused("a.txt", "", &pdf).starts_with(
            "file format disagrees: the name (.txt) says text, the content says pdf; "
        )
    );
    assert!(refused("a.html", "", &docx).contains("the content says docx"));
    assert!(refused("a.docx", "", b"words").contains(
        "the name (.docx) says docx, the content says no ZIP archive, as DOCX files are"
    ));
    let other = archive(&[("a.txt", "a")]);
    assert!(refused("a.docx", "", &other).contains("a ZIP archive that is no DOCX file"));
    assert!(refused("a.docx", "", &pdf).contains("the content says pdf"));
    assert!(refused("a.pdf", "", b"words").contains("no PDF header"));
    assert!(refused("", "text/plain", &pdf).contains("the media type (text/plain) says text"));
    let old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
    assert!(refused("a.docx", "", old).contains("an old or encrypted Office file"));
    assert!(Format::Text.check("--format", &pdf).unwrap_err().to_string().contains("--format"));
    // A header that does not stand at the start is one all the same.
    assert_eq!(detect("a.pdf", "", b"\0junk\n%PDF-1.4").unwrap(), Format::Pdf);
}

#[test]
fn other_formats_are_refused_by_name_with_what_is_supported() {
    let supported = "supported: text, markdown, html, docx, pdf";
    let old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
    for (name, media_type, bytes, found) in [
        ("a.doc", "", &old[..], ".doc (an old or encrypted Office file)"),
        ("a.doc", "", b"words", ".doc"),
        ("a.odt", "", &archive(&[("mimetype", "x")]), ".odt (a ZIP archive that is no DOCX file)"),
        ("a.rtf", "", b"{\\rtf1 x}", ".rtf (RTF)"),
        ("a.png", "", b"\x89PNG\r\n", ".png (a PNG picture)"),
        ("", "", b"\xff\xd8\xff\xe0", "a JPEG picture"),
        ("", "application/msword", b"words", "application/msword"),
    ] {
        let message = refused(name, media_type, bytes);
        assert_eq!(message, format!("unsupported file format {found}; {supported}"));
    }
    let message = Format::parse("odt").unwrap_err().to_string();
    assert!(message.contains("format: odt") && message.contains("docx"), "{message}");
    for format in Format::ALL {
        assert_eq!(Format::parse(format.name()).unwrap(), format);
    }
}

#[test]
fn text_and_markdown_stay_as_they_are() {
    for bytes in ["", "one\r\ntwo\n\n", "\u{feff}# *x*\t  \u{0}", "<p>&amp;</p>"] {
        for format in [Format::Text, Format::Markdown] {
            assert_eq!(read(format, bytes.as_bytes()), (bytes.to_owned(), vec![]));
        }
    }
}

#[test]
fn other_character_sets_are_refused_with_the_way_out() {
    let message = refusal(Format::Text, b"caf\xe9");
    assert!(message.contains("the text file (byte 3): not UTF-8"), "{message}");
    let message = refusal(Format::Markdown, b"\xff\xfea\0");
    assert!(message.contains("iconv -f UTF-16LE -t UTF-8"), "{message}");
    let message = refusal(Format::Text, b"\xfe\xff\0a");
    assert!(message.contains("iconv -f UTF-16BE -t UTF-8"), "{message}");
}

#[test]
fn sizes_are_exact_to_the_byte() {
    let limits = Limits { file_bytes: 5, ..Limits::default() };
    assert_eq!(text(Format::Text, b"12345", &limits).unwrap().text, "12345");
    let message = about_the_file(&text(Format::Text, b"123456", &limits).unwrap_err());
    assert!(message.contains("the file has 6 bytes, the limit is 5"), "{message}");
    let limits = Limits { text_bytes: 5, ..Limits::default() };
    assert_eq!(text(Format::Html, b"<p>12345", &limits).unwrap().text, "12345");
    let message = about_the_file(&text(Format::Html, b"<p>123456", &limits).unwrap_err());
    assert!(message.contains("the text has 6 bytes, the limit is 5"), "{message}");
    let limits = Limits { text_bytes: 6, ..Limits::default() };
    assert_eq!(text(Format::Docx, &docx(&paragraph("12345")), &limits).unwrap().text, "12345\n");
    let error = text(Format::Docx, &docx(&paragraph("123456")), &limits).unwrap_err();
    let message = about_the_file(&error);
    assert!(message.contains("the text has more than 6 bytes, the limit is 6"), "{message}");
}
