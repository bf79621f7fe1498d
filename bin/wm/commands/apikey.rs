//! `wm apikey`: the keys of a service's callers.

use anyhow::{Context, Result};
use greenmark::Error;
use greenmark::server::{KeyFile, KeyStatus, Moment, Role, StoredKey};
use secrecy::ExposeSecret;
use serde::Serialize;

use crate::args::{ApiKeyAddArgs, ApiKeyCommand, RoleName};
use crate::exit::Exit;
use crate::output::{self, note};
use crate::resolve::api_keys_file;

pub(crate) fn run(command: &ApiKeyCommand) -> Result<Exit> {
    match command {
        ApiKeyCommand::Add(args) => add(args),
        ApiKeyCommand::List { file, json } => {
            let (file, _) = api_keys_file(file.keys_file.as_deref())?;
            let keys = if file.path().exists() { file.read()? } else { Vec::new() };
            list(&file, &keys, *json)
        }
        ApiKeyCommand::Revoke { name, file } => {
            let (file, _) = api_keys_file(file.keys_file.as_deref())?;
            let when = file.revoke(name)?;
            note!("the API key {name} in {} is revoked since {when}", file.path().display());
            Ok(Exit::Success)
        }
    }
}

fn add(args: &ApiKeyAddArgs) -> Result<Exit> {
    let expires = args.expires.as_deref().map(str::parse::<Moment>).transpose()?;
    let (file, is_default) = api_keys_file(args.file.keys_file.as_deref())?;
    if let (true, Some(folder)) = (is_default, file.path().parent()) {
        std::fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))?;
    }
    let (name, role) = (&args.name, role(args.role));
    let key = file.add(name, role, expires)?;
    note!("{name} ({role}) stands in {}; its key is shown only now", file.path().display());
    output::line(key.text().expose_secret()).with_context(|| {
        format!("the key {name} was stored and not shown; run: wm apikey revoke {name}")
    })?;
    Ok(Exit::Success)
}

fn role(name: RoleName) -> Role {
    match name {
        RoleName::Public => Role::Public,
        RoleName::Reviewer => Role::Reviewer,
        RoleName::Operator => Role::Operator,
    }
}

/// What a list shows of a key.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    role: Role,
    status: KeyStatus,
    created: Moment,
    expires: Option<Moment>,
    revoked: Option<Moment>,
}

fn list(file: &KeyFile, keys: &[StoredKey], as_json: bool) -> Result<Exit> {
    let now = Moment::now();
    let rows: Vec<Row<'_>> = keys
        .iter()
        .map(|key| Row {
            name: &key.name,
            role: key.role,
            status: key.status(now),
            created: key.created,
            expires: key.expires,
            revoked: key.revoked,
        })
        .collect();
    if as_json {
        output::json(&rows)?;
        return Ok(Exit::Success);
    }
    if rows.is_empty() {
        note!("no API keys in {}", file.path().display());
    }
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or_default();
    for row in rows {
        let status = match (row.status, row.revoked, row.expires) {
            (KeyStatus::Revoked, Some(when), _) => format!("revoked {when}"),
            (KeyStatus::Expired, _, Some(when)) => format!("expired {when}"),
            (_, _, Some(when)) => format!("active until {when}"),
            _ => "active".to_owned(),
        };
        let Row { name, role, created, .. } = row;
        let role = role.to_string();
        output::line(&format!("{name:width$}  {role:8}  added {created}  {status}"))?;
    }
    Ok(Exit::Success)
}
