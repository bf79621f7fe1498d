//! Who may ask, and where it is written down: API keys, rates, origins and logs of a run.

use anyhow::Result;
use greenmark::server::{Access, AccessConfig, AccessLog, Audit, KeyRing, Origin};

use crate::args::ServeArgs;
use crate::resolve::api_keys_file;

/// The access rules that flags and configuration make.
pub(super) fn resolve(args: &ServeArgs, config: &AccessConfig) -> Result<Access> {
    let named = args.keys_file.as_deref().or(config.keys_file.as_deref());
    let origins =
        if args.cors_origins.is_empty() { &config.cors_origins } else { &args.cors_origins };
    let origins: Vec<Origin> =
        origins.iter().map(|origin| origin.parse()).collect::<Result<_, greenmark::Error>>()?;
    let access = match (named, api_keys_file(named)) {
        // Without a home folder there is no default file; that is no fault of a service.
        (None, Err(_)) => Access::local(),
        (_, file) => {
            let (file, is_default) = file?;
            // Whoever made keys where they stand by default means them to be needed.
            if is_default && !file.exists()? {
                Access::local()
            } else {
                Access::with_keys(KeyRing::open(file, config.rates())?)
            }
        }
    };
    Ok(access.allow_origins(origins))
}

/// Where flags and configuration send audit lines and the access log.
pub(super) fn audit(args: &ServeArgs, config: &AccessConfig) -> Result<Audit> {
    let audit = match args.audit_log.as_deref().or(config.audit_log.as_deref()) {
        Some(path) => Audit::file(path)?,
        None => Audit::standard_error()?,
    };
    let is_on = args.access_log || config.access_log.unwrap_or_default();
    Ok(audit.access_log(if is_on { AccessLog::On } else { AccessLog::Off })?)
}
