//! The settings of a run: flags over environment over file over built-in values.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use greenmark::Error;
use greenmark::extract::Isolation;
use greenmark::prf::Key;
use greenmark::server::{Config, GenerationSettings, Limits, ProfileConfig, Setup, Size, Standing};
use greenmark::signature::SigningKey;

use super::access;
use super::profiles::{self, Source};
use crate::args::{DeviceArgs, ServeArgs};
use crate::commands::engine::{self, ServedModel};
use crate::resolve::{KeySource, Placing};

/// The port when nothing is said.
const DEFAULT_PORT: u16 = 8080;

/// The name of the profile that flags alone make.
const DEFAULT_NAME: &str = "default";

/// Everything that is decided before the service starts.
pub(super) struct Settings {
    pub(super) host: IpAddr,
    pub(super) port: u16,
    pub(super) setup: Setup,
    pub(super) profiles: Vec<Source>,
    /// None in a detection service.
    pub(super) model: Option<ServedModel>,
}

impl Settings {
    pub(super) fn resolve(args: &ServeArgs) -> Result<Self> {
        let config = args.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
        let host = args.host.as_deref().or(config.host.as_deref()).unwrap_or("127.0.0.1");
        let mut wanted = config.limits;
        if let Some(size) = &args.max_body {
            wanted.max_body = Some(size.parse::<Size>()?);
        }
        let host = address(host)?;
        let access = access::resolve(args, &config.access)?;
        access.check_address(host)?;
        let generates = engine::IS_PRESENT && !args.no_engine;
        // A fresh key can detect nothing; a service that marks texts can start with one.
        let key = if generates { KeySource::CreateDefault } else { KeySource::Existing };
        let mut generation = config.generation;
        if let Some(policy) = &args.watermark_policy {
            generation.policy = policy.parse()?;
        }
        generation.threads = args.threads.or(generation.threads);
        generation.check()?;
        let placing = Placing::resolve(&device(args, &generation))?;
        let wanted_profiles = wanted_profiles(args, config.profiles)?;
        let spec = args.model.clone().or(config.model.spec).unwrap_or_else(|| "default".to_owned());
        // The flag may be a model's name, which says nothing about a file.
        let tokenizer = args
            .tokenizer
            .as_ref()
            .map(PathBuf::from)
            .filter(|file| file.exists())
            .or(config.model.tokenizer);
        let model = generates
            .then(|| ServedModel::new(spec, tokenizer, args.offline, placing, generation))
            .transpose()?;
        Ok(Self {
            model,
            host,
            port: args.port.or(config.port).unwrap_or(DEFAULT_PORT),
            setup: Setup {
                limits: wanted.over(&Limits::default())?,
                access,
                audit: access::audit(args, &config.access)?,
                signer: signer(args.signing_key.as_deref().or(config.signing_key.as_deref()))?,
                reader: Isolation::new(std::env::current_exe().context("cannot find wm itself")?),
            },
            profiles: profiles::sources(&wanted_profiles, key, args.offline)?,
        })
    }
}

/// Where the model computes: what flags and environment say, over the file.
fn device(args: &ServeArgs, settings: &GenerationSettings) -> DeviceArgs {
    let over = |flag: &Option<String>, set: &Option<String>| flag.clone().or_else(|| set.clone());
    DeviceArgs {
        device: over(&args.device, &settings.device),
        dtype: over(&args.dtype, &settings.dtype),
        sampler: over(&args.sampler, &settings.sampler),
        deterministic: over(&args.deterministic, &settings.deterministic),
    }
}

/// The key that signs reports.
fn signer(file: Option<&Path>) -> Result<Option<SigningKey>, Error> {
    file.map(|file| Key::read(file).map(|key| SigningKey::from_key(&key))).transpose()
}

fn address(host: &str) -> Result<IpAddr, Error> {
    match host {
        "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
        other => other.parse().map_err(|_| {
            Error::parameter("host", other, "an IP address or localhost, for example 127.0.0.1")
        }),
    }
}

/// The profiles of the file, or the one that the flags make.
fn wanted_profiles(
    args: &ServeArgs,
    configured: Vec<ProfileConfig>,
) -> Result<Vec<ProfileConfig>, Error> {
    let given = [
        ("--profile", args.profile.is_some()),
        ("--key-file", args.key_file.is_some()),
        ("--tokenizer", args.tokenizer.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) if !configured.is_empty() => Err(Error::parameter(
            "profiles",
            format!("{flag} beside the profiles of the configuration file"),
            "one of the two: the flags are for a service of one profile",
        )),
        None if !configured.is_empty() => Ok(configured),
        _ => Ok(vec![ProfileConfig {
            name: DEFAULT_NAME.to_owned(),
            profile: args.profile.clone(),
            key_file: args.key_file.clone(),
            tokenizer: args.tokenizer.clone(),
            standing: Standing::Active,
        }]),
    }
}
