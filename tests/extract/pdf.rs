//! PDF.

use greenmark::extract::{Format, Limits, Note, text};

use crate::fixture::{page_of, pdf, pdf_with};
use crate::{about_the_file, read, refusal};

#[test]
fn lines_of_the_layout_are_lines_of_the_text() {
    let page = page_of(&["It was the best of times,", "it was the worst \\(of\\) times."]);
    let expected = "It was the best of times,\nit was the worst (of) times.\n";
    assert_eq!(read(Format::Pdf, &pdf(&[&page])), (expected.to_owned(), vec![]));
}

#[test]
fn the_gaps_of_justified_text_are_one_space() {
    // A space with a gap, a gap alone, a space alone, no gap, and a space at the end of a line.
    let page = "BT /F1 12 Tf 72 720 Td [(It ) -900 (was) -900 (the ) (be) (st )] TJ \
                0 -14 Td (  of) Tj 0 -40 Td (times) Tj ET";
    assert_eq!(read(Format::Pdf, &pdf(&[page])).0, "It was the best\nof\n\ntimes\n");
}

#[test]
fn pages_follow_each_other_and_empty_ones_are_named() {
    let (first, third) = (page_of(&["first"]), page_of(&["third"]));
    let (text, notes) = read(Format::Pdf, &pdf(&[&first, "", &third, ""]));
    assert_eq!(text, "first\nthird\n");
    assert_eq!(notes, [Note::PagesWithoutText { pages: vec![2, 4] }]);
    assert_eq!(notes[0].to_string(), "2 pages have no text, perhaps a scan: 2, 4");
}

#[test]
fn a_scan_an_encrypted_and_a_damaged_file_are_refused_by_name() {
    let message = refusal(Format::Pdf, &pdf(&["", ""]));
    assert!(message.contains("no text in it (2 pages); perhaps a scan"), "{message}");

    let page = page_of(&["secret"]);
    let garbage = "ab".repeat(32);
    let encryption = format!(
        "<< /Filter /Standard /V 2 /R 3 /Length 128 /P -44 /O <{garbage}> /U <{garbage}> >>"
    );
    let trailer = "/Encrypt 6 0 R /ID [<00> <00>] ";
    let message = refusal(Format::Pdf, &pdf_with(&[&page], trailer, &[encryption]));
    assert!(message.contains("encrypted, and needs a password"), "{message}");

    let whole = pdf(&[&page]);
    for length in [9, whole.len() / 2] {
        let message = refusal(Format::Pdf, &whole[..length]);
        assert!(message.starts_with("the PDF file: "), "{length}: {message}");
    }
}

#[test]
fn a_text_above_the_limit_is_refused() {
    let file = pdf(&[&page_of(&["1234567890"]), &page_of(&["1234567890"])]);
    let limits = Limits { text_bytes: 12, ..Limits::default() };
    let message = about_the_file(&text(Format::Pdf, &file, &limits).unwrap_err());
    assert!(message.contains("the text has more than 12 bytes, the limit is 12"), "{message}");
}
