//! Closed pipes and full disks.

use std::io::Read;
use std::process::Stdio;

use crate::support::{KEY, User, tiny_tokenizer};

#[test]
fn h13_a_closed_pipe_ends_the_run_without_a_verdict() {
    let user = User::new();
    let (key, tokenizer) = (user.key("k", KEY), tiny_tokenizer());
    let text = user.file("t.txt", "It was the best of times, it was the worst. ".repeat(5000));
    let flags = ["--json", "--key-file", &key, "--tokenizer", &tokenizer];
    for command in [&["inspect", "tokens", &text][..], &["detect", &text, "--details"]] {
        let mut child = user
            .command(&[command, &flags[..]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Ten bytes of some megabytes, far more than a pipe holds.
        let mut stdout = child.stdout.take().unwrap();
        let mut head = [0; 10];
        stdout.read_exact(&mut head).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), stderr.as_ref()), (Some(141), ""));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn h13_a_full_disk_is_an_error() {
    let user = User::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = user
        .command(&["inspect", "chain", "--logits", "[1,2,3]"])
        .stdout(Stdio::from(full))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot write to standard output"), "{stderr}");
}

#[test]
#[cfg(target_os = "linux")]
fn h13_a_full_standard_error_changes_no_exit_code() {
    let user = User::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output =
        user.command(&["detect", "missing.txt"]).stderr(Stdio::from(full)).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
