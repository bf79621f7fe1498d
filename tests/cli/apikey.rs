//! `wm apikey`: keys are shown once, stored as hashes and never lost.

use std::collections::HashSet;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{User, read};

fn keys(user: &User) -> Value {
    serde_json::from_str(&read(user.path("keys.json"))).unwrap()
}

const FILE: [&str; 2] = ["--keys-file", "keys.json"];

fn add(user: &User, name: &str, role: &str) -> String {
    let run = user.run(&[&["apikey", "add", name, "--role", role], &FILE[..]].concat());
    assert_eq!(run.code, 0, "{}", run.block());
    run.stdout
}

#[test]
fn a_key_is_shown_once_and_stored_as_a_hash() {
    let user = User::new();
    let key = add(&user, "desk", "reviewer");
    let digits = key.strip_prefix("gmk_").unwrap().strip_suffix('\n').unwrap();
    assert_eq!(digits.len(), 72);
    assert!(digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)));
    let text = read(user.path("keys.json"));
    assert!(!text.contains(&digits[..8]) && !text.contains(&digits[64..]));
    let stored = keys(&user);
    assert_eq!(stored["version"], 1);
    let fields: Vec<&String> = stored["keys"][0].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["name", "role", "sha256", "created"]);
    assert_eq!(
        (&stored["keys"][0]["name"], &stored["keys"][0]["role"]),
        (&"desk".into(), &"reviewer".into())
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(user.path("keys.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let list = user.run(&[&["apikey", "list"], &FILE[..]].concat());
    assert!(list.stdout.starts_with("desk  reviewer  added 20"), "{}", list.stdout);
    assert!(list.stdout.ends_with("Z  active\n"), "{}", list.stdout);
    let hash = stored["keys"][0]["sha256"].as_str().unwrap();
    assert!(!list.stdout.contains(&hash[..8]));
}

#[test]
fn the_stored_hash_is_that_of_the_tag_and_the_bits() {
    let user = User::new();
    let key = add(&user, "desk", "public");
    let script = "import hashlib,sys; k=bytes.fromhex(sys.argv[1][4:68]); \
                  print(hashlib.sha256(b'greenmark/api-key/1'+k).hexdigest(), \
                  hashlib.sha256(b'greenmark/api-key-checksum/1'+k).hexdigest()[:8])";
    let output =
        std::process::Command::new("python3").args(["-c", script, key.trim()]).output().unwrap();
    let expected = String::from_utf8(output.stdout).unwrap();
    let stored = keys(&user);
    let found =
        format!("{} {}\n", stored["keys"][0]["sha256"].as_str().unwrap(), &key.trim()[68..]);
    assert_eq!(found, expected);
}

#[test]
fn names_are_used_once_and_revoking_keeps_them() {
    let user = User::new();
    add(&user, "desk", "public");
    let again = ["apikey", "add", "desk", "--role", "operator"];
    user.run(&[&again[..], &FILE].concat()).refused(2, &["desk twice", "logs"]);
    let revoke = [&["apikey", "revoke", "desk"], &FILE[..]].concat();
    let run = user.run(&revoke);
    assert_eq!((run.code, &*run.stdout), (0, ""), "{}", run.block());
    let when = keys(&user)["keys"][0]["revoked"].as_str().unwrap().to_owned();
    assert!(run.stderr.contains(&when), "{}", run.stderr);
    // Once more changes nothing.
    assert_eq!(user.run(&revoke).code, 0);
    assert_eq!(keys(&user)["keys"][0]["revoked"], when);
    user.run(&[&again[..], &FILE].concat()).refused(2, &["desk twice"]);
    let list = user.run(&[&["apikey", "list", "--json"], &FILE[..]].concat()).json();
    assert_eq!((&list[0]["status"], &list[0]["revoked"]), (&"revoked".into(), &when.into()));
    user.run(&[&["apikey", "revoke", "other"], &FILE[..]].concat())
        .refused(2, &["other", "wm apikey list"]);
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_written() {
    let user = User::new();
    let add = |args: &[&str]| user.run(&[&["apikey", "add"], args, &FILE[..]].concat());
    for name in ["local", "a b", "a\nb", "", &"a".repeat(65)] {
        add(&[name, "--role", "public"]).refused(2, &["API key name", "1 to 64"]);
    }
    add(&["desk"]).refused(2, &["--role"]);
    add(&["desk", "--role", "admin"]).refused(2, &["operator"]);
    add(&["desk", "--role", "public", "--expires", "soon"]).refused(2, &["2027-01-31"]);
    add(&["desk", "--role", "public", "--expires", "2020-01-01"]).refused(2, &["to come"]);
    assert!(!user.path("keys.json").exists());
    let run = add(&["desk", "--role", "public", "--expires", "2999-12-31"]);
    assert_eq!(run.code, 0, "{}", run.block());
    assert_eq!(keys(&user)["keys"][0]["expires"], "2999-12-31T00:00:00Z");
    // A damaged file is never written over.
    std::fs::write(user.path("keys.json"), "{").unwrap();
    add(&["late", "--role", "public"]).refused(2, &["keys.json", "restore it"]);
    assert_eq!(read(user.path("keys.json")), "{");
    user.run(&["apikey", "list", "--keys-file", "none.json"]);
    assert!(!user.path("none.json").exists());
}

#[test]
fn the_default_file_stands_beside_the_default_key() {
    let user = User::new();
    let run = user.run(&["apikey", "add", "desk", "--role", "operator"]);
    assert_eq!(run.code, 0, "{}", run.block());
    assert!(user.path("config/wm/apikeys.json").exists());
    let run = user.run_with_environment(
        &[("WM_KEYS_FILE", "elsewhere.json")],
        &["apikey", "add", "desk", "--role", "operator"],
    );
    assert!(user.path("elsewhere.json").exists(), "{}", run.block());
}

#[cfg(unix)]
#[test]
fn a_link_is_followed_and_one_that_leads_nowhere_is_no_new_file() {
    use std::os::unix::fs::symlink;
    let user = User::new();
    std::fs::create_dir(user.path("secrets")).unwrap();
    symlink("secrets/real.json", user.path("keys.json")).unwrap();
    let add = |name| user.run(&[&["apikey", "add", name, "--role", "public"], &FILE[..]].concat());
    add("desk").refused(2, &["keys.json", "follow the link"]);
    assert!(!user.path("secrets/real.json").exists());
    let run = user.run(&[
        "apikey",
        "add",
        "first",
        "--role",
        "public",
        "--keys-file",
        "secrets/real.json",
    ]);
    assert_eq!(run.code, 0, "{}", run.block());
    assert_eq!(add("second").code, 0);
    assert_eq!(user.run(&[&["apikey", "revoke", "first"], &FILE[..]].concat()).code, 0);
    assert!(std::fs::symlink_metadata(user.path("keys.json")).unwrap().is_symlink());
    let real: Value = serde_json::from_str(&read(user.path("secrets/real.json"))).unwrap();
    let names: Vec<&Value> =
        real["keys"].as_array().unwrap().iter().map(|key| &key["name"]).collect();
    assert_eq!(names, ["first", "second"]);
    assert!(real["keys"][0]["revoked"].is_string());
    // A path that cannot be looked at is none where no file is.
    symlink("loop.json", user.path("loop.json")).unwrap();
    user.run(&["apikey", "add", "a", "--role", "public", "--keys-file", "loop.json"])
        .refused(2, &["loop.json", "remove it"]);
    assert!(std::fs::symlink_metadata(user.path("loop.json")).unwrap().is_symlink());
}

/// Only the administrator can give files away, so only as such does this say anything.
#[cfg(unix)]
#[test]
fn the_administrators_first_key_belongs_to_the_owner_of_the_folder() {
    use std::os::unix::fs::{MetadataExt, chown};
    let user = User::new();
    let folder = user.path("service");
    std::fs::create_dir(&folder).unwrap();
    if std::fs::metadata(&folder).unwrap().uid() != 0 {
        return;
    }
    chown(&folder, Some(4321), Some(4322)).unwrap();
    // Somebody's link where the lock should be is not given away.
    let other = user.file("other", "");
    for name in ["first", "second"] {
        let file = ["--keys-file", "service/keys.json"];
        let run = user.run(&[&["apikey", "add", name, "--role", "public"], &file[..]].concat());
        assert_eq!(run.code, 0, "{}", run.block());
        for name in ["keys.json", "keys.json.lock"] {
            let metadata = std::fs::metadata(folder.join(name)).unwrap();
            assert_eq!((metadata.uid(), metadata.gid()), (4321, 4322), "{name}");
            assert_eq!(metadata.mode() & 0o777, 0o600, "{name}");
        }
    }
    std::os::unix::fs::symlink(&other, folder.join("linked.json.lock")).unwrap();
    user.run(&["apikey", "add", "a", "--role", "public", "--keys-file", "service/linked.json"]);
    assert_eq!(std::fs::metadata(&other).unwrap().uid(), 0);
}

#[test]
fn a_key_that_could_not_be_shown_says_so() {
    let user = User::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let args = [&["apikey", "add", "desk", "--role", "public"], &FILE[..]].concat();
    let output = user.command(&args).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("wm apikey revoke desk"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn keys_added_at_once_are_all_kept() {
    let user = User::new();
    let children: Vec<_> = (0..12)
        .map(|number| {
            let name = format!("key-{number}");
            let args = ["apikey", "add", &name, "--role", "public", "--keys-file", "keys.json"];
            user.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let shown: HashSet<Vec<u8>> = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            output.stdout
        })
        .collect();
    let names: HashSet<String> = keys(&user)["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| key["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!((shown.len(), names.len()), (12, 12));
}

#[test]
fn a_killed_writer_leaves_a_whole_file() {
    let user = User::new();
    add(&user, "first", "operator");
    for number in 0..30 {
        let name = format!("key-{number}");
        let args = ["apikey", "add", &name, "--role", "public", "--keys-file", "keys.json"];
        let mut child =
            user.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_micros(400 * number));
        // It may have ended by itself.
        let _ = child.kill();
        child.wait().unwrap();
        assert_eq!(keys(&user)["keys"][0]["name"], "first");
    }
    // The lock of a killed writer is free, and what it left behind is in nobody's way.
    add(&user, "last", "operator");
    let known = ["keys.json", "keys.json.lock", "config", "cache"];
    for entry in std::fs::read_dir(user.path(".")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&&*name), "{name}");
    }
}
