//! The configuration file of the service, as written. Unknown fields are refused.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::access::AccessConfig;
use super::generation::GenerationSettings;
use super::limits::Limits;
use super::profiles::Standing;
use crate::error::{Error, Result};

/// What a configuration file may say. Every field may be left out; paths are relative to the file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The address to listen on.
    pub host: Option<String>,
    /// The port.
    pub port: Option<u16>,
    /// The limits that differ from the built-in ones.
    pub limits: LimitsConfig,
    /// The model that texts are generated with; none: the default one.
    pub model: ModelConfig,
    /// The policy and the room of generation.
    pub generation: GenerationSettings,
    /// A key file whose key signs every report.
    pub signing_key: Option<PathBuf>,
    /// Who may ask, how often, and where it is written down.
    pub access: AccessConfig,
    /// The profiles, the default one first.
    pub profiles: Vec<ProfileConfig>,
}

/// The model of generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// A model name, a GGUF file, a safetensors folder, org/repo or org/repo:file.
    pub spec: Option<String>,
    /// A tokenizer.json, when the model's own is missing or cannot be read.
    pub tokenizer: Option<PathBuf>,
}

/// One profile.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileConfig {
    /// The name that requests use.
    pub name: String,
    /// The profile (JSON); the default mark when left out.
    #[serde(default)]
    pub profile: Option<PathBuf>,
    /// The key file; the default key of this user when left out.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// The tokenizer; the default one when left out.
    #[serde(default)]
    pub tokenizer: Option<String>,
    /// `active` or `retired`.
    #[serde(default)]
    pub standing: Standing,
}

/// Limits, in the units of their names; see [`Limits`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "`Limits` documents them")]
pub struct LimitsConfig {
    pub max_body: Option<Size>,
    pub bodies_in_memory: Option<Size>,
    pub connections: Option<usize>,
    pub head_seconds: Option<u64>,
    pub body_seconds: Option<u64>,
    pub reply_seconds: Option<u64>,
    pub write_seconds: Option<u64>,
    pub shutdown_seconds: Option<u64>,
    pub workers: Option<usize>,
    pub waiting: Option<usize>,
    pub inputs: Option<usize>,
    pub entropy_tokens: Option<usize>,
}

impl Config {
    /// Reads a configuration file (TOML).
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::File`] naming line, column and field.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|source| Error::io("read", path, source))?;
        let remedy = "docs/serve.md describes the file";
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::file(path, None, "the configuration is not UTF-8", remedy))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut config: Self = toml::from_str(text).map_err(|error| {
            Error::file(path, None, format!("not a configuration: {error}"), remedy)
        })?;
        let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        for file in config.access.files().chain(&mut config.signing_key) {
            *file = folder.join(&*file);
        }
        for profile in &mut config.profiles {
            for file in profile.profile.iter_mut().chain(&mut profile.key_file) {
                *file = folder.join(&*file);
            }
        }
        if let Some(file) = &mut config.model.tokenizer {
            *file = folder.join(&*file);
        }
        Ok(config)
    }
}

impl LimitsConfig {
    /// The limits, checked.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a limit of 0 that would stop everything.
    pub fn over(&self, base: &Limits) -> Result<Limits> {
        use std::time::Duration;
        let number = |name, value: Option<usize>, base| match value {
            Some(0) => Err(Error::parameter(name, 0, "at least 1")),
            other => Ok(other.unwrap_or(base)),
        };
        let seconds = |name, value: Option<u64>, base| match value {
            Some(0) => Err(Error::parameter(name, 0, "at least 1")),
            other => Ok(other.map_or(base, Duration::from_secs)),
        };
        let size = |value: Option<Size>| value.map(|size| size.0);
        Ok(Limits {
            max_body: number("max_body", size(self.max_body), base.max_body)?,
            bodies_in_memory: number(
                "bodies_in_memory",
                size(self.bodies_in_memory),
                base.bodies_in_memory,
            )?,
            connections: number("connections", self.connections, base.connections)?,
            head_time: seconds("head_seconds", self.head_seconds, base.head_time)?,
            body_time: seconds("body_seconds", self.body_seconds, base.body_time)?,
            reply_time: seconds("reply_seconds", self.reply_seconds, base.reply_time)?,
            write_time: seconds("write_seconds", self.write_seconds, base.write_time)?,
            shutdown_time: seconds("shutdown_seconds", self.shutdown_seconds, base.shutdown_time)?,
            workers: number("workers", self.workers, base.workers)?,
            waiting: number("waiting", self.waiting, base.waiting)?,
            inputs: match number("inputs", self.inputs, base.inputs)? {
                inputs if inputs <= Limits::MOST_INPUTS => inputs,
                inputs => {
                    let allowed = format!("at most {}", Limits::MOST_INPUTS);
                    return Err(Error::parameter("inputs", inputs, allowed));
                }
            },
            entropy_tokens: number("entropy_tokens", self.entropy_tokens, base.entropy_tokens)?,
        })
    }
}

/// A number of bytes: `10000000`, `10MB` (10^6 each) or `10MiB` (2^20 each).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawSize")]
pub struct Size(pub usize);

#[derive(Deserialize)]
#[serde(untagged)]
enum RawSize {
    Bytes(usize),
    Text(String),
}

impl TryFrom<RawSize> for Size {
    type Error = Error;

    fn try_from(raw: RawSize) -> Result<Self> {
        match raw {
            RawSize::Bytes(bytes) => Ok(Self(bytes)),
            RawSize::Text(text) => text.parse(),
        }
    }
}

impl std::str::FromStr for Size {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let factor = match &text[digits.len()..] {
            "" | "B" => Some(1),
            "kB" | "KB" => Some(1000),
            "MB" => Some(1_000_000),
            "GB" => Some(1_000_000_000),
            "KiB" => Some(1 << 10),
            "MiB" => Some(1 << 20),
            "GiB" => Some(1 << 30),
            _ => None,
        };
        let number: Option<usize> = digits.trim_end().parse().ok();
        factor
            .zip(number)
            .and_then(|(factor, number)| number.checked_mul(factor))
            .map(Self)
            .ok_or_else(|| {
                Error::parameter(
                    "size",
                    text.escape_debug(),
                    "bytes, for example 10000000, 10MB or 10MiB",
                )
            })
    }
}
