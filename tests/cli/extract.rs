//! `wm extract`.

use crate::support::User;

const PAGE: &str = "<h1>Title</h1><p>caf\u{e9} &amp; tea<p hidden>no</p>";

#[test]
fn extract_prints_the_text_and_says_what_is_left_out() {
    let user = User::new();
    let page = user.file("page.html", PAGE);
    insta::assert_snapshot!(user.run(&["extract", &page]).block(), @r"
    exit code: 0
    ----- stdout -----
    Title

    café & tea
    ----- stderr -----
    wm: [home]/page.html: hidden text is left out
    ");
    insta::assert_snapshot!(user.run(&["extract", "--json", &page]).block(), @r#"
    exit code: 0
    ----- stdout -----
    {
      "format": "html",
      "text": "Title\n\ncafé & tea",
      "notes": [
        {
          "code": "hidden_text_left_out"
        }
      ]
    }
    ----- stderr -----
    "#);
    // Plain text is every byte of it.
    let text = user.file("a.md", "\u{feff}# a\r\n\n");
    let run = user.run(&["extract", &text]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "\u{feff}# a\r\n\n"));
    // A flag overrides the name where the bytes do not contradict it.
    let run = user.run(&["extract", "--format", "text", &page]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, PAGE, ""));
}

#[test]
fn standard_input_needs_its_format() {
    let user = User::new();
    let run = user.run_with_stdin(&["extract", "--format", "html", "-"], b"<p>one<p>two");
    assert_eq!((run.code, run.stdout.as_str()), (0, "one\n\ntwo"));
    user.run_with_stdin(&["extract", "-"], b"a").refused(2, &["-: without --format"]);
    user.run_with_stdin(&["extract", "--format", "odt", "-"], b"a")
        .refused(2, &["format: odt", "text, markdown, html, docx, pdf"]);
}

#[test]
fn files_that_cannot_be_read_are_refused_by_name() {
    let user = User::new();
    let (renamed, word) = (user.file("a.txt", "%PDF-1.4\n"), user.file("a.docx", "words"));
    user.run(&["extract", &renamed]).refused(2, &["(.txt) says text", "the content says pdf"]);
    user.run(&["extract", &word]).refused(2, &["(.docx) says docx", "no ZIP archive"]);
    user.run(&["extract", &user.file("a.odt", "x")])
        .refused(2, &["unsupported file format .odt", "docx, pdf"]);
    user.run(&["extract", "missing.pdf"]).refused(2, &["missing.pdf"]);
    let latin = user.file("b.txt", b"caf\xe9");
    user.run(&["extract", &latin]).refused(2, &["b.txt (byte 3): not UTF-8", "iconv"]);
    user.run(&["extract", "--max-file", "3", &word]).refused(2, &["more than 3 bytes"]);
    user.run(&["extract", "--max-seconds", "0", &word]).refused(2, &["--max-seconds"]);

    // What the reader in the child refuses is refused here under the file's name.
    let page = user.file("b.html", b"<p>caf\xe9");
    user.run(&["extract", &page]).refused(2, &["b.html (byte 6): not UTF-8"]);
    let run = user.run(&["extract", "--json", &page]);
    run.refused(2, &["b.html (byte 6): not UTF-8"]);
    assert_eq!(run.json()["error"]["byte_offset"], 6);
    assert_eq!(run.json()["error"]["problem"], "not UTF-8");
    let broken = user.file("broken.pdf", "%PDF-1.4\ntrailer\n");
    user.run(&["extract", &broken]).refused(2, &["broken.pdf: ", "print it to a new PDF"]);
}

#[test]
#[cfg(target_os = "linux")]
fn the_reader_puts_itself_under_limits() {
    let user = User::new();
    let limits = |args: &[&str]| {
        let file = ["--format", "text", "/proc/self/limits"];
        let run = user.run(&[&["extract"][..], args, &file].concat());
        assert_eq!(run.code, 0, "{}", run.block());
        let soft = |name: &str| {
            let line = run.stdout.lines().find(|line| line.starts_with(name)).unwrap();
            line[name.len()..].split_whitespace().next().unwrap().to_owned()
        };
        [soft("Max address space"), soft("Max cpu time"), soft("Max core file size")]
    };
    assert_eq!(limits(&["--in-process", "--max-seconds", "7"]), ["1073741824", "7", "0"]);
    assert_eq!(limits(&["--in-process"]), ["1073741824", "20", "0"]);
    assert_ne!(limits(&[])[0], "1073741824");
}

#[test]
fn the_text_of_a_page_can_be_detected() {
    let user = User::new();
    let key = user.key("k", crate::support::KEY);
    let tokenizer = crate::support::tiny_tokenizer();
    let page = user.file("page.html", PAGE);
    let text = user.run(&["extract", &page]).stdout;
    let flags = ["detect", "-", "--json", "--key-file", &key, "--tokenizer", &tokenizer];
    let report = user.run_with_stdin(&flags, text.as_bytes()).json();
    assert_eq!(report["input_sha256"], greenmark::document::sha256_hex(text.as_bytes()));
}
