//! `wm doctor`: what it looks at, and what it calls a problem.

use serde_json::Value;

use crate::support::{KEY, Run, User, tiny_tokenizer};

/// The tokenizer of 300 ids in place of a model's.
fn doctor(user: &User, more: &[&str]) -> Run {
    user.run(&[&["doctor", "--model", &tiny_tokenizer()][..], more].concat())
}

/// The check of this name.
fn check(run: &Run, name: &str) -> Value {
    let json = run.json();
    let checks = json["checks"].as_array().unwrap();
    let found: Vec<&Value> = checks.iter().filter(|check| check["name"] == name).collect();
    assert_eq!(found.len(), 1, "{name}: {}", run.block());
    found[0].clone()
}

/// The block without what differs between machines and builds: the lines of processors and devices,
/// and the features.
fn block_of_any_machine(run: &Run) -> String {
    let machine = |line: &str| {
        let name = line.get(9..).and_then(|rest| rest.split(' ').next());
        name.is_some_and(|name| ["CPU", "devices"].contains(&name))
    };
    let block = run.block().replace(env!("CARGO_PKG_VERSION"), "[version]");
    let lines = block.lines().filter(|line| !machine(line));
    lines.filter_map(|line| line.split(", features ").next()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_sound_installation_has_no_problem() {
    let user = User::new();
    user.key("config/wm/key", KEY);
    user.file("cache/hub/models--org--repo/blob", vec![0; 300_000]);
    insta::assert_snapshot!(block_of_any_machine(&doctor(&user, &[])), @r"
    exit code: 0
    ----- stdout -----
    ok       build          wm [version]
    ok       cache          [home]/cache, 0.3 MB: org/repo
    ok       configuration  [home]/config/wm
    ok       key            [home]/config/wm/key: mode 0600, fingerprint 1c45091c382083eb
    ok       tokenizer      [repo]/data/models/tokenizer-300.json: 300 ids, 136 bytes to 133 tokens and back, fingerprint b161aac46770d2a9121778b20b63d6ef25cee6415eddb0856c728304f1e41a56
    ok       PRF            equals the golden value
    ok       detection      a built-in text of 101 scored tokens: watermarked, log10 p -30.40; with another key: not detected
    no problem
    ----- stderr -----
    ");
    // Nothing is left where it tried to write.
    let left = |folder: &str| std::fs::read_dir(user.path(folder)).unwrap().count();
    assert_eq!((left("cache"), left("config/wm")), (1, 1));
}

#[test]
fn a_first_run_has_notes_and_no_problem_and_fetches_nothing() {
    let user = User::new();
    let run = user.run(&["doctor"]);
    insta::assert_snapshot!(block_of_any_machine(&run), @r"
    exit code: 0
    ----- stdout -----
    ok       build          wm [version]
    ok       cache          [home]/cache, made when a model is fetched
    ok       configuration  [home]/config/wm, made with the first key
    note     key            [home]/config/wm/key: no default key yet
                            `wm generate` makes one, and so does `wm keygen`
    note     tokenizer      the model default is not in the cache
                            run: wm models pull default
    ok       PRF            equals the golden value
    ok       detection      a built-in text of 101 scored tokens: watermarked, log10 p -30.40; with another key: not detected
    no problem
    ----- stderr -----
    ");
    assert!(!user.path("cache").exists() && !user.path("config").exists());
}

#[test]
fn json_holds_the_checks_and_the_devices() {
    let user = User::new();
    let run = doctor(&user, &["--json", "--offline"]);
    assert_eq!(run.code, 0, "{}", run.block());
    let key = check(&run, "key");
    assert_eq!((&key["status"], &key["remedy"].is_string()), (&"note".into(), &true));
    assert_eq!(check(&run, "PRF")["status"], "ok");
    assert!(check(&run, "PRF").get("remedy").is_none());
    let devices = run.json().get("devices").cloned();
    if cfg!(feature = "engine") {
        assert_eq!(check(&run, "CPU")["text"].as_str().unwrap().matches("kernels").count(), 1);
        let devices = devices.unwrap();
        assert!(devices["devices"].is_array(), "{devices}");
        if cfg!(not(feature = "cuda")) {
            let reason = devices["reason"].as_str().unwrap();
            assert!(reason.contains("this build has no CUDA"), "{reason}");
            let check = check(&run, "devices");
            assert_eq!((&check["status"], &check["text"]), (&"note".into(), &devices["reason"]));
        }
    } else {
        assert_eq!(devices, None);
    }
}

#[test]
#[cfg(unix)]
fn a_key_that_others_can_read_is_a_problem_with_the_command_that_mends_it() {
    let user = User::new();
    let key = user.file("config/wm/key", format!("{KEY}\n"));
    let run = doctor(&user, &["--json"]);
    assert_eq!(run.code, 1, "{}", run.block());
    let found = check(&run, "key");
    assert_eq!(found["status"], "problem");
    assert!(found["text"].as_str().unwrap().contains("mode 0644"), "{found}");
    assert_eq!(found["remedy"], format!("run: chmod 600 {key}"));
    let text = doctor(&user, &[]);
    assert_eq!(text.code, 1);
    assert!(text.stdout.ends_with("1 problem\n"), "{}", text.block());
}

#[test]
fn a_damaged_key_is_a_problem_and_no_key_is_ever_shown() {
    let user = User::new();
    user.key("config/wm/key", KEY);
    let sound = doctor(&user, &[]);
    user.key("config/wm/key", &KEY[1..]);
    user.key("config/wm/apikeys.json", "{");
    let damaged = doctor(&user, &["--json"]);
    assert_eq!((sound.code, damaged.code), (0, 1));
    assert_eq!(check(&damaged, "key")["status"], "problem");
    assert_eq!(check(&damaged, "API keys")["status"], "problem");
    for run in [sound, damaged] {
        assert!(!run.block().contains(&KEY[8..16]), "{}", run.block());
    }
}

#[test]
fn a_cache_that_cannot_be_one_is_a_problem() {
    let user = User::new();
    user.file("cache", "a file in its place");
    let run = doctor(&user, &["--json"]);
    assert_eq!(run.code, 1, "{}", run.block());
    let found = check(&run, "cache");
    assert_eq!(found["status"], "problem");
    assert!(found["text"].as_str().unwrap().contains("cache is not a folder"), "{found}");
    assert!(found["remedy"].as_str().unwrap().contains("WM_CACHE"), "{found}");
    // Below a file nothing can be made, whoever asks: this holds for the administrator too.
    let below = user.path("cache/below").display().to_string();
    let args = ["doctor", "--json", "--model", &tiny_tokenizer()];
    let run = user.run_with_environment(&[("WM_CACHE", &below)], &args);
    assert_eq!((run.code, &check(&run, "cache")["status"]), (1, &"problem".into()));
    // A file system that takes no writes from anybody.
    if std::path::Path::new("/proc/self").exists() {
        let run = user.run_with_environment(&[("WM_CACHE", "/proc/self")], &args);
        let found = check(&run, "cache");
        assert!(found["text"].as_str().unwrap().contains("cannot be written to"), "{found}");
        assert_eq!((run.code, &found["status"]), (1, &"problem".into()));
    }
}

#[test]
fn a_damaged_model_is_a_problem_that_names_the_fetch() {
    let user = User::new();
    let json = user.run(&["models", "--json"]).json();
    let path = json[0]["path"].as_str().unwrap();
    std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
    std::fs::write(path, "cut short").unwrap();
    let run = doctor(&user, &["--json"]);
    let found = check(&run, "cache");
    assert_eq!((run.code, &found["status"]), (1, &"problem".into()));
    let name = json[0]["name"].as_str().unwrap();
    assert_eq!(found["remedy"], format!("run: wm models pull {name}"));
}

#[test]
fn a_model_that_is_no_model_is_wrong_input() {
    let user = User::new();
    user.run(&["doctor", "--model", "no-such-name"]).refused(2, &["no-such-name", "org/repo"]);
    user.run(&["doctor", "--model", "none.gguf"]).refused(2, &["none.gguf"]);
    // One that is not a tokenizer is looked at, and found wanting.
    let broken = user.file("tokenizer.json", "{}");
    let run = user.run(&["doctor", "--json", "--model", &broken]);
    assert_eq!((run.code, &check(&run, "tokenizer")["status"]), (1, &"problem".into()));
}
