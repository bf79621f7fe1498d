//! The configuration: typos are refused by line and name, paths are relative to the file, and
//! flags go before the environment, which goes before the file.

use crate::access::add;
use crate::service::Service;
#[cfg(feature = "engine")]
use crate::support::Run;
use crate::support::{KEY, User, tiny_tokenizer};

#[test]
fn h03_a_typo_in_the_configuration_is_refused_by_line_and_name() {
    let user = User::new();
    let start = |text: &str| {
        let file = user.file("service.toml", text);
        user.run(&["serve", "--offline", "--port", "0", "--config", &file])
    };
    for (text, line, field) in [
        ("hots = \"127.0.0.1\"\n", "line 1", "hots"),
        ("host = \"127.0.0.1\"\n\n[acces]\n", "line 3", "acces"),
        ("[access]\nkeys_fil = \"a\"\n", "line 2", "keys_fil"),
        ("[limits]\n# a comment\nmax_boddy = 1\n", "line 3", "max_boddy"),
        ("[[profiles]]\nname = \"a\"\nkeyfile = \"k\"\n", "line 3", "keyfile"),
        ("[access]\npublic_rate = \"often\"\n", "line 2", "public_rate"),
        ("[access]\npublic_rate = -1\n", "line 2", "public_rate"),
        ("[limits]\nhead_seconds = 1\nhead_seconds = 2\n", "line 3", "duplicate key"),
    ] {
        start(text).refused(2, &["service.toml", line, field, "docs/serve.md"]);
    }
    start("[limits]\nhead_seconds = 0\n").refused(2, &["head_seconds: 0", "at least 1"]);
    start("[access]\ncors_origins = [\"*\"]\n").refused(2, &["cors_origins", "`*`"]);
    user.run(&["serve", "--config", "none.toml"]).refused(2, &["none.toml"]);
}

#[test]
fn paths_are_relative_to_the_configuration() {
    let user = User::new();
    user.key("etc/secret.key", KEY);
    let keys_file = user.path("etc/apikeys.json").display().to_string();
    let operator = add(&user, "desk", "operator", &keys_file);
    let config = format!(
        "[access]\nkeys_file = \"apikeys.json\"\naudit_log = \"../log.jsonl\"\n\
         [[profiles]]\nname = \"first\"\nkey_file = \"secret.key\"\ntokenizer = \"{}\"\n",
        tiny_tokenizer()
    );
    let config = user.file("etc/service.toml", config);
    let service = Service::start(user, &["--no-engine", "--config", &config]);
    assert!(service.user.path("log.jsonl").exists());
    assert_eq!(service.get("/metrics").error(401).0, "missing_api_key");
    let bearer = format!("Bearer {operator}");
    let headers = [("Authorization", &*bearer)];
    assert_eq!(crate::client::send(service.address, "GET", "/metrics", &headers, b"").status, 200);
}

#[test]
fn flags_go_before_the_environment_and_that_before_the_file() {
    let user = User::new();
    let key = user.key("key", KEY);
    let config =
        "host = \"192.0.2.3\"\n[limits]\nmax_body = \"1kB\"\n[access]\nkeys_file = \"file.json\"\n";
    let config = user.file("service.toml", config);
    // Each place names another file that is not there: the message says which one counted.
    let run = |environment: &[(&str, &str)], flags: &[&str]| {
        let base = ["serve", "--offline", "--no-engine", "--key-file", &key, "--config", &config];
        user.run_with_environment(environment, &[&base[..], flags].concat())
    };
    let environment = [("WM_KEYS_FILE", "environment.json")];
    run(&[], &[]).refused(2, &["file.json"]);
    run(&environment, &[]).refused(2, &["environment.json"]);
    run(&environment, &["--keys-file", "flag.json"]).refused(2, &["flag.json"]);
    add(&user, "desk", "operator", "keys.json");
    let keys = ["--keys-file", "keys.json"];
    let origins = [("WM_CORS_ORIGINS", "https://a.example,*")];
    run(&origins, &keys).refused(2, &["cors_origins: *"]);
    // Hosts that no machine here has: binding fails and names the one that counted.
    run(&[], &keys).refused(1, &["192.0.2.3"]);
    run(&[("WM_HOST", "192.0.2.4")], &keys).refused(1, &["192.0.2.4"]);
    let flag = [&keys[..], &["--host", "192.0.2.5"]].concat();
    run(&[("WM_HOST", "192.0.2.4")], &flag).refused(1, &["192.0.2.5"]);
    // And the body limit, over a socket.
    let tokenizer = tiny_tokenizer();
    let user = User::new();
    let (key, config) =
        (user.key("key", KEY), user.file("service.toml", "[limits]\nmax_body = \"1kB\"\n"));
    let flags = ["--no-engine", "--key-file", &key, "--tokenizer", &tokenizer, "--config", &config];
    let service = Service::start(user, &[&flags[..], &["--max-body", "2kB"]].concat());
    let body = |length: usize| {
        let mut body = br#"{"text":"a"}"#.to_vec();
        body.resize(length, b' ');
        body
    };
    assert_eq!(service.post_bytes("/v1/detect", &body(2000)).status, 200);
    let (code, message) = service.post_bytes("/v1/detect", &body(2001)).error(413);
    assert_eq!(code, "body_too_large");
    assert!(message.contains("2001") && message.contains("2000"), "{message}");
}

