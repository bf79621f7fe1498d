//! What a run reads is never written over.

use std::fs;

use crate::support::{KEY, User, tiny_tokenizer};

/// Every file of the user that a slip of the hand could cost stays as it was.
#[test]
fn keys_texts_profiles_and_sidecars_survive_an_output_of_their_name() {
    let user = User::new();
    let key = user.key("k.key", KEY);
    let text = user.file("text.txt", "some words that somebody wrote");
    let sidecar = user.file("text.txt.wm.json", "{}");
    let prompt = user.file("prompt.txt", "a prompt");
    let tokenizer = tiny_tokenizer();
    fs::hard_link(&text, user.path("hard.html")).unwrap();
    let hard = user.path("hard.html").display().to_string();
    for target in [&key, &text, &sidecar, &prompt, &hard] {
        let before = fs::read(target).unwrap();
        let args = [
            "detect",
            &text,
            "--ignore-sidecar",
            "--prompt-file",
            &prompt,
            "--key-file",
            &key,
            "--tokenizer",
            &tokenizer,
            "--html",
            target,
        ];
        user.run(&args).refused(2, &["html", "this run does not read"]);
        assert_eq!(fs::read(target).unwrap(), before);
    }
    for target in [&key, &text] {
        let before = fs::read(target).unwrap();
        let args =
            ["calibrate", &text, "--key-file", &key, "--tokenizer", &tokenizer, "--plot", target];
        user.run(&args).refused(2, &["plot", "this run does not read"]);
        assert_eq!(fs::read(target).unwrap(), before);
    }
}
