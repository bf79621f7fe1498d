//! Files of a repository of the model hub, through the crate `hf-hub`.
//!
//! hf-hub keeps its own cache, here below `<root>/hub`. It does not compare what arrived with
//! what was announced, so that is done here: every file is checked once and stamped, and an
//! unstamped one is never used unchecked. A whole model is fetched at one revision, and the
//! branch's pointer moves there only after the last file.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use hf_hub::api::sync::{Api, ApiBuilder};
use hf_hub::{Cache, Repo, RepoType};
use secrecy::ExposeSecret;
use serde::Deserialize;

use super::Store;
use super::progress::{Event, Fetch, Progress};
use super::pull::lock;
use super::table::{is_member, is_sha256};
use super::verify::{self, Seen};
use crate::error::{Error, Result};

const BRANCH: &str = "main";
const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// Used when the repository has them.
const OPTIONAL: [&str; 3] =
    ["generation_config.json", "tokenizer_config.json", "chat_template.jinja"];
const OFFLINE: &str = "it is not in the cache, and fetching is off";

/// One file of a repository's main branch.
pub(super) fn file(
    store: &Store,
    repo: &str,
    file: &str,
    fetch: Fetch,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let hub = Hub::new(store, repo, store.root().join("hub"));
    let failed = |reason: String| unavailable(repo, Some(file), reason);
    if let Some(path) = hub.cached(BRANCH, file) {
        return Ok(path);
    }
    if fetch == Fetch::Offline {
        return Err(failed(OFFLINE.to_owned()));
    }
    let _lock = hub.lock(progress)?;
    if let Some(path) = hub.cached(BRANCH, file) {
        return Ok(path);
    }
    let path = hub.download(BRANCH, file, progress).map_err(failed)?;
    progress.event(Event::Finished { path: &path });
    Ok(path)
}

/// A whole safetensors model: the folder that holds its files.
pub(super) fn model(
    store: &Store,
    repo: &str,
    fetch: Fetch,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let hub = Hub::new(store, repo, store.root().join("hub"));
    let failed = |reason: String| unavailable(repo, None, reason);
    if let Some(folder) = hub.cached_model() {
        return Ok(folder);
    }
    if fetch == Fetch::Offline {
        return Err(failed(OFFLINE.to_owned()));
    }
    let _lock = hub.lock(progress)?;
    if let Some(folder) = hub.cached_model() {
        return Ok(folder);
    }
    let folder = hub.download_model(progress).map_err(failed)?;
    progress.event(Event::Finished { path: &folder });
    Ok(folder)
}

/// One file into `target`, by way of a hub cache in the temporary `folder`. Gives its size and
/// SHA-256.
pub(super) fn fetch_file(
    store: &Store,
    repo: &str,
    file: &str,
    folder: &Path,
    target: &Path,
    progress: &mut dyn Progress,
) -> Result<(u64, String), String> {
    let hub = Hub::new(store, repo, folder.join("hub"));
    let path = hub.download(BRANCH, file, progress)?;
    let text = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let blob = fs::canonicalize(&path).map_err(text)?;
    let seen = Seen::of(&blob).map_err(text)?;
    let sha256 = match verify::stamped(&blob) {
        Some(sha256) => sha256,
        None => verify::sha256_file(&blob).map_err(text)?,
    };
    fs::rename(&blob, target).map_err(text)?;
    Ok((seen.bytes, sha256))
}

struct Hub<'a> {
    store: &'a Store,
    repo: &'a str,
    cache: Cache,
}

impl<'a> Hub<'a> {
    fn new(store: &'a Store, repo: &'a str, folder: PathBuf) -> Self {
        Self { store, repo, cache: Cache::new(folder) }
    }

    fn at(&self, revision: &str) -> Repo {
        Repo::with_revision(self.repo.to_owned(), RepoType::Model, revision.to_owned())
    }

    fn api(&self) -> Result<Api, String> {
        let token = self.store.hub_token.as_ref().map(|token| token.expose_secret().to_owned());
        let mut builder =
            ApiBuilder::from_cache(self.cache.clone()).with_progress(false).with_token(token);
        if let Some(endpoint) = &self.store.hub_endpoint {
            builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
        }
        builder.build().map_err(|error| error.to_string())
    }

