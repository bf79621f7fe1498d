//! `wm extract`: the text of a file of any supported format.

use std::time::Duration;

use anyhow::{Context, Result};
use greenmark::Error;
use greenmark::document::visible::one_line;
use greenmark::extract::{Answer, Extracted, Format, Isolation, Limits, isolated, text};

use crate::args::ExtractArgs;
use crate::exit::{self, Exit};
use crate::output::{self, note};
use crate::resolve::read_input_up_to;

pub(crate) fn run(args: &ExtractArgs) -> Result<Exit> {
    let limits = limits(args);
    if args.in_process {
        contain(args.max_seconds)?;
    }
    let bytes = read_input_up_to(&args.file, limits.file_bytes)?;
    let format = format(args, &bytes)?;
    let read = if args.in_process {
        text(format, &bytes, &limits)
    } else {
        read_isolated(format, &bytes, limits, args.max_seconds)?
    };
    show(args, read)
}

fn limits(args: &ExtractArgs) -> Limits {
    let default = Limits::default();
    Limits {
        file_bytes: args.max_file.unwrap_or(default.file_bytes),
        unpacked_bytes: args.max_unpacked.unwrap_or(default.unpacked_bytes),
        text_bytes: args.max_text.unwrap_or(default.text_bytes),
    }
}

fn format(args: &ExtractArgs, bytes: &[u8]) -> Result<Format, Error> {
    match &args.format {
        Some(name) => Format::parse(name)?.check("--format", bytes),
        None if args.file.as_os_str() == "-" => {
            let allowed = format!("with --format: one of {}", Format::supported());
            Err(Error::parameter("-", "without --format", allowed))
        }
        None => Format::detect(Some(&args.file), None, bytes),
    }
}

fn read_isolated(
    format: Format,
    bytes: &[u8],
    limits: Limits,
    seconds: u64,
) -> Result<greenmark::Result<Extracted>> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let isolation = Isolation { program, time: Duration::from_secs(seconds), limits };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot wait for a child process")?;
    Ok(runtime.block_on(isolated(format, bytes, &isolation)))
}

fn show(args: &ExtractArgs, read: greenmark::Result<Extracted>) -> Result<Exit> {
    let named = |error: Error| -> anyhow::Error {
        match error {
            Error::Document { offset, problem, remedy, .. } => {
                Error::file(&args.file, offset, problem, remedy).into()
            }
            other => other.into(),
        }
    };
    if args.json
        && let Some(answer) = Answer::of(&read)
    {
        output::json(&answer)?;
        return Ok(read.map_or_else(|error| exit::report(&named(error)), |_| Exit::Success));
    }
    let extracted = read.map_err(named)?;
    for said in &extracted.notes {
        note!("{}: {said}", one_line(&args.file.display().to_string()));
    }
    output::write(&extracted.text)?;
    Ok(Exit::Success)
}

/// Puts this process under limits, so that what a file does to its reader ends with it.
#[cfg(unix)]
fn contain(seconds: u64) -> Result<()> {
    use greenmark::extract::READER_MEMORY_BYTES;
    use rlimit::Resource;

    // A crash of a reader is an answer, not news for standard error.
    std::panic::set_hook(Box::new(|_| {}));
    for (resource, limit) in
        [(Resource::AS, READER_MEMORY_BYTES), (Resource::CPU, seconds), (Resource::CORE, 0)]
    {
        // A limit that is lower already stays.
        let (_, hard) = resource.get().context("cannot read the limits of this process")?;
        let limit = limit.min(hard);
        resource.set(limit, limit).context("cannot limit this process")?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn contain(_seconds: u64) -> Result<()> {
    std::panic::set_hook(Box::new(|_| {}));
    Ok(())
}
