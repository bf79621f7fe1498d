//! The model hub, played by a server on this machine.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use greenmark::store::{Fetch, Silent, Store, Table};
use greenmark::{Error, ErrorKind};

use crate::fake::{Diary, model_bytes, sha256, table_text};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

#[derive(Default)]
struct Content {
    files: HashMap<String, Vec<u8>>,
    /// The names asked for, one for each request that brings content.
    served: Vec<String>,
    /// Files whose content is cut in half while the full size is announced.
    cut: Vec<String>,
    /// Files announced under the SHA-256 of other content.
    lying: Vec<String>,
}

struct Server {
    address: String,
    content: Arc<Mutex<Content>>,
    folder: tempfile::TempDir,
}

impl Server {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let content = Arc::new(Mutex::new(Content::default()));
        for (name, bytes) in files {
            content.lock().unwrap().files.insert((*name).to_owned(), bytes.to_vec());
        }
        let shared = Arc::clone(&content);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that hangs up early is part of some tests.
                let _ = answer(stream, &shared);
            }
        });
        Self { address, content, folder: tempfile::tempdir().unwrap() }
    }

    fn store(&self) -> Store {
        Store::at(self.folder.path().join("cache")).unwrap().with_hub_endpoint(&self.address)
    }

    fn served(&self) -> Vec<String> {
        let mut served = self.content.lock().unwrap().served.clone();
        served.sort();
        served
    }

    fn hub_folder(&self) -> PathBuf {
        self.folder.path().join("cache/hub/models--org--repo")
    }
}

