//! The reader in a process of its own.

use std::path::PathBuf;
use std::time::Duration;

use greenmark::ErrorKind;
use greenmark::extract::{Extracted, Format, Isolation, Limits, isolated, text};

use crate::about_the_file;
use crate::fixture::{docx, page_of, paragraph, pdf};

pub(crate) fn isolation() -> Isolation {
    Isolation::new(PathBuf::from(env!("CARGO_BIN_EXE_wm")))
}

pub(crate) fn run(
    format: Format,
    bytes: &[u8],
    isolation: &Isolation,
) -> greenmark::Result<Extracted> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(isolated(format, bytes, isolation))
}

#[test]
fn the_child_reads_as_this_process_does() {
    for (format, bytes) in [
        (Format::Text, b"a\r\nb".to_vec()),
        (Format::Html, b"<p>caf\xc3\xa9 \x01 &quot;<p hidden>x".to_vec()),
        (Format::Docx, docx(&paragraph("words"))),
        (Format::Pdf, pdf(&[&page_of(&["one", "two"]), ""])),
        // Refusals, with their place.
        (Format::Html, b"<p>caf\xe9".to_vec()),
        (Format::Docx, b"PK\x03\x04 word/".to_vec()),
        (Format::Pdf, pdf(&[""])),
    ] {
        let here = text(format, &bytes, &Limits::default());
        let there = run(format, &bytes, &isolation());
        assert_eq!(format!("{there:?}"), format!("{here:?}"));
    }
}

#[test]
fn limits_reach_the_child() {
    let limits = Limits { text_bytes: 6, ..Limits::default() };
    let isolation = Isolation { limits, ..isolation() };
    assert_eq!(run(Format::Docx, &docx(&paragraph("12345")), &isolation).unwrap().text, "12345\n");
    let error = run(Format::Docx, &docx(&paragraph("123456")), &isolation).unwrap_err();
    assert!(about_the_file(&error).contains("the text has more than 6 bytes"));
    let limits = Limits { file_bytes: 10, ..Limits::default() };
    let isolation = Isolation { limits, ..isolation };
    let error = run(Format::Html, b"12345678901", &isolation).unwrap_err();
    assert!(about_the_file(&error).contains("the file has 11 bytes, the limit is 10"));
}

/// A program that does not behave.
#[cfg(unix)]
fn program(folder: &tempfile::TempDir, script: &str) -> Isolation {
    let path = folder.path().join("program");
    // Written by another process: a file that a fork of this one holds open cannot be run.
    let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod 700 \"$0\"";
    let status = std::process::Command::new("sh")
        .args(["-c", write])
        .arg(&path)
        .arg(script)
        .status()
        .unwrap();
    assert!(status.success());
    Isolation { time: Duration::from_secs(10), ..Isolation::new(path) }
}

#[test]
#[cfg(unix)]
fn a_file_on_which_its_reader_never_ends_is_an_error_about_the_file() {
    // A page tree that is its own parent, without the size that is looked for up the tree: without
    // end, or until the stack is full, as the compiler likes.
    let file = String::from_utf8(pdf(&[&page_of(&["words"])])).unwrap();
    let endless = file.replace("/MediaBox [0 0 612 792]", "/Parent 2 0 R          ");
    assert_eq!(endless.len(), file.len());
    let isolation = Isolation { time: Duration::from_secs(2), ..isolation() };
    let message = about_the_file(&run(Format::Pdf, endless.as_bytes(), &isolation).unwrap_err());
    let ends = ["reading it takes longer than 2 s", "its reader ended with signal: "];
    assert!(ends.iter().any(|end| message.contains(end)), "{message}");
}

#[test]
#[cfg(unix)]
fn a_child_that_dies_is_an_error_about_the_file() {
    let folder = tempfile::tempdir().unwrap();
    for (script, says) in [
        ("kill -SEGV $$", "its reader ended with signal: 11"),
        ("exit 101", "its reader ended with exit status: 101"),
        ("exit 0", "its reader gave no answer"),
        ("echo '{\"text\":1}'", "its reader gave no answer"),
        ("exec 0<&-; exit 2", "its reader gave no answer"),
    ] {
        let isolation = program(&folder, script);
        // More than a pipe holds: a child that does not read must not block the rest.
        let message = about_the_file(&run(Format::Pdf, &vec![0; 1 << 20], &isolation).unwrap_err());
        assert!(message.contains("it cannot be read") && message.contains(says), "{message}");
    }
}

#[test]
#[cfg(unix)]
fn a_child_that_never_ends_or_never_stops_talking_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let isolation = program(&folder, &format!("echo $$ > {}; exec sleep 30", pid.display()));
    let isolation = Isolation { time: Duration::from_secs(2), ..isolation };
    let message = about_the_file(&run(Format::Pdf, b"%PDF-", &isolation).unwrap_err());
    assert!(message.contains("takes longer than 2 s"), "{message}");
    #[cfg(target_os = "linux")]
    {
        let pid = std::fs::read_to_string(&pid).unwrap();
        // Gone, or dead and not yet collected.
        let ended = || {
            let state = std::fs::read_to_string(format!("/proc/{}/status", pid.trim()));
            state.map_or(true, |state| state.contains("State:\tZ"))
        };
        let tries = (0..50).find(|_| {
            std::thread::sleep(Duration::from_millis(100));
            ended()
        });
        assert!(tries.is_some(), "process {pid} goes on");
    }
    let isolation = program(&folder, "exec yes");
    let limits = Limits { text_bytes: 1000, ..Limits::default() };
    let isolation = Isolation { limits, ..isolation };
    let message = about_the_file(&run(Format::Pdf, b"%PDF-", &isolation).unwrap_err());
    assert!(message.contains("its text has more than"), "{message}");
}

#[test]
fn a_program_that_is_not_there_is_no_fault_of_the_file() {
    let isolation = Isolation::new(PathBuf::from("/nonexistent/wm"));
    let error = run(Format::Pdf, b"%PDF-", &isolation).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.to_string().contains("starting the reader of foreign files"), "{error}");
    // Plain text needs none.
    assert_eq!(run(Format::Text, b"a", &isolation).unwrap().text, "a");
}
