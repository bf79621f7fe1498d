//! `wm keygen` and `wm profile`.

use crate::support::{KEY, User, read, tiny_tokenizer};

#[test]
fn keygen_writes_a_key_file_once() {
    let user = User::new();
    let run = user.run(&["keygen", "team.key"]);
    assert_eq!(run.code, 0, "{}", run.block());
    let text = read(user.path("team.key"));
    assert_eq!((text.len(), text.ends_with('\n')), (65, true));
    assert!(text.trim_end().bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(!run.stdout.contains(text.trim_end()) && !run.stderr.contains(text.trim_end()));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(user.path("team.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    insta::assert_snapshot!(user.run(&["keygen", "team.key"]).block(), @r#"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    wm: team.key: the file exists and keys are never overwritten; choose another name, or move the old key away (texts marked with it need it)
    "#);
    assert_eq!(read(user.path("team.key")), text);
}

#[test]
#[cfg(unix)]
fn a_shared_key_file_is_refused_with_the_command_that_mends_it() {
    let user = User::new();
    let key = user.file("shared.key", format!("{KEY}\n"));
    let tokenizer = tiny_tokenizer();
    let run = user.run(&["profile", "show", "--key-file", &key, "--tokenizer", &tokenizer]);
    run.refused(2, &["mode 0644", "chmod 600"]);
}

#[test]
fn profile_show_prints_what_the_flags_make() {
    let user = User::new();
    let key = user.key("team.key", KEY);
    let tokenizer = tiny_tokenizer();
    let base = ["profile", "show", "--key-file", &key, "--tokenizer", &tokenizer];
    let json = user.run(&base).json();
    assert_eq!(json["scheme"], serde_json::json!({"name":"green-list","gamma":0.5,"delta":2.0}));
    assert_eq!(json["key"]["id"], "team");
    assert_eq!(json["context"]["width"], 1);
    let flags = ["--gamma", "0.25", "--delta", "0", "--context-width", "3", "--key-id", "k1"];
    let json = user.run(&[&base[..], &flags[..]].concat()).json();
    assert_eq!(json["scheme"], serde_json::json!({"name":"green-list","gamma":0.25,"delta":0.0}));
    assert_eq!(
        (json["context"]["width"].as_u64(), json["key"]["id"].as_str()),
        (Some(3), Some("k1"))
    );
    let json = user.run(&[&base[..], &["--scheme", "gumbel"][..]].concat()).json();
    assert_eq!(
        (json["context"]["width"].as_u64(), json["context"]["repeats"].as_str()),
        (Some(4), Some("skip"))
    );
}

#[test]
fn a_profile_reads_back_and_a_disagreeing_flag_is_refused() {
    let user = User::new();
    let key = user.key("team.key", KEY);
    let tokenizer = tiny_tokenizer();
    let base = ["profile", "show", "--key-file", &key, "--tokenizer", &tokenizer];
    let shown = user.run(&[&base[..], &["--gamma", "0.25"][..]].concat());
    let profile = user.file("p.json", &shown.stdout);
    let again = user.run(&[&base[..], &["--profile", &profile][..]].concat());
    assert_eq!(again.stdout, shown.stdout);
    let flags = ["--profile", &profile, "--gamma", "0.5"];
    user.run(&[&base[..], &flags[..]].concat())
        .refused(2, &["gamma disagrees", "the command line says 0.5", "p.json says 0.25"]);
    let flags = ["--profile", &profile, "--delta", "3"];
    user.run(&[&base[..], &flags[..]].concat()).refused(2, &["delta disagrees"]);

    let checked = user.run(&["profile", "check", &profile, "--key-file", &key]);
    assert_eq!(checked.json()["valid"], true);
    let other = user.key("other.key", &KEY.replace("00", "ff"));
    user.run(&["profile", "check", &profile, "--key-file", &other])
        .refused(2, &["key fingerprint disagrees"]);
    let broken = user.file("broken.json", shown.stdout.replace("\"gamma\"", "\"gama\""));
    user.run(&["profile", "check", &broken]).refused(2, &["gama", "broken.json"]);
}

#[test]
fn w20_combinations_that_mark_nothing_are_refused_at_the_start() {
    let user = User::new();
    let key = user.key("team.key", KEY);
    let tokenizer = tiny_tokenizer();
    let base = ["profile", "show", "--key-file", &key, "--tokenizer", &tokenizer];
    let run = |flags: &[&str]| user.run(&[&base[..], flags].concat());
    run(&["--scheme", "gumbel", "--context-width", "0"]).refused(2, &["context_width: 0"]);
    run(&["--repeats", "skip", "--context-width", "0"]).refused(2, &["one token of the text"]);
    run(&["--gamma", "0"]).refused(2, &["gamma: 0", "above 0 and below 1"]);
    run(&["--gamma", "1"]).refused(2, &["gamma: 1"]);
    run(&["--delta", "-1"]).refused(2, &["delta: -1"]);
    run(&["--scheme", "gumbel", "--gamma", "0.5"]).refused(2, &["gumbel has no such parameter"]);
    let empty = user.key("empty.key", "");
    user.run(&["profile", "show", "--key-file", &empty, "--tokenizer", &tokenizer])
        .refused(2, &["not a key", "64 hexadecimal digits"]);
}

#[test]
fn a_key_named_as_a_profile_is_never_repeated() {
    let user = User::new();
    let (key, tokenizer) = (user.key("team.key", KEY), tiny_tokenizer());
    // Digits that a JSON reader would take for a number, and digits in quotes.
    let number = user.file("number", format!("{}abcdef\n", "12345678".repeat(7)));
    let quoted = user.file("quoted", format!("\"{KEY}\"\n"));
    for file in [&number, &quoted, &key] {
        let base = ["--key-file", &key, "--tokenizer", &tokenizer, "--profile", file];
        for args in [&["profile", "check", file][..], &[&["profile", "show"][..], &base].concat()] {
            let run = user.run(args);
            run.refused(2, &["not a profile"]);
            assert!(!run.stderr.contains("12345678") && !run.stderr.contains(&KEY[..8]));
        }
    }
}

#[test]
fn a_profiles_name_for_its_key_is_kept() {
    let user = User::new();
    let (key, tokenizer) = (user.key("team.key", KEY), tiny_tokenizer());
    let base = ["profile", "show", "--key-file", &key, "--tokenizer", &tokenizer];
    let named = user.run(&[&base[..], &["--key-id", "prod-2026"]].concat()).stdout;
    let profile = user.file("p.json", named);
    let id = |more: &[&str]| {
        user.run(&[&base[..], &["--profile", &profile], more].concat()).json()["key"]["id"].clone()
    };
    assert_eq!(id(&[]), "prod-2026");
    assert_eq!(id(&["--key-id", "other"]), "other");
    user.run(&[&base[..], &["--key-id", "a\nb"]].concat()).refused(2, &["key id"]);
}