fn answer(stream: TcpStream, content: &Mutex<Content>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut start = None;
    let mut probe = false;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(range) = line.trim().to_ascii_lowercase().strip_prefix("range: bytes=") {
            probe = range == "0-0";
            start = range.split('-').next().and_then(|number| number.parse::<usize>().ok());
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut content = content.lock().unwrap();
    let mut stream = stream;
    if path.starts_with("/api/models/org/repo/revision/") {
        let names: Vec<String> =
            content.files.keys().map(|name| format!("{{\"rfilename\":\"{name}\"}}")).collect();
        let body = format!("{{\"sha\":\"{COMMIT}\",\"siblings\":[{}]}}", names.join(","));
        return write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
    }
    let name = path.strip_prefix("/org/repo/resolve/").and_then(|rest| rest.split_once('/'));
    let Some((name, bytes)) =
        name.and_then(|(_, name)| Some((name.to_owned(), content.files.get(name)?.clone())))
    else {
        return write!(
            stream,
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
    };
    // As the hub does it: weights are announced under their SHA-256, other files under 40 digits.
    let hash = if content.lying.contains(&name) { sha256(b"other") } else { sha256(&bytes) };
    let weights = [Some("gguf"), Some("safetensors")]
        .contains(&Path::new(&name).extension().and_then(|ending| ending.to_str()));
    let tag = if weights { hash.as_str() } else { &hash[..40] };
    let from = start.unwrap_or(0).min(bytes.len());
    let mut body = if probe { &bytes[..1.min(bytes.len())] } else { &bytes[from..] };
    if !probe {
        content.served.push(name.clone());
        if content.cut.contains(&name) {
            body = &body[..body.len() / 2];
        }
    }
    write!(
        stream,
        "HTTP/1.1 206 Partial Content\r\netag: \"{tag}\"\r\nx-repo-commit: {COMMIT}\r\n\
         content-range: bytes {from}-{}/{}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        bytes.len().saturating_sub(1),
        bytes.len(),
        body.len()
    )?;
    stream.write_all(body)
}

fn reason(error: &Error) -> &str {
    let Error::Unavailable { reason, .. } = error else { panic!("{error:?}") };
    reason
}

const CONFIG: (&str, &[u8]) = ("config.json", b"{\"model_type\":\"llama\"}");
const TOKENIZER: (&str, &[u8]) = ("tokenizer.json", b"{\"version\":\"1.0\"}");
const WEIGHTS: (&str, &[u8]) = ("model.safetensors", b"the weights");

#[test]
fn one_file_is_fetched_once_and_found_offline() {
    let model = model_bytes();
    let server = Server::new(&[("m.gguf", &model), TOKENIZER]);
    let store = server.store();
    let mut diary = Diary::default();
    let path = store.resolve("org/repo:m.gguf", Fetch::Allowed, &mut diary).unwrap();
    assert_eq!(fs::read(&path).unwrap(), model);
    assert_eq!(path.file_name().unwrap(), "m.gguf");
    assert_eq!(diary.lines(), ["started org/repo:m.gguf Some(700000)", "finished m.gguf"]);
    assert_eq!(*diary.downloaded().last().unwrap(), 700_000);

    for fetch in [Fetch::Offline, Fetch::Allowed] {
        assert_eq!(store.resolve("org/repo:m.gguf", fetch, &mut Silent).unwrap(), path);
    }
    assert_eq!(server.served(), ["m.gguf"]);
}

#[test]
fn a_tokenizer_is_fetched_alone() {
    let server = Server::new(&[CONFIG, TOKENIZER, WEIGHTS]);
    let path = server.store().resolve_tokenizer("org/repo", Fetch::Allowed, &mut Silent).unwrap();
    assert_eq!(fs::read(path).unwrap(), TOKENIZER.1);
    assert_eq!(server.served(), ["tokenizer.json"]);
}

#[test]
fn a_whole_model_is_a_folder() {
    let server = Server::new(&[
        CONFIG,
        TOKENIZER,
        WEIGHTS,
        ("generation_config.json", b"{}"),
        ("chat_template.jinja", b"{{ x }}"),
        ("README.md", b"read me"),
        ("pytorch_model.bin", b"not wanted"),
    ]);
    let store = server.store();
    let folder = store.resolve("org/repo", Fetch::Allowed, &mut Silent).unwrap();
    let wanted = [
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
    ];
    assert_eq!(crate::fake::names(&folder), wanted);
    assert_eq!(server.served(), wanted);
    assert_eq!(fs::read(folder.join("model.safetensors")).unwrap(), WEIGHTS.1);
    assert_eq!(store.resolve("org/repo", Fetch::Offline, &mut Silent).unwrap(), folder);
    assert_eq!(server.served(), wanted, "nothing is fetched twice");
    let tokenizer = store.resolve_tokenizer("org/repo", Fetch::Offline, &mut Silent).unwrap();
    assert_eq!(tokenizer, folder.join("tokenizer.json"));
}

#[test]
fn shards_follow_the_index() {
    let index = br#"{"metadata":{},"weight_map":{"a":"w-1.safetensors","b":"w-2.safetensors","c":"w-1.safetensors"}}"#;
    let server = Server::new(&[
        CONFIG,
        TOKENIZER,
        ("model.safetensors.index.json", index),
        ("w-1.safetensors", b"one"),
        ("w-2.safetensors", b"two"),
        ("w-3.safetensors", b"stray"),
    ]);
    let store = server.store();
    let folder = store.resolve("org/repo", Fetch::Allowed, &mut Silent).unwrap();
    assert_eq!(fs::read(folder.join("w-2.safetensors")).unwrap(), b"two");
    assert!(!folder.join("w-3.safetensors").exists());

    // A model that has lost a shard is not whole.
    fs::remove_file(folder.join("w-2.safetensors")).unwrap();
    let error = store.resolve("org/repo", Fetch::Offline, &mut Silent).unwrap_err();
    assert!(reason(&error).contains("fetching is off"), "{error}");
    store.resolve("org/repo", Fetch::Allowed, &mut Silent).unwrap();
    assert_eq!(server.served().iter().filter(|name| *name == "w-2.safetensors").count(), 2);
    assert_eq!(server.served().iter().filter(|name| *name == "w-1.safetensors").count(), 1);
}

#[test]
fn an_index_that_names_a_path_outside_is_refused() {
    let index = br#"{"weight_map":{"a":"../../../evil"}}"#;
    let server = Server::new(&[CONFIG, TOKENIZER, ("model.safetensors.index.json", index)]);
    let error = server.store().resolve("org/repo", Fetch::Allowed, &mut Silent).unwrap_err();
    assert!(reason(&error).contains("../../../evil"), "{error}");
}

#[test]
fn a_download_cut_short_is_never_used() {
    let server = Server::new(&[("m.gguf", &model_bytes())]);
    server.content.lock().unwrap().cut.push("m.gguf".to_owned());
    let store = server.store();
    let error = store.resolve("org/repo:m.gguf", Fetch::Allowed, &mut Silent).unwrap_err();
    assert!(reason(&error).contains("350000 of 700000 bytes arrived"), "{error}");
    store.resolve("org/repo:m.gguf", Fetch::Offline, &mut Silent).unwrap_err();

    server.content.lock().unwrap().cut.clear();
    let path = store.resolve("org/repo:m.gguf", Fetch::Allowed, &mut Silent).unwrap();
    assert_eq!(fs::read(path).unwrap(), model_bytes());
}

#[test]
fn content_other_than_announced_is_never_used() {
    let server = Server::new(&[("m.gguf", b"some bytes")]);
    server.content.lock().unwrap().lying.push("m.gguf".to_owned());
    let store = server.store();
    let error = store.resolve("org/repo:m.gguf", Fetch::Allowed, &mut Silent).unwrap_err();
    assert!(reason(&error).contains(&sha256(b"some bytes")), "{error}");
    store.resolve("org/repo:m.gguf", Fetch::Offline, &mut Silent).unwrap_err();
}

#[test]
fn a_file_without_a_stamp_is_checked_before_use() {
    let server = Server::new(&[("m.gguf", b"some bytes"), TOKENIZER]);
    let store = server.store();
    for spec in ["org/repo:m.gguf", "org/repo:tokenizer.json"] {
        let path = store.resolve(spec, Fetch::Allowed, &mut Silent).unwrap();
        let blob = fs::canonicalize(path).unwrap();
        fs::remove_file(format!("{}.verified", blob.display())).unwrap();
    }
    // The weights carry their SHA-256 as a name; the other file has nothing to be checked by.
    store.resolve("org/repo:m.gguf", Fetch::Offline, &mut Silent).unwrap();
    store.resolve("org/repo:tokenizer.json", Fetch::Offline, &mut Silent).unwrap_err();
    store.resolve("org/repo:tokenizer.json", Fetch::Allowed, &mut Silent).unwrap();

    let blob = server.hub_folder().join("blobs").join(sha256(b"some bytes"));
    fs::write(&blob, "other byte").unwrap();
    store.resolve("org/repo:m.gguf", Fetch::Offline, &mut Silent).unwrap_err();
    let path = store.resolve("org/repo:m.gguf", Fetch::Allowed, &mut Silent).unwrap();
    assert_eq!(fs::read(path).unwrap(), b"some bytes");
}

#[test]
fn a_repository_without_safetensors_names_its_gguf_files() {
    let server = Server::new(&[("a.gguf", b"a"), ("b.gguf", b"b")]);
    let error = server.store().resolve("org/repo", Fetch::Allowed, &mut Silent).unwrap_err();
    assert!(reason(&error).contains("org/repo:FILE (a.gguf, b.gguf)"), "{error}");
    let server = Server::new(&[WEIGHTS]);
    let error = server.store().resolve("org/repo", Fetch::Allowed, &mut Silent).unwrap_err();
    assert!(reason(&error).contains("no config.json"), "{error}");
}

#[test]
fn a_missing_file_or_hub_says_what_to_do() {
    let server = Server::new(&[]);
    let error =
        server.store().resolve("org/repo:no.gguf", Fetch::Allowed, &mut Silent).unwrap_err();
    assert!(reason(&error).contains("404"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Environment);
    let shown = error.to_string();
    assert!(shown.contains("hf download org/repo no.gguf --local-dir FOLDER"), "{shown}");

    // A port that nobody listens on.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nowhere = server.store().with_hub_endpoint(format!("http://127.0.0.1:{port}"));
    nowhere.resolve("org/repo", Fetch::Allowed, &mut Silent).unwrap_err();
}

#[test]
fn a_table_may_name_the_hub_as_a_source() {
    let model = model_bytes();
    let server = Server::new(&[("sub/q.gguf", &model)]);
    let text = table_text(model.len(), &sha256(&model));
    let (head, _) = text.split_once("[[model.source]]").unwrap();
    let table = format!(
        "{head}[[model.source]]\nkind = \"hub\"\nrepo = \"org/repo\"\nfile = \"sub/q.gguf\"\n"
    );
    let store = server.store().with_table(Table::parse(&table).unwrap());
    let path = store.resolve("toy", Fetch::Allowed, &mut Silent).unwrap();
    assert_eq!(path, server.folder.path().join("cache/toy/toy.gguf"));
    assert_eq!(fs::read(&path).unwrap(), model);
    assert!(!path.is_symlink());
    assert_eq!(crate::fake::names(&server.folder.path().join("cache")), ["toy"]);

    let other = table.replace(&sha256(&model), &sha256(b"other"));
    let place = tempfile::tempdir().unwrap();
    let store = Store::at(place.path())
        .unwrap()
        .with_hub_endpoint(&server.address)
        .with_table(Table::parse(&other).unwrap());
    let error = store.resolve("toy", Fetch::Allowed, &mut Silent).unwrap_err();
    assert!(reason(&error).contains("its SHA-256 is"), "{error}");
}