    /// Waits for other processes that fetch from this repository. hf-hub has locks of its own,
    /// but gives up on them after some seconds.
    fn lock(&self, progress: &mut dyn Progress) -> Result<Option<File>> {
        let folder = self.cache.path().join(self.at(BRANCH).folder_name());
        fs::create_dir_all(&folder).map_err(|error| Error::io("create", &folder, error))?;
        lock(&folder, &folder, progress)
    }

    /// A file that is in the cache and whole.
    fn cached(&self, revision: &str, file: &str) -> Option<PathBuf> {
        let path = self.cache.repo(self.at(revision)).get(file)?;
        check(&path).ok().map(|()| path)
    }

    /// The folder of a model whose every file is in the cache and whole.
    fn cached_model(&self) -> Option<PathBuf> {
        let config = self.cached(BRANCH, CONFIG)?;
        self.cached(BRANCH, TOKENIZER)?;
        if self.cached(BRANCH, WEIGHTS).is_none() {
            let index = self.cached(BRANCH, INDEX)?;
            for shard in shards(&index).ok()? {
                self.cached(BRANCH, &shard)?;
            }
        }
        config.parent().map(Path::to_path_buf)
    }

    fn download(
        &self,
        revision: &str,
        file: &str,
        progress: &mut dyn Progress,
    ) -> Result<PathBuf, String> {
        let what = format!("{}:{file}", self.repo);
        let mut announced = 0;
        let meter =
            Meter { what: &what, started: false, bytes: 0, announced: &mut announced, progress };
        let path = self
            .api()?
            .repo(self.at(revision))
            .download_with_progress(file, meter)
            .map_err(|error| format!("{file}: {error}"))?;
        let blob = fs::canonicalize(&path).map_err(|error| format!("{file}: {error}"))?;
        let result = Seen::of(&blob).map_err(|error| error.to_string()).and_then(|seen| {
            if seen.bytes == announced {
                stamp(&blob, seen)
            } else {
                Err(format!("{} of {announced} bytes arrived", seen.bytes))
            }
        });
        if let Err(reason) = result {
            // The pointer goes too: hf-hub does not replace one that points nowhere.
            let _ = fs::remove_file(&path);
            let _ = fs::remove_file(&blob);
            return Err(format!("{file}: {reason}; what arrived was removed, try again"));
        }
        Ok(path)
    }

    fn download_model(&self, progress: &mut dyn Progress) -> Result<PathBuf, String> {
        let info = self.api()?.repo(self.at(BRANCH)).info().map_err(|error| error.to_string())?;
        let revision = info.sha;
        // It becomes a folder's name.
        if revision.len() < 7 || !revision.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(format!("the hub names the revision {revision:?}, which is none"));
        }
        let there: BTreeSet<String> =
            info.siblings.into_iter().map(|file| file.rfilename).collect();
        let has = |name: &str| there.contains(name);
        let folder = self.cache.repo(self.at(&revision)).pointer_path(&revision);
        let mut fetch = |name: &str| -> Result<PathBuf, String> {
            let path = match self.cached(&revision, name) {
                Some(path) => path,
                None => self.download(&revision, name, progress)?,
            };
            if path == folder.join(name) {
                Ok(path)
            } else {
                Err(format!("{name} came at another revision than {revision}"))
            }
        };
        if !has(WEIGHTS) && !has(INDEX) {
            let gguf: Vec<&str> =
                there.iter().map(String::as_str).filter(|name| is_gguf(name)).collect();
            return Err(if gguf.is_empty() {
                format!("it holds neither {WEIGHTS} nor {INDEX} nor a GGUF file")
            } else {
                format!(
                    "it holds GGUF files; name one of them: {}:FILE ({})",
                    self.repo,
                    gguf.join(", ")
                )
            });
        }
        for name in [CONFIG, TOKENIZER] {
            if !has(name) {
                return Err(format!("it holds no {name}"));
            }
            fetch(name)?;
        }
        for name in OPTIONAL.into_iter().filter(|name| has(name)) {
            fetch(name)?;
        }
        // The weights come last, so that a model whose weights are there is whole.
        if has(WEIGHTS) {
            fetch(WEIGHTS)?;
        } else {
            let index = fetch(INDEX)?;
            for shard in shards(&index)? {
                fetch(&shard)?;
            }
        }
        self.cache
            .repo(self.at(BRANCH))
            .create_ref(&revision)
            .map_err(|error| format!("cannot write the reference: {error}"))?;
        Ok(folder)
    }
}

