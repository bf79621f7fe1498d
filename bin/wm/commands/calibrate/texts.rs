//! The operator's texts as passages: files, folders, JSON lines.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Result;
use greenmark::Error;
use greenmark::detect::calibration::{Corpus, Passage};
use greenmark::document::passages;
use greenmark::text::Tokenizer;
use rayon::prelude::*;
use serde_json::Value;

use crate::args::CalibrateArgs;
use crate::output::note;

/// Texts that are encoded together; the memory beside the passages is theirs.
const BATCH: usize = 64;
/// Inputs without text that are named on standard error.
const NAMED: usize = 5;

/// What was read.
pub(super) struct Texts {
    pub(super) corpus: Corpus,
    /// Inputs that hold no text, and why.
    pub(super) left_out: Vec<String>,
}

/// Reads all texts and cuts them into passages of `longest` tokens.
pub(super) fn read(
    args: &CalibrateArgs,
    tokenizer: &Tokenizer,
    shortest: usize,
    longest: usize,
) -> Result<Texts> {
    let mut files = Vec::new();
    for path in &args.paths {
        if path.is_dir() { walk(path, &mut files)? } else { files.push(path.clone()) }
    }
    let mut reader = Reader {
        tokenizer,
        shortest,
        longest,
        bar: super::bar(files.len() as u64, "reading {wide_bar} {pos}/{len}"),
        waiting: Vec::new(),
        names: Vec::new(),
        passages: Vec::new(),
        left_out: Vec::new(),
    };
    for path in &files {
        match &args.jsonl {
            Some(field) => reader.json_lines(path, field)?,
            None => reader.file(path)?,
        }
        reader.bar.inc(1);
    }
    reader.finish()
}

/// Every file below `folder` without hidden files and sidecars; links to folders are not followed.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let failed = |source| Error::io("list", folder, source);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        if name.starts_with('.') || name.ends_with(".wm.json") {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&path, files)?;
        } else if path.metadata().is_ok_and(|target| target.is_file()) {
            files.push(path);
        }
    }
    Ok(())
}

struct Reader<'a> {
    tokenizer: &'a Tokenizer,
    shortest: usize,
    longest: usize,
    bar: indicatif::ProgressBar,
    /// Texts that are not encoded yet.
    waiting: Vec<(String, String)>,
    names: Vec<String>,
    passages: Vec<Passage>,
    left_out: Vec<String>,
}

impl Reader<'_> {
    fn file(&mut self, path: &Path) -> Result<(), Error> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|source| Error::io("read", path, source))?;
        match String::from_utf8(bytes) {
            Ok(text) => self.text(name, text),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                self.leave_out(format!("{name}: not UTF-8 at byte {at}"));
                Ok(())
            }
        }
    }

    fn json_lines(&mut self, path: &Path, field: &str) -> Result<(), Error> {
        let failed = |source| Error::io("read", path, source);
        let lines = BufReader::new(File::open(path).map_err(failed)?);
        for (number, line) in (1u64..).zip(lines.split(b'\n')) {
            let line = line.map_err(failed)?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let place = format!("{}:{number}", path.display());
            let record: Option<Value> = serde_json::from_slice(&line).ok();
            let text = record.as_ref().and_then(|record| record.get(field)).and_then(Value::as_str);
            match (&record, text) {
                (_, Some(text)) => self.text(place, text.to_owned())?,
                (None, None) => self.leave_out(format!("{place}: not JSON")),
                (Some(_), None) => self.leave_out(format!("{place}: no text in \"{field}\"")),
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, what: String) {
        if self.left_out.len() < NAMED {
            self.bar.suspend(|| note!("left out {what}"));
        }
        self.left_out.push(what);
    }

    fn text(&mut self, name: String, text: String) -> Result<(), Error> {
        self.waiting.push((name, text));
        if self.waiting.len() >= BATCH { self.encode() } else { Ok(()) }
    }

    fn encode(&mut self) -> Result<(), Error> {
        let first = self.names.len();
        let cut = |(index, (_, text)): (usize, &(String, String))| {
            let document = u32::try_from(first + index).map_err(|_| {
                Error::parameter("PATH", "more texts", "at most 4,294,967,296 texts")
            })?;
            passages(self.tokenizer, text, document, self.shortest, self.longest)
        };
        let found = self.waiting.par_iter().enumerate().map(cut).collect::<Result<Vec<_>, _>>()?;
        self.passages.extend(found.into_iter().flatten());
        self.names.extend(self.waiting.drain(..).map(|(name, _)| name));
        Ok(())
    }

    fn finish(mut self) -> Result<Texts> {
        self.encode()?;
        self.bar.finish_and_clear();
        if self.left_out.len() > NAMED {
            note!("left out {} inputs in all; --json lists them", self.left_out.len());
        }
        if self.passages.is_empty() {
            let allowed = format!("texts of at least {} tokens", self.shortest);
            return Err(Error::parameter("PATH", "no passage", allowed).into());
        }
        let corpus = Corpus::new(&self.names, self.passages);
        Ok(Texts { corpus, left_out: self.left_out })
    }
}
