//! DOCX.

use greenmark::extract::{Format, Note};

use crate::fixture::{WORD, archive, document, docx, paragraph};
use crate::{read, refusal};

fn text(body: &str) -> String {
    let (text, notes) = read(Format::Docx, &docx(body));
    assert_eq!(notes, [], "{text}");
    text
}

#[test]
fn a_paragraph_is_a_line() {
    let body = paragraph("One &amp; two &lt;3&gt; &#x1F600; &quot;q&quot;")
        + "<w:p/>"
        + &paragraph("  three  ");
    assert_eq!(text(&body), "One & two <3> \u{1f600} \"q\"\n\n  three  \n");
    let runs = "<w:p><w:pPr><w:tabs><w:tab w:val=\"left\"/></w:tabs></w:pPr>\
                <w:r><w:t>a</w:t><w:tab/><w:t>b</w:t></w:r><w:r><w:br/><w:t>c</w:t><w:cr/>\
                <w:t>d</w:t><w:noBreakHyphen/><w:t><![CDATA[e<f]]></w:t></w:r></w:p>";
    assert_eq!(text(runs), "a\tb\nc\nd\u{2011}e<f\n");
}

#[test]
fn deletions_field_codes_and_hidden_runs_are_no_text() {
    let body = "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>\
                <w:ins><w:r><w:t>new</w:t></w:r></w:ins>\
                <w:moveFrom><w:r><w:t>from</w:t></w:r></w:moveFrom>\
                <w:moveTo><w:r><w:t> to</w:t></w:r></w:moveTo>\
                <w:r><w:instrText> PAGE </w:instrText></w:r><w:r><w:t> 7</w:t></w:r></w:p>";
    assert_eq!(text(body), "new to 7\n");
    let body = "<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>no</w:t></w:r>\
                <w:r><w:rPr><w:vanish w:val=\"0\"/></w:rPr><w:t>yes</w:t></w:r></w:p>";
    let (text, notes) = read(Format::Docx, &docx(body));
    assert_eq!((text.as_str(), notes), ("yes\n", vec![Note::HiddenTextLeftOut]));
}

#[test]
fn tables_are_read_cell_by_cell() {
    let cell = |text: &str| format!("<w:tc><w:tcPr/>{}</w:tc>", paragraph(text));
    let row = |a: &str, b: &str| format!("<w:tr>{}{}</w:tr>", cell(a), cell(b));
    let body = format!("<w:tbl>{}{}</w:tbl>{}", row("1", "2"), row("3", "4"), paragraph("end"));
    assert_eq!(text(&body), "1\n2\n3\n4\nend\n");
}

#[test]
fn a_text_box_is_read_once_after_its_paragraph() {
    let boxed = |text: &str| format!("<w:txbxContent>{}</w:txbxContent>", paragraph(text));
    let body = format!(
        "<w:p><w:r><w:t>before </w:t></w:r><w:r><mc:AlternateContent>\
         <mc:Choice Requires=\"wps\"><wps:txbx>{}</wps:txbx></mc:Choice>\
         <mc:Fallback><w:pict><v:textbox>{}</v:textbox></w:pict></mc:Fallback>\
         </mc:AlternateContent></w:r><w:r><w:t>after</w:t></w:r></w:p>{}",
        boxed("box"),
        boxed("box"),
        paragraph("next")
    );
    assert_eq!(text(&body), "before after\nbox\nnext\n");
    let fallback = "<w:p><w:r><mc:AlternateContent><mc:Fallback><w:t>only</w:t></mc:Fallback>\
                    </mc:AlternateContent></w:r></w:p>";
    assert_eq!(text(fallback), "only\n");
}

#[test]
fn what_is_left_out_is_said() {
    let body = "<w:p><w:r><w:t>a</w:t><w:footnoteReference w:id=\"1\"/>\
                <w:footnoteReference w:id=\"2\"/></w:r>\
                <m:oMath><m:r><m:t>x=1</m:t></m:r></m:oMath></w:p>\
                <w:p><w:pPr><w:sectPr><w:headerReference/></w:sectPr></w:pPr></w:p>";
    let (text, notes) = read(Format::Docx, &docx(body));
    assert_eq!(text, "a\n\n");
    assert_eq!(notes, [Note::NotesLeftOut, Note::EquationsLeftOut, Note::HeadersLeftOut]);
    assert_eq!(notes[0].to_string(), "footnotes and endnotes are left out");
    assert_eq!(notes[0].code(), "notes_left_out");
}

#[test]
fn the_relations_say_where_the_text_is_and_prefixes_are_free() {
    let relations = "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/\
                     relationships\"><Relationship Id=\"r1\" Type=\"http://schemas.\
                     openxmlformats.org/officeDocument/2006/relationships/officeDocument\" \
                     Target=\"/word/document2.xml\"/></Relationships>";
    let main = format!("<document xmlns=\"{WORD}\"><body><p><r><t>x</t></r></p></body></document>");
    let file = archive(&[("_rels/.rels", relations), ("word/document2.xml", &main)]);
    assert_eq!(read(Format::Docx, &file).0, "x\n");
    // The strict form of the standard.
    let strict = main.replace(WORD, "http://purl.oclc.org/ooxml/wordprocessingml/main");
    assert_eq!(read(Format::Docx, &archive(&[("word/document.xml", &strict)])).0, "x\n");
    // The same names in another vocabulary are not Word's.
    let other = main.replace(WORD, "urn:other");
    let message = refusal(Format::Docx, &archive(&[("word/document.xml", &other)]));
    assert!(message.contains("it is no Word document"), "{message}");
}

#[test]
fn damage_is_refused_with_the_place() {
    let message = refusal(Format::Docx, &archive(&[("word/other.xml", "<a/>")]));
    assert!(message.contains("it has no part word/document.xml"), "{message}");
    let whole = docx(&paragraph("words"));
    for length in [4, whole.len() / 2, whole.len() - 1] {
        let message = refusal(Format::Docx, &whole[..length]);
        assert!(message.contains("damaged or cut short"), "{length}: {message}");
    }
    let part = |xml: &str| refusal(Format::Docx, &archive(&[("word/document.xml", xml)]));
    let xml = document(&paragraph("a"));
    assert!(part(&xml[..xml.len() - 20]).contains("damaged at byte"));
    assert!(part(&xml.replace("</w:body>", "</w:bod>")).contains("damaged at byte"));
    assert!(part(&xml.replace(">a<", ">&nbsp;<")).contains("an entity that XML does not have"));
    let definition = xml.replace("<w:document", "<!DOCTYPE d [<!ENTITY e \"x\">]><w:document");
    assert!(part(&definition).contains("a document type definition"));
    let latin = xml.replace(">a<", ">\u{e9}<").replace("UTF-8", "ISO-8859-1");
    assert_eq!(read(Format::Docx, &archive(&[("word/document.xml", &latin)])).0, "\u{e9}\n");
}
