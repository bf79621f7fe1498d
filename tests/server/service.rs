//! A running service with a user of its own.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::{self, Reply};
use crate::support::{KEY, User, tiny_tokenizer};

pub(crate) struct Service {
    pub(crate) user: User,
    pub(crate) address: SocketAddr,
    child: Child,
    flags: Vec<String>,
    log: Arc<Mutex<String>>,
}

impl Service {
    /// A detection service with the tiny tokenizer, a key and further flags.
    pub(crate) fn tiny(flags: &[&str]) -> Self {
        let user = User::new();
        let (key, tokenizer) = (user.key("key", KEY), tiny_tokenizer());
        let own = ["--no-engine", "--key-file", &key, "--tokenizer", &tokenizer];
        Self::start(user, &[&own, flags].concat())
    }

    /// A service with these flags, once it is ready.
    pub(crate) fn start(user: User, flags: &[&str]) -> Self {
        let service = Self::start_loading(user, flags);
        service.until_ready();
        service
    }

    /// A service with these flags, which listens but may not be ready yet.
    pub(crate) fn start_loading(user: User, flags: &[&str]) -> Self {
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        let log = Arc::default();
        let (child, address) = launch(&user, &flags, &log);
        Self { user, address, child, flags, log }
    }

    /// Starts it again, on another port, once it has ended.
    pub(crate) fn start_again(&mut self) {
        (self.child, self.address) = launch(&self.user, &self.flags, &self.log);
        self.until_ready();
    }

    fn until_ready(&self) {
        let started = Instant::now();
        while self.get("/ready").status != 200 {
            let log = self.log();
            assert!(started.elapsed() < Duration::from_mins(2), "never ready: {log}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// What it has said on standard error.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until it has said this on standard error, and gives all of it.
    pub(crate) fn until_said(&self, part: &str) -> String {
        let started = Instant::now();
        loop {
            let log = self.log();
            if log.contains(part) {
                return log;
            }
            assert!(started.elapsed() < Duration::from_secs(10), "never said {part:?}: {log}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        client::send(self.address, "GET", path, &[], b"")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_bytes(path, body.to_string().as_bytes())
    }

    pub(crate) fn post_bytes(&self, path: &str, body: &[u8]) -> Reply {
        let headers = [("Content-Type", "application/json")];
        client::send(self.address, "POST", path, &headers, body)
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let status = std::process::Command::new("kill")
            .args([format!("-{name}"), self.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Waits for the end and gives the exit code; none after a signal that killed.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

/// Starts the program and waits until it says where it listens.
fn launch(user: &User, flags: &[String], log: &Arc<Mutex<String>>) -> (Child, SocketAddr) {
    let mut command = user.command(&["serve", "--port", "0", "--offline"]);
    let mut child = command.args(flags).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    let address = loop {
        let mut line = String::new();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended: {said}");
        said.push_str(&line);
        if let Some(address) = line.trim().strip_prefix("wm: listening on http://") {
            break address.parse().unwrap();
        }
    };
    log.lock().unwrap().push_str(&said);
    let kept = Arc::clone(log);
    thread::spawn(move || {
        let mut line = String::new();
        while stderr.read_line(&mut line).is_ok_and(|read| read > 0) {
            kept.lock().unwrap().push_str(&line);
            line.clear();
        }
    });
    (child, address)
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("the service said:\n{}", self.log());
            let mut rest = String::new();
            if let Some(stdout) = &mut self.child.stdout {
                let _ = stdout.read_to_string(&mut rest);
            }
        }
    }
}
