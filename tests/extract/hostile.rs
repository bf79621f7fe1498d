//! Files that want to do harm, or are damaged at random.

use greenmark::Error;
use greenmark::extract::{Format, Limits, text};
use proptest::prelude::*;

use crate::fixture::{archive, document, docx, page_of, paragraph, pdf};
use crate::isolated::{isolation, run};
use crate::{about_the_file, read, refusal};

#[test]
fn a_page_nested_deep_is_read_and_one_nested_100_000_deep_refused() {
    // On the small stack of a worker of the service.
    let worker = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        for (open, close) in [("<div>", "</div>"), ("<DIV a=b>", ""), ("<b>", ""), ("<i>", "</x>")]
        {
            let page = |depth: usize| format!("{}deep{}", open.repeat(depth), close.repeat(depth));
            assert_eq!(read(Format::Html, page(8_000).as_bytes()).0, "deep");
            let message = refusal(Format::Html, page(100_000).as_bytes());
            assert!(message.contains("nested above 10000 levels"), "{message}");
        }
        // Long is not deep.
        for item in ["<div>x</div>", "<p>x", "<li>x", "<br>x", "<svg/>x", "a < b, <3 x"] {
            read(Format::Html, item.repeat(12_000).as_bytes());
        }
    });
    worker.unwrap().join().unwrap();
}

#[test]
fn xml_nested_deep_is_refused_or_read() {
    let worker = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        let depth = 60_000;
        let body = format!("{}{}{}", "<w:p>".repeat(depth), "", "</w:p>".repeat(depth));
        assert_eq!(read(Format::Docx, &docx(&body)).0.len(), depth);
        let body = format!("{}{}", "<w:p>".repeat(100_000), "</w:p>".repeat(100_000));
        assert!(refusal(Format::Docx, &docx(&body)).contains("damaged at byte"));
    });
    worker.unwrap().join().unwrap();
}

#[test]
fn a_zip_bomb_is_refused_with_size_and_limit() {
    let xml = document(&paragraph(&"a".repeat(3 << 20)));
    let bomb = archive(&[("word/document.xml", &xml)]);
    assert!(bomb.len() < 10_000, "{}", bomb.len());
    let limits = Limits { unpacked_bytes: 1 << 20, ..Limits::default() };
    let message = about_the_file(&text(Format::Docx, &bomb, &limits).unwrap_err());
    assert!(
        message.contains("the unpacked part word/document.xml has more than 1048576 bytes"),
        "{message}"
    );
    let limits = Limits { unpacked_bytes: xml.len() as u64, ..Limits::default() };
    assert_eq!(text(Format::Docx, &bomb, &limits).unwrap().text.len(), (3 << 20) + 1);
}

/// A read may refuse a file, but for the file's own fault, and without a panic of its reader.
fn behaves(format: Format, bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Err(error) = text(format, bytes, &Limits::default()) {
        prop_assert!(matches!(error, Error::Document { .. }), "{error}");
        prop_assert!(!error.to_string().contains("the reader fails on it"), "{error}");
    }
    Ok(())
}

/// Some bytes replaced, removed or put in.
fn mutate(bytes: &[u8], changes: &[(prop::sample::Index, u8, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (place, kind, value) in changes {
        if bytes.is_empty() {
            break;
        }
        let at = place.index(bytes.len());
        match kind % 4 {
            0 => bytes[at] = *value,
            1 => bytes.insert(at, *value),
            2 => drop(bytes.drain(at..bytes.len().min(at + usize::from(*value)))),
            _ => bytes.truncate(at.max(bytes.len() / 2)),
        }
    }
    bytes
}

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8, u8)>> {
    prop::collection::vec(any::<(prop::sample::Index, u8, u8)>(), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_archives_never_panic(changes in changes()) {
        let body = paragraph("one &amp; two") + "<w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>";
        behaves(Format::Docx, &mutate(&docx(&body), &changes))?;
    }

    #[test]
    fn damaged_xml_never_panics(changes in changes()) {
        let xml = document(&(paragraph("one &amp; two") + "<w:p><w:r><w:rPr><w:vanish/></w:rPr></w:r></w:p>"));
        let xml = String::from_utf8_lossy(&mutate(xml.as_bytes(), &changes)).into_owned();
        behaves(Format::Docx, &archive(&[("word/document.xml", &xml)]))?;
    }

    #[test]
    fn damaged_pages_never_panic(changes in changes()) {
        let page = "<!DOCTYPE html><html><head><title>t</title></head><body><table><tr><td>a<p>b\
                    <template><b>c</template><svg><title>d</title></svg><form><select><option>e\
                    </select></form><i><b>f</i>g</b><pre>\nh</pre>&amp;&lt;</body></html>";
        behaves(Format::Html, &mutate(page.as_bytes(), &changes))?;
    }

    #[test]
    fn bytes_at_random_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        behaves(Format::Html, &bytes)?;
        behaves(Format::Docx, &[b"PK\x03\x04", &bytes[..]].concat())?;
    }

    #[test]
    fn tags_at_random_never_panic(page in "(<(/)?(a|b|p|li|table|td|tr|svg|math|template|form|select|option|frameset|html|head|body|pre|br|h1|nobr|applet)( hidden)?>|x|&lt;|&){0,60}") {
        behaves(Format::Html, page.as_bytes())?;
    }
}

proptest! {
    // A process for each case.
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_pdf_files_are_answered(changes in changes()) {
        let file = mutate(&pdf(&[&page_of(&["one", "two"]), &page_of(&["three"])]), &changes);
        if let Err(error) = run(Format::Pdf, &file, &isolation()) {
            about_the_file(&error);
        }
    }
}
