//! `wm detect --sentences`, `--highlight` and `--html`.

use std::fs;

use crate::support::{KEY, Run, User, read, tiny_tokenizer};

const TEXT: &str = "THE KEEPER WENT UP. HE LIT 3 LAMPS!\n\nTHE KEEPER WENT UP.\x1b[31m \u{202e}END";

struct Bench {
    user: User,
    flags: Vec<String>,
}

impl Bench {
    fn new() -> Self {
        let user = User::new();
        let key = user.key("team.key", KEY);
        let flags = vec!["--key-file".into(), key, "--tokenizer".into(), tiny_tokenizer()];
        Self { user, flags }
    }

    fn detect_with(&self, environment: &[(&str, &str)], more: &[&str]) -> Run {
        let mut args = vec!["detect"];
        args.extend(more);
        args.extend(self.flags.iter().map(String::as_str));
        self.user.run_with_environment(environment, &args)
    }

    fn detect(&self, more: &[&str]) -> Run {
        self.detect_with(&[("NO_COLOR", "")], more)
    }
}

#[test]
fn sentences_and_marks_for_a_reader() {
    let bench = Bench::new();
    let file = bench.user.file("t.txt", TEXT);
    let run = bench.detect(&[&file, "--sentences", "--highlight"]);
    assert!(!run.stdout.contains(['\x1b', '\u{202e}']), "{:?}", run.stdout);
    insta::assert_snapshot!(run.block(), @r"
    exit code: 0
    ----- stdout -----
    z 0.60  p 3.258e-1  log10 p -0.49  green 24 of 44  not detected
      no mark of key team (1c45091c382083eb) at alpha 3.17e-5; this does not say who or what wrote the text
      not scored of 68 tokens: 1 without context, 23 repeated
      note: 1 invisible character inside the text; `--normalize zero-width` takes a second look without them
      note: 1 control character; they are kept
      3 sentences, 3 with scored tokens; p corrected for 3 (Bonferroni). A reading aid: it decides nothing.
                      bytes   green of       z    log10 p  corrected  begins
         1             0-19    10   18    0.47      -0.39       0.00  THE KEEPER WENT UP.
         2            20-35     7   12    0.58      -0.41       0.00  HE LIT 3 LAMPS!
         3            37-68     7   14    0.00      -0.22       0.00  THE KEEPER WENT UP.<U+001B>[31m <U+202E>END

      tokens of the text as given: ⟦green⟧ red ⟨not scored⟩

    ⟨T⟩⟦H⟧E ⟦KE⟧E⟦P⟧E⟦R ⟧W⟦EN⟧T⟦ U⟧P.⟦ ⟧H⟨E ⟩⟦LI⟧T⟨ ⟩3 ⟨L⟩⟦AMPS⟧!

    T⟨HE KEEPER WENT UP.⟩<U+001B>[3⟦1m <U+202E>⟧E⟨N⟩D
    ----- stderr -----
    ");
}

#[test]
fn colours_are_for_terminals_and_never_alone() {
    let bench = Bench::new();
    let file = bench.user.file("t.txt", TEXT);
    let plain = bench.detect(&[&file, "--highlight"]).stdout;
    assert!(plain.contains('⟦') && !plain.contains('\x1b'), "a pipe is no terminal: {plain}");
    assert_eq!(bench.detect(&[&file, "--highlight", "--color", "never"]).stdout, plain);
    let no_color = [("NO_COLOR", "1")];
    assert_eq!(bench.detect_with(&no_color, &[&file, "--highlight"]).stdout, plain);
    // What was asked for on the command line wins.
    let coloured =
        bench.detect_with(&no_color, &[&file, "--highlight", "--color", "always"]).stdout;
    assert!(coloured.contains("\x1b[32;4m"), "green is underlined");
    assert!(coloured.contains("\x1b[31m") && coloured.contains("\x1b[2m⟨"));
    // The text's own escape is named; without our colours nothing is left of it.
    assert!(coloured.contains("<U+001B>"));
    let mut words = coloured.clone();
    for code in ["\x1b[32;4m", "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"] {
        words = words.replace(code, "");
    }
    let bare = |text: &str| text.replace(['⟦', '⟧', '⟨', '⟩', '⟪', '⟫'], "");
    assert_eq!(bare(&words), bare(&plain));
    bench.detect(&[&file, "--highlight", "--json"]).refused(2, &["--highlight", "--json"]);
    bench.detect(&["--ids", &file, "--highlight"]).refused(2, &["--ids"]);
}

#[test]
fn json_stays_as_asked_and_the_exit_code_is_the_verdict() {
    let bench = Bench::new();
    let file = bench.user.file("t.txt", TEXT);
    let html = bench.user.path("report.html").display().to_string();
    let plain = bench.detect(&[&file, "--json"]);
    let with_page = bench.detect(&[&file, "--json", "--html", &html]);
    assert_eq!((plain.code, &plain.stdout), (with_page.code, &with_page.stdout));
    assert!(plain.json().get("sentences").is_none());
    let page = read(&html);
    assert!(page.contains("t.txt") && page.contains("class=\"g\"") && page.contains("id=\"s1\""));
    assert!(page.contains(plain.json()["input_sha256"].as_str().unwrap()));
    // The key's file is secret, and so is its content.
    assert!(!page.contains(&KEY[..16]));
    let json = bench.detect(&[&file, "--json", "--sentences"]).json();
    let sentences = json["sentences"].as_array().unwrap();
    assert_eq!(sentences.len(), 3);
    assert_eq!(sentences[1]["bytes"], serde_json::json!([20, 35]));
    assert!(json.get("token_details").is_none());
    // Every verdict's exit code is that of a plain run.
    for (text, code) in [("Too short.", 11), (TEXT, plain.code)] {
        let file = bench.user.file("u.txt", text);
        let run = bench.detect(&[&file, "--html", &html, "--sentences", "--highlight"]);
        assert_eq!(run.code, code, "{}", run.block());
    }
}

#[test]
fn pages_of_several_texts_need_a_folder() {
    let bench = Bench::new();
    bench.user.file("in/a.txt", TEXT);
    bench.user.file("in/b & c.txt", "Another <text>.");
    bench.detect(&["in", "--html", "out.html"]).refused(2, &["html", "existing folder"]);
    fs::create_dir(bench.user.path("out")).unwrap();
    let run = bench.detect(&["in", "--html", "out"]);
    assert_ne!(run.code, 2, "{}", run.block());
    let index = read(bench.user.path("out/index.html"));
    for name in ["0001-a.txt.html", "0002-b---c.txt.html"] {
        assert!(index.contains(name), "{index}");
        assert!(read(bench.user.path("out").join(name)).contains("Watermark report"));
    }
    assert!(index.contains("in/b &amp; c.txt") && index.ends_with("</html>\n"));
}

#[test]
fn a_page_never_replaces_an_input() {
    let bench = Bench::new();
    let file = bench.user.file("in/a.txt", TEXT);
    for (input, html) in [(&file[..], &file[..]), ("in", "in"), ("in", "in/a.txt")] {
        bench.detect(&[input, "--html", html]).refused(2, &["html", "this run does not read"]);
    }
    assert_eq!(read(&file), TEXT);
    bench.detect(&[&file, "--html", "no/such/folder.html"]).refused(2, &["no/such/folder.html"]);
}

#[test]
fn ids_have_a_page_without_text() {
    let bench = Bench::new();
    let ids = bench.user.file("ids.json", "[20, 21, 22, 23, 24]");
    let html = bench.user.path("ids.html").display().to_string();
    let run = bench.detect(&["--ids", &ids, "--html", &html]);
    assert_eq!(run.code, 11, "{}", run.block());
    let page = read(&html);
    assert!(page.contains("id=\"tokens\"") && !page.contains("id=\"text\""));
}
