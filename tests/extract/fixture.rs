//! Files made here, byte by byte.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

pub(crate) const WORD: &str = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";

/// A ZIP archive of these parts.
pub(crate) fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// The XML of a document with this body.
pub(crate) fn document(body: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n\
         <w:document xmlns:w=\"{WORD}\" \
         xmlns:mc=\"http://schemas.openxmlformats.org/markup-compatibility/2006\" \
         xmlns:wps=\"http://schemas.microsoft.com/office/word/2010/wordprocessingShape\" \
         xmlns:m=\"http://schemas.openxmlformats.org/officeDocument/2006/math\" \
         xmlns:v=\"urn:schemas-microsoft-com:vml\"><w:body>{body}</w:body></w:document>"
    )
}

/// A DOCX file with this body.
pub(crate) fn docx(body: &str) -> Vec<u8> {
    archive(&[("[Content_Types].xml", "<Types/>"), ("word/document.xml", &document(body))])
}

/// A paragraph of one run.
pub(crate) fn paragraph(text: &str) -> String {
    format!("<w:p><w:r><w:t xml:space=\"preserve\">{text}</w:t></w:r></w:p>")
}

/// A PDF file: objects 1 and 2 are the catalogue and the page tree, 3 is the font, and each page
/// has two objects, itself and its content.
pub(crate) fn pdf(pages: &[&str]) -> Vec<u8> {
    pdf_with(pages, "", &[])
}

/// As [`pdf`], with more in the trailer and more objects.
pub(crate) fn pdf_with(pages: &[&str], trailer: &str, more: &[String]) -> Vec<u8> {
    let page = |index: usize| 4 + 2 * index;
    let kids: Vec<String> = (0..pages.len()).map(|index| format!("{} 0 R", page(index))).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!(
            "<< /Type /Pages /Kids [{}] /Count {} /MediaBox [0 0 612 792] >>",
            kids.join(" "),
            pages.len()
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    for (index, content) in pages.iter().enumerate() {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R \
             >>",
            page(index) + 1
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    objects.extend_from_slice(more);
    let mut file = "%PDF-1.4\n".to_owned();
    let mut offsets = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        offsets.push(file.len());
        write!(file, "{} 0 obj\n{object}\nendobj\n", index + 1).unwrap();
    }
    let start = file.len();
    write!(file, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).unwrap();
    for offset in offsets {
        writeln!(file, "{offset:010} 00000 n ").unwrap();
    }
    let size = objects.len() + 1;
    write!(file, "trailer\n<< /Size {size} /Root 1 0 R {trailer}>>\nstartxref\n{start}\n%%EOF\n")
        .unwrap();
    file.into_bytes()
}

/// Lines of text, each 14 points below the one before.
pub(crate) fn page_of(lines: &[&str]) -> String {
    let shown: Vec<String> = lines.iter().map(|line| format!("({line}) Tj")).collect();
    format!("BT /F1 12 Tf 72 720 Td {} ET", shown.join(" 0 -14 Td "))
}
