//! `wm doctor`: whether this installation works, one line for each thing looked at.
//!
//! Nothing is fetched and nothing is changed; a folder is tried with a file that is gone at once.
//! A key is read to see that it is one, and only its fingerprint is shown.

mod check;
mod folders;
mod keys;
mod model;
mod self_test;

use anyhow::Result;
use greenmark::document::visible::one_line;
use greenmark::store::Store;
use serde::Serialize;
use serde_json::Value;

use crate::args::DoctorArgs;
use crate::commands::engine;
use crate::exit::Exit;
use crate::output;

pub(crate) use check::{Check, Status};

/// What the engine says of itself; nothing in a build without it.
#[derive(Default)]
pub(crate) struct EngineState {
    pub(crate) checks: Vec<Check>,
    /// The report on CUDA devices.
    pub(crate) devices: Option<Value>,
}

#[derive(Serialize)]
struct Doctor {
    checks: Vec<Check>,
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<Value>,
}

pub(super) fn run(args: &DoctorArgs) -> Result<Exit> {
    let engine = engine::doctor();
    let mut checks = vec![build()];
    checks.extend(engine.checks);
    let store = Store::from_env();
    checks.push(match &store {
        Ok(store) => folders::cache(store),
        Err(error) => Check::problem_of("cache", error),
    });
    checks.push(folders::configuration());
    checks.push(keys::default_key());
    checks.extend(keys::api_keys());
    if let Ok(store) = &store {
        checks.push(model::tokenizer(store, &args.model)?);
    }
    checks.push(self_test::prf());
    checks.push(self_test::detection());

    let problems = checks.iter().filter(|check| check.status == Status::Problem).count();
    let doctor = Doctor { checks, devices: engine.devices };
    if args.json {
        output::json(&doctor)?;
    } else {
        print(&doctor.checks, problems)?;
    }
    Ok(if problems == 0 { Exit::Success } else { Exit::Failure })
}

/// Version and features.
fn build() -> Check {
    let features = [
        ("cli", true),
        ("engine", engine::IS_PRESENT),
        ("hub", cfg!(feature = "hub")),
        ("cuda", cfg!(feature = "cuda")),
    ];
    let present: Vec<&str> =
        features.iter().filter(|(_, is_present)| *is_present).map(|(name, _)| *name).collect();
    let version = env!("CARGO_PKG_VERSION");
    Check::ok("build", format!("wm {version}, features {}", present.join(", ")))
}

fn print(checks: &[Check], problems: usize) -> Result<()> {
    for check in checks {
        // Paths and the messages of files may hold anything.
        let text = one_line(&check.text);
        output::line(&format!("{:<7}  {:<13}  {text}", check.status.name(), check.name))?;
        for line in check.remedy.iter().flat_map(|remedy| remedy.lines()) {
            output::line(&format!("{:<7}  {:<13}  {}", "", "", one_line(line)))?;
        }
    }
    output::line(&match problems {
        0 => "no problem".to_owned(),
        1 => "1 problem".to_owned(),
        more => format!("{more} problems"),
    })
}