/// Each place names another value that is refused: the message says which one counted.
#[test]
#[cfg(feature = "engine")]
fn where_the_model_computes_follows_the_same_precedence() {
    let user = User::new();
    let (key, tokenizer) = (user.key("key", KEY), tiny_tokenizer());
    let run = |config: &str, environment: &[(&str, &str)], flags: &[&str]| {
        let config = user.file("service.toml", format!("[generation]\n{config}\n"));
        let base = ["serve", "--offline", "--port", "0", "--key-file", &key];
        let base = [&base[..], &["--tokenizer", &tokenizer, "--config", &config]].concat();
        user.run_with_environment(environment, &[&base[..], flags].concat())
    };
    for (name, variable) in [
        ("device", "WM_DEVICE"),
        ("dtype", "WM_DTYPE"),
        ("sampler", "WM_SAMPLER"),
        ("deterministic", "WM_DETERMINISTIC"),
    ] {
        let file = format!("{name} = \"file\"");
        let refused = |found: Run, place: &str| {
            found.refused(2, &[&format!("{name}: {place} is not allowed")]);
        };
        refused(run(&file, &[], &[]), "file");
        refused(run(&file, &[(variable, "environment")], &[]), "environment");
        let flag = [&*format!("--{name}"), "flag"];
        refused(run(&file, &[(variable, "environment")], &flag), "flag");
        refused(run("", &[(variable, "environment")], &[]), "environment");
        // Wrong names are refused in a service without a model too.
        refused(run(&file, &[], &["--no-engine"]), "file");
    }
    // Switches and numbers are what TOML has for them.
    run("deterministic = 513", &[], &[]).refused(2, &["deterministic: 513", "1 to 512"]);
    run("deterministic = true\ndevice = \"x\"", &[], &[]).refused(2, &["device: x"]);
    let refused = run("queue = 1\ndeterministic = 1.5", &[], &[]);
    refused.refused(2, &["line 3", "true, false, a number of rows"]);
    // A device that is not there stops the start before anything listens.
    #[cfg(not(feature = "cuda"))]
    {
        let refused = run("device = \"cuda:0\"", &[], &[]);
        refused.refused(2, &["unsupported device cuda:0", "no CUDA"]);
        assert!(!refused.stderr.contains("listening"), "{}", refused.block());
    }
}

#[test]
#[cfg(feature = "engine")]
fn the_log_names_where_the_model_computes() {
    let place = "device = \"cpu\"\ndtype = \"auto\"\nsampler = \"cpu\"\ndeterministic = 8";
    let service = crate::generation::service(&format!("[generation]\n{place}\n"));
    // The CPU ignores the rows and draws where it computes.
    service.until_said("wm: the model llama computes on CPU, ");
    assert!(!service.log().contains("drawn on"), "{}", service.log());
}

/// The file of docs/deploy.md starts as it stands, with the files that the page says to make.
#[test]
fn the_published_configuration_starts() {
    let user = User::new();
    let tokenizer = tiny_tokenizer();
    for year in ["2025", "2026"] {
        // Another first digit for each year.
        let key = format!("{}{}", &year[3..], &KEY[1..]);
        let file = user.key(&format!("news-{year}.key"), &key);
        let shown = user.run(&["profile", "show", "--key-file", &file, "--tokenizer", &tokenizer]);
        assert_eq!(shown.code, 0, "{}", shown.block());
        user.file(&format!("news-{year}.json"), &shown.stdout);
    }
    let keys = user.path("apikeys.json").display().to_string();
    let reviewer = add(&user, "editor", "reviewer", &keys);
    // With the retired profile that stands in it as an example.
    let published = include_str!("../../docs/deploy/serve.toml").replace("\n#", "\n");
    let published =
        published.lines().filter(|line| !line.starts_with(' ')).collect::<Vec<_>>().join("\n");
    let tokenizer = format!("standing = \"active\"\ntokenizer = {tokenizer:?}\n");
    let audit = user.path("audit.jsonl").display().to_string();
    let config = published
        .replace("/var/log/wm/audit.jsonl", &audit)
        .replace(
            "key_file = \"news-2026.key\"\n",
            &format!("key_file = \"news-2026.key\"\n{tokenizer}"),
        )
        .replace("standing = \"retired\"\n", &tokenizer.replace("active", "retired"));
    let config = user.file("serve.toml", config);
    let service = Service::start(user, &["--config", &config, "--no-engine"]);
    let key = format!("Bearer {reviewer}");
    let headers = [("Authorization", key.as_str())];
    let profiles = crate::client::send(service.address, "GET", "/v1/profiles", &headers, b"");
    let standing = |index: usize| {
        let profile = &profiles.json()["data"][index];
        (
            profile["name"].as_str().unwrap().to_owned(),
            profile["standing"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(standing(0), ("news-2026".to_owned(), "active".to_owned()));
    assert_eq!(standing(1), ("news-2025".to_owned(), "retired".to_owned()));
}
