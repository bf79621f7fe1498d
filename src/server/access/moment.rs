//! A moment of UTC in whole seconds, as RFC 3339 writes it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A moment, for example `2026-11-30T10:00:00Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(SystemTime);

impl Moment {
    /// The current second.
    #[must_use]
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(UNIX_EPOCH + Duration::from_secs(since.as_secs()))
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", humantime::format_rfc3339_seconds(self.0))
    }
}

impl std::str::FromStr for Moment {
    type Err = Error;

    /// Reads a date (its first second) or a date and a time, in UTC.
    fn from_str(text: &str) -> Result<Self> {
        let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
        humantime::parse_rfc3339(&whole).map(Self).map_err(|_| {
            let allowed = "a date such as 2027-01-31, or 2027-01-31T18:00:00Z, in UTC";
            Error::parameter("date", text.escape_debug(), allowed)
        })
    }
}

impl Serialize for Moment {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
