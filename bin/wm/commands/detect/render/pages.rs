//! `--html`: one page in a file, or a page for each text and an index in a folder.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use greenmark::Error;
use greenmark::detect::Report;
use greenmark::document::page::{self, Page};

use crate::args::DetectArgs;
use crate::keep::Reads;

/// Where pages go.
pub(super) enum Pages {
    /// The file of the one report.
    File(PathBuf),
    /// A folder with any number of them.
    Folder { folder: PathBuf, index: Mutex<Index> },
}

/// The index of a folder, which is complete after every page.
pub(super) struct Index {
    file: File,
    pages: u64,
    /// Where the next row goes.
    end: u64,
}

/// The page of one report.
pub(super) fn render(input: &Path, report: &Report, text: Option<&str>) -> Result<String, Error> {
    page::render(&Page { report, text, name: &heading(input) })
}

const REMEDY: &str = "an existing folder when there are several texts: one page each and \
                      index.html are written into it";

impl Pages {
    /// Finds out where pages go, before anything is judged.
    pub(super) fn open(args: &DetectArgs, several: bool) -> Result<Option<Self>, Error> {
        let Some(path) = &args.html else { return Ok(None) };
        Reads::default()
            .texts(args.paths.iter().chain(&args.ids))
            .files(args.prompt_file.iter().chain([&PathBuf::from(&args.tokenizer.tokenizer)]))
            .mark(&args.mark, &args.key)
            .spare("html", path)?;
        if path.is_dir() {
            let index = Index::create(&path.join("index.html"))?;
            return Ok(Some(Self::Folder { folder: path.clone(), index: Mutex::new(index) }));
        }
        if several || path.as_os_str() == "-" {
            let allowed = if several { REMEDY } else { "the name of a file" };
            return Err(Error::parameter("html", path.display(), allowed));
        }
        Ok(Some(Self::File(path.clone())))
    }

    /// Writes a page that [`render`] made.
    pub(super) fn write(&self, input: &Path, report: &Report, page: &str) -> Result<(), Error> {
        let write =
            |path: &Path| fs::write(path, page).map_err(|source| Error::io("write", path, source));
        match self {
            Self::File(path) => write(path),
            Self::Folder { folder, index } => {
                // A panic of another thread leaves the index as it was after a whole row.
                let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
                let name = index.next_name(input);
                write(&folder.join(&name))?;
                let row = page::index_row(&heading(input), &name, report);
                index
                    .add(&row)
                    .map_err(|source| Error::io("write", folder.join("index.html"), source))
            }
        }
    }
}

impl Index {
    fn create(path: &Path) -> Result<Self, Error> {
        let error = |source| Error::io("write", path, source);
        let mut file = File::create(path).map_err(error)?;
        let head = page::index_head();
        file.write_all(head.as_bytes()).map_err(error)?;
        file.write_all(page::INDEX_FOOT.as_bytes()).map_err(error)?;
        Ok(Self { file, pages: 0, end: head.len() as u64 })
    }

    /// `0001-name.txt.html`: numbered, so that equal names of two folders stay apart.
    fn next_name(&mut self, input: &Path) -> String {
        /// Characters of the input's own name.
        const LENGTH: usize = 60;
        self.pages += 1;
        let name = input.file_name().unwrap_or_default().to_string_lossy();
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        let name: String = name.chars().take(LENGTH).map(plain).collect();
        let name = if name.trim_matches(['-', '.']).is_empty() { "text" } else { &name };
        format!("{:04}-{name}.html", self.pages)
    }

    /// Adds a row and closes the page again behind it.
    fn add(&mut self, row: &str) -> std::io::Result<()> {
        use std::io::{Seek, SeekFrom};
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(row.as_bytes())?;
        self.file.write_all(page::INDEX_FOOT.as_bytes())?;
        self.end += row.len() as u64;
        Ok(())
    }
}

fn heading(input: &Path) -> String {
    if input.as_os_str() == "-" { "standard input".to_owned() } else { input.display().to_string() }
}
