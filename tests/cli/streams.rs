//! Closed pipes and full disks.

use std::io::Read;
use std::process::Stdio;

use crate::support::{KEY, User};

#[test]
fn h13_a_closed_pipe_ends_the_run_quietly() {
    let user = User::new();
    let key = user.key("k", KEY);
    // Some megabytes of output, of which the reader takes ten bytes.
    let logits = format!("[{}]", vec!["0.5"; 200_000].join(","));
    let file = user.file("logits", &logits);
    let args = ["inspect", "green-list", "--key-file", &key, "--vocab", "5000000", "--json"];
    for args in [&args[..], &["inspect", "chain", "--logits", "[1,2,3]", "--json"][..]] {
        let mut child =
            user.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut head = [0; 1];
        stdout.read_exact(&mut head).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("panicked"), "{stderr}");
        assert!(matches!(output.status.code(), Some(0 | 141)), "{:?} {stderr}", output.status);
    }
    drop(file);
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
