//! The inputs of a detection: named files, the files of folders, standard input, lines of JSON.

use std::fmt;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use greenmark::Error;
use serde_json::Value;

use super::lines::{self, Lines};
use super::walk::{Found, Walk};
use crate::args::DetectArgs;
use crate::resolve::read_input;

/// One text to judge.
pub(crate) enum Input {
    /// A file that was named itself.
    File(PathBuf),
    /// A file of a folder that was named.
    Member(PathBuf),
    /// Standard input.
    Stdin,
    /// A line of a file of JSON lines, as it stands there.
    Line(Line),
    /// The text of such a line.
    Text { label: Label, text: String },
    /// What gives no text, with the reason.
    Broken { label: Label, error: Error },
}

/// A line of JSON and where it stands.
pub(crate) struct Line {
    pub(super) path: Arc<Path>,
    /// From 1.
    pub(super) number: u64,
    /// Of the first byte of the line.
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

/// What an input is called in its record.
#[derive(Clone)]
pub(crate) struct Label {
    pub(super) path: PathBuf,
    /// The line, in a file of JSON lines.
    pub(super) line: Option<u64>,
    /// The field `id` of the line.
    pub(super) id: Option<Value>,
}

impl Label {
    fn of(path: &Path) -> Self {
        Self { path: path.to_path_buf(), line: None, id: None }
    }

    /// The label as a path: `texts.jsonl:7` for a line.
    pub(super) fn place(&self) -> PathBuf {
        match self.line {
            None => self.path.clone(),
            Some(_) => PathBuf::from(self.to_string()),
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)?;
        match self.line {
            None => Ok(()),
            Some(line) => write!(f, ":{line}"),
        }
    }
}

impl Input {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Member(path) => path,
            Self::Line(line) => &line.path,
            Self::Text { label, .. } | Self::Broken { label, .. } => &label.path,
            Self::Stdin => Path::new("-"),
        }
    }

    pub(crate) fn label(&self) -> Label {
        match self {
            Self::Text { label, .. } | Self::Broken { label, .. } => label.clone(),
            Self::Line(line) => Label { line: Some(line.number), ..Label::of(&line.path) },
            Self::File(_) | Self::Member(_) | Self::Stdin => Label::of(self.path()),
        }
    }

    /// About how many bytes of text the input is, without reading it.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::File(path) | Self::Member(path) => path.metadata().map_or(0, |data| data.len()),
            Self::Line(line) => line.bytes.len() as u64,
            Self::Text { text, .. } => text.len() as u64,
            Self::Stdin | Self::Broken { .. } => 0,
        }
    }

    /// Takes the text out of a line of JSON; another input stays as it is.
    pub(crate) fn parsed(self, field: Option<&str>) -> Self {
        match (self, field) {
            (Self::Line(line), Some(field)) => lines::parse(&line, field),
            (other, _) => other,
        }
    }

    /// The bytes of the text.
    pub(crate) fn read(self) -> Result<Vec<u8>, Error> {
        match self {
            Self::File(path) | Self::Member(path) => read_input(&path),
            Self::Stdin => read_input(Path::new("-")),
            Self::Line(line) => Ok(line.bytes),
            Self::Text { text, .. } => Ok(text.into_bytes()),
            Self::Broken { error, .. } => Err(error),
        }
    }
}

/// Refuses to read two things from standard input, of which the second would be empty.
pub(super) fn standard_input_once(args: &DetectArgs) -> Result<(), Error> {
    let is_stdin = |path: &&PathBuf| path.as_os_str() == "-";
    let texts = args.paths.iter().filter(is_stdin).count();
    let silent = usize::from(args.paths.is_empty() && args.ids.is_none());
    let others = [&args.ids, &args.prompt_file].into_iter().flatten().filter(is_stdin).count();
    if texts + silent + others > 1 {
        return Err(Error::parameter(
            "-",
            "twice",
            "standard input once: name a file for the other",
        ));
    }
    Ok(())
}

/// What a run judges. The form of its output depends on what was asked for, not on what a folder
/// holds.
pub(super) enum Work {
    /// Token ids: one report.
    Ids(PathBuf),
    /// One file or standard input: one report.
    One(Input),
    /// Anything else: a record for each.
    Many(Inputs),
}

impl Work {
    /// What the arguments name; standard input when they name nothing.
    pub(super) fn of(args: &DetectArgs) -> Result<Self, Error> {
        if let Some(path) = &args.ids {
            return Ok(Self::Ids(path.clone()));
        }
        let mut named = args.paths.clone();
        if named.is_empty() {
            if std::io::stdin().is_terminal() {
                return Err(Error::parameter(
                    "PATH",
                    "nothing",
                    "a text file, a folder, or a text on standard input",
                ));
            }
            named.push("-".into());
        }
        let is_batch = args.jsonl.is_some() || args.q_values;
        Ok(match &named[..] {
            [path] if !is_batch && !path.is_dir() => Self::One(input(path.clone())),
            _ => Self::Many(Inputs::new(named, args.jsonl.is_some())),
        })
    }
}

fn input(path: PathBuf) -> Input {
    if path.as_os_str() == "-" { Input::Stdin } else { Input::File(path) }
}

/// The inputs that paths name, one after the other: nothing is listed or read before its turn.
pub(crate) struct Inputs {
    named: std::vec::IntoIter<PathBuf>,
    /// The folder that is walked, and whether it gave anything.
    folder: Option<(PathBuf, Walk, bool)>,
    /// The lines that are read.
    lines: Option<Lines>,
    are_json: bool,
}

impl Iterator for Inputs {
    type Item = Input;

    fn next(&mut self) -> Option<Input> {
        loop {
            if let Some(lines) = &mut self.lines {
                match lines.next() {
                    Some(input) => return Some(input),
                    None => self.lines = None,
                }
            }
            let input = self.next_file()?;
            if !self.are_json || matches!(input, Input::Broken { .. }) {
                return Some(input);
            }
            match Lines::open(input.path()) {
                Ok(lines) => self.lines = Some(lines),
                Err(error) => return Some(Input::Broken { label: input.label(), error }),
            }
        }
    }
}

impl Inputs {
    /// The inputs of `named`, whose files are JSON lines or texts.
    pub(crate) fn new(named: Vec<PathBuf>, are_json: bool) -> Self {
        Self { named: named.into_iter(), folder: None, lines: None, are_json }
    }

    fn next_file(&mut self) -> Option<Input> {
        let broken = |path: &Path, problem: String| {
            let remedy = "name a folder with text files; hidden files and sidecars are left out";
            let error = Error::file(path, None, problem, remedy);
            Input::Broken { label: Label::of(path), error }
        };
        if let Some((folder, walk, found)) = &mut self.folder {
            match walk.next() {
                Some(Found::File(path)) => {
                    *found = true;
                    return Some(Input::Member(path));
                }
                Some(Found::Unlisted(path, error)) => {
                    *found = true;
                    return Some(broken(&path, format!("cannot be listed: {error}")));
                }
                None => {
                    let problem = (!*found)
                        .then(|| broken(folder, "the folder holds no text file".to_owned()));
                    self.folder = None;
                    if problem.is_some() {
                        return problem;
                    }
                }
            }
        }
        let path = self.named.next()?;
        if path.is_dir() {
            self.folder = Some((path.clone(), Walk::new(path), false));
            return self.next_file();
        }
        Some(input(path))
    }
}