fn is_gguf(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gguf"))
}

/// The weight files that an index names.
fn shards(index: &Path) -> Result<BTreeSet<String>, String> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: std::collections::BTreeMap<String, String>,
    }
    let text = fs::read(index).map_err(|error| format!("{INDEX}: {error}"))?;
    let index: Index =
        serde_json::from_slice(&text).map_err(|error| format!("{INDEX} is damaged: {error}"))?;
    let shards: BTreeSet<String> = index.weight_map.into_values().collect();
    match shards.iter().find(|shard| !is_member(shard)) {
        Some(odd) => Err(format!("{INDEX} names {odd:?}, which is no relative path")),
        None if shards.is_empty() => Err(format!("{INDEX} names no file")),
        None => Ok(shards),
    }
}

/// Is a cached file whole? Large files are named by their SHA-256, which an unstamped one is
/// checked against; small ones have no such name and are whole only with a stamp.
fn check(path: &Path) -> Result<(), String> {
    let blob = fs::canonicalize(path).map_err(|error| error.to_string())?;
    if verify::stamped(&blob).is_some_and(|sha256| agrees(&blob, &sha256)) {
        return Ok(());
    }
    if named_by_sha256(&blob).is_none() {
        return Err("its download was not finished".to_owned());
    }
    let seen = Seen::of(&blob).map_err(|error| error.to_string())?;
    stamp(&blob, seen)
}

/// Hashes a file, compares that with its name where the name says, and stamps it.
fn stamp(blob: &Path, seen: Seen) -> Result<(), String> {
    let sha256 = verify::sha256_file(blob).map_err(|error| error.to_string())?;
    if !agrees(blob, &sha256) {
        return Err(format!(
            "its SHA-256 is {sha256}, the hub announced {}",
            named_by_sha256(blob).unwrap_or_default()
        ));
    }
    verify::write_stamp(blob, seen, &sha256);
    Ok(())
}

fn named_by_sha256(blob: &Path) -> Option<&str> {
    blob.file_name()?.to_str().filter(|name| is_sha256(name))
}

fn agrees(blob: &Path, sha256: &str) -> bool {
    named_by_sha256(blob).is_none_or(|name| name == sha256)
}

/// hf-hub's progress, told as ours.
struct Meter<'a> {
    what: &'a str,
    started: bool,
    bytes: u64,
    announced: &'a mut u64,
    progress: &'a mut dyn Progress,
}

impl hf_hub::api::Progress for Meter<'_> {
    fn init(&mut self, size: usize, _file: &str) {
        *self.announced = size as u64;
        self.bytes = 0;
        if !self.started {
            self.started = true;
            self.progress.event(Event::Started { what: self.what, bytes: Some(size as u64) });
        }
    }

    fn update(&mut self, size: usize) {
        self.bytes += size as u64;
        self.progress.event(Event::Downloaded { bytes: self.bytes });
    }

    fn finish(&mut self) {}
}

fn unavailable(repo: &str, file: Option<&str>, reason: String) -> Error {
    let (what, argument, use_it) = match file {
        Some(file) => (format!("{repo}:{file}"), format!(" {file}"), format!("FOLDER/{file}")),
        None => (repo.to_owned(), String::new(), "FOLDER".to_owned()),
    };
    Error::Unavailable {
        what,
        reason,
        remedy: format!(
            "check the name and the network (HF_TOKEN for a gated repository, HF_ENDPOINT for a \
             mirror),\nor download it by hand, for example with\n    \
             python3 -m pip install huggingface_hub\n    \
             hf download {repo}{argument} --local-dir FOLDER\nand give its path: --model {use_it}"
        ),
    }
}
