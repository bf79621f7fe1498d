//! The section `[access]` of the configuration file.

use std::path::PathBuf;

use serde::Deserialize;

use super::rate::Rates;

/// Who may ask, how often, and where it is written down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AccessConfig {
    /// The file of API keys that `wm apikey` writes.
    pub keys_file: Option<PathBuf>,
    /// Origins of web pages that may use the service from a browser.
    pub cors_origins: Vec<String>,
    /// The file for audit lines; standard error when left out.
    pub audit_log: Option<PathBuf>,
    /// Whether every request gets a line on standard error.
    pub access_log: Option<bool>,
    /// Requests a minute of a `public` key; 0 is no limit.
    pub public_rate: Option<u32>,
    /// Requests a minute of a `reviewer` key; 0 is no limit.
    pub reviewer_rate: Option<u32>,
    /// Requests a minute of an `operator` key; 0 is no limit.
    pub operator_rate: Option<u32>,
}

impl AccessConfig {
    /// The rates, with built-in ones where nothing is said.
    #[must_use]
    pub fn rates(&self) -> Rates {
        let base = Rates::default();
        Rates {
            public: self.public_rate.unwrap_or(base.public),
            reviewer: self.reviewer_rate.unwrap_or(base.reviewer),
            operator: self.operator_rate.unwrap_or(base.operator),
        }
    }

    /// The files that the section names, for paths relative to the configuration.
    pub(in crate::server) fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.keys_file.iter_mut().chain(&mut self.audit_log)
    }
}
