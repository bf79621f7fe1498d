//! `wm models`: the table, what the cache holds, and fetching.

use anyhow::Result;
use greenmark::store::{State, Store};
use serde_json::json;

use crate::args::{ModelsArgs, ModelsCommand};
use crate::exit::Exit;
use crate::output;
use crate::resolve::{Bar, resolve_model};

pub(crate) fn run(args: ModelsArgs) -> Result<Exit> {
    match args.command {
        None => list(args.json),
        Some(ModelsCommand::Pull { name, offline: true }) => {
            output::line(&resolve_model(&name, true)?.display().to_string())?;
            Ok(Exit::Success)
        }
        Some(ModelsCommand::Pull { name, offline: false }) => {
            let path = Store::from_env()?.pull(&name, &mut Bar::default())?;
            output::line(&path.display().to_string())?;
            Ok(Exit::Success)
        }
    }
}

fn list(as_json: bool) -> Result<Exit> {
    let store = Store::from_env()?;
    let listed = store.list();
    if as_json {
        let rows: Vec<_> = listed
            .iter()
            .map(|row| {
                json!({
                    "name": row.entry.name,
                    "aliases": row.entry.aliases,
                    "architecture": row.entry.architecture,
                    "file": row.entry.file,
                    "bytes": row.entry.bytes,
                    "sha256": row.entry.sha256,
                    "licence": row.entry.licence,
                    "state": state(row.state),
                    "path": row.path.display().to_string(),
                })
            })
            .collect();
        output::json(&rows)?;
        return Ok(Exit::Success);
    }
    for row in listed {
        let aliases = row.entry.aliases.join(", ");
        output::line(&format!(
            "{} ({aliases})  {}  {:.1} MB  {}  {}\n  {}",
            row.entry.name,
            row.entry.architecture,
            row.entry.bytes as f64 / 1e6,
            row.entry.licence,
            state(row.state),
            row.path.display(),
        ))?;
    }
    Ok(Exit::Success)
}

fn state(state: State) -> &'static str {
    match state {
        State::Absent => "absent",
        State::Present => "present",
        State::Damaged => "damaged",
    }
}
