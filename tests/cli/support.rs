//! A user of their own for every test: empty configuration, empty cache, no network.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// 64 hexadecimal digits that no test keeps secret.
pub(crate) const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// The tokenizer of 300 ids that belongs to the tiny checkpoints.
pub(crate) fn tiny_tokenizer() -> String {
    format!("{}/data/models/tokenizer-300.json", env!("CARGO_MANIFEST_DIR"))
}

/// A text of `length` letters, each green after the one before it under `key` (64 hexadecimal
/// digits) and the default profile.
pub(crate) fn marked(length: usize, key: &str) -> String {
    use greenmark::prf::Key;
    use greenmark::profile::{ContextWidth, Delta, Gamma};
    use greenmark::scheme::GreenList;
    use greenmark::text::Tokenizer;
    let scheme = GreenList::new(
        &Key::from_hex(key).unwrap(),
        Gamma::DEFAULT,
        Delta::DEFAULT,
        ContextWidth::new(1).unwrap(),
    );
    let tokenizer = Tokenizer::open(tiny_tokenizer()).unwrap();
    let mut text = String::from("Q");
    let mut state = 1u32;
    let mut last = tokenizer.encode_ids("Q").unwrap()[0];
    while text.len() < length {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Capital letters and digits are never merged by this vocabulary.
        let letter = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(state >> 16) as usize % 26];
        let id = tokenizer.encode_ids(&char::from(letter).to_string()).unwrap()[0];
        if scheme.is_green(&[last], id) {
            text.push(char::from(letter));
            last = id;
        }
    }
    text
}

pub(crate) const HUMAN: &str = "It was the best of times, it was the worst of times, it was the age of wisdom, \
    it was the age of foolishness, it was the epoch of belief, it was the epoch of incredulity.";

/// A tiny checkpoint.
#[cfg(feature = "engine")]
pub(crate) fn tiny_model(name: &str) -> String {
    format!("{}/data/models/{name}", env!("CARGO_MANIFEST_DIR"))
}

pub(crate) struct User {
    folder: tempfile::TempDir,
}

/// How a run ended and what it printed.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    home: String,
}

impl User {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and gives its path as an argument.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// A key file with the right mode.
    pub(crate) fn key(&self, name: &str, hex: &str) -> String {
        let path = self.file(name, format!("{hex}\n"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        path
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wm"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("WM_CACHE", self.path("cache"))
            .env("WM_PIP", "/nonexistent/pip")
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.finish(self.command(args).output().unwrap())
    }

    pub(crate) fn run_with_environment(&self, environment: &[(&str, &str)], args: &[&str]) -> Run {
        let environment = environment.iter().copied();
        self.finish(self.command(args).envs(environment).output().unwrap())
    }

    pub(crate) fn run_with_stdin(&self, args: &[&str], stdin: &[u8]) -> Run {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that refuses its flags does not read its input.
        let _ = child.stdin.take().unwrap().write_all(stdin);
        self.finish(child.wait_with_output().unwrap())
    }

    fn finish(&self, output: Output) -> Run {
        Run {
            code: output.status.code().expect("the program was not killed"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            home: self.folder.path().display().to_string(),
        }
    }
}

impl Run {
    /// The whole run in one block, with the user's folder as `[home]`.
    pub(crate) fn block(&self) -> String {
        let mut block = String::new();
        writeln!(block, "exit code: {}", self.code).unwrap();
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            writeln!(block, "----- {name} -----").unwrap();
            block.push_str(text);
            if !text.is_empty() && !text.ends_with('\n') {
                block.push('\n');
            }
        }
        block.replace(&self.home, "[home]").replace(env!("CARGO_MANIFEST_DIR"), "[repo]")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("{error}: exit {}\n{}\n{}", self.code, self.stdout, self.stderr)
        })
    }

    /// Asserts an exit code and that standard error holds every part.
    pub(crate) fn refused(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{}", self.block());
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is missing:\n{}", self.block());
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.block());
    }
}

/// Reads a file as text.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}
