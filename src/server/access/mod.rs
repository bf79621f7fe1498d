//! Who may do what: API keys, roles, rates, and which web pages may ask.
//!
//! A key comes in `Authorization: Bearer KEY` and nowhere else: an address with a key in it would
//! stand in logs and histories. Everything here is decided from the head of a request, before its
//! body is read.

mod config;
mod file;
mod key;
mod moment;
mod origin;
mod rate;
mod ring;
mod role;

pub use config::AccessConfig;
pub(super) use file::private;
pub use file::{KeyFile, KeyStatus, StoredKey};
pub use key::ApiKey;
pub use moment::Moment;
pub use origin::Origin;
pub use rate::Rates;
pub use ring::KeyRing;
pub(super) use ring::inode;
pub use role::{Caller, Role};

use std::net::IpAddr;
use std::num::NonZeroU32;

use axum::http::{HeaderMap, StatusCode, header};

use super::error::{ApiError, ErrorType};
use crate::error::{Error, Result};
use rate::Failures;

/// The code of the reply to an address that shows no valid key again and again.
pub(super) const TOO_MANY_FAILURES: &str = "too_many_failures";

/// The code of the reply to a request without a key.
const MISSING: &str = "missing_api_key";

/// The access rules of a service.
#[derive(Debug, Default)]
pub struct Access {
    keys: Option<KeyRing>,
    origins: Vec<Origin>,
    failures: Failures,
}

impl Access {
    /// Everybody who reaches the service is its operator; for a loopback address only.
    #[must_use]
    pub fn local() -> Self {
        Self::default()
    }

    /// A caller needs one of these keys.
    #[must_use]
    pub fn with_keys(keys: KeyRing) -> Self {
        Self { keys: Some(keys), ..Self::default() }
    }

    /// Pages of these origins may use the service from a browser.
    #[must_use]
    pub fn allow_origins(mut self, origins: Vec<Origin>) -> Self {
        self.origins = origins;
        self
    }

    /// The origins whose pages may use the service.
    #[must_use]
    pub fn origins(&self) -> &[Origin] {
        &self.origins
    }

    /// Whether callers need a key.
    #[must_use]
    pub fn needs_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Checks that a service with this access may listen on `address`.
    ///
    /// # Errors
    /// [`Error::Parameter`] without keys, unless it is a loopback address.
    pub fn check_address(&self, address: IpAddr) -> Result<()> {
        if self.needs_keys() || address.to_canonical().is_loopback() {
            return Ok(());
        }
        let allowed = "without API keys only this machine's own addresses, such as 127.0.0.1: \
                       make a key with `wm apikey add NAME --role reviewer`";
        Err(Error::parameter("host", address, allowed))
    }

    /// Who sends a request with these headers from this address, if it may be sent now.
    ///
    /// # Errors
    /// 401 without a valid key, 429 when the key or the address has had too many tries; without
    /// keys 421 and 403 for requests that pages of other origins made a browser send.
    pub fn caller(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Caller, ApiError> {
        let Some(keys) = &self.keys else {
            origin::refuse_foreign_pages(headers, &self.origins)?;
            return Ok(Caller { name: "local".to_owned(), role: Role::Operator });
        };
        let entry = authenticate(keys, headers).map_err(|error| {
            // Behind a proxy all callers share one address. So a valid key always passes, and a
            // request without one, as a page sends before it asks for the key, is no guess.
            match peer
                .filter(|_| error.code() != MISSING)
                .and_then(|peer| self.failures.count(peer))
            {
                Some(seconds) => ApiError::busy(
                    TOO_MANY_FAILURES,
                    "too many requests with a wrong API key from this address",
                    seconds,
                ),
                None => error,
            }
        })?;
        if let Some(rate) = &entry.rate {
            rate.take(NonZeroU32::MIN)?;
        }
        Ok(Caller { name: entry.stored.name, role: entry.stored.role })
    }

    /// Charges a `public` key with the texts of a request beyond the first: a list of texts tells
    /// as much about the mark as the same texts one by one. `param` names the list.
    ///
    /// # Errors
    /// 429 when the key has to wait, 400 for more texts than it may ask for in a minute.
    pub fn charge(
        &self,
        caller: &Caller,
        param: &'static str,
        texts: usize,
    ) -> Result<(), ApiError> {
        let further = u32::try_from(texts.saturating_sub(1)).unwrap_or(u32::MAX);
        let (Role::Public, Some(further)) = (caller.role, NonZeroU32::new(further)) else {
            return Ok(());
        };
        let entry = self.keys.as_ref().and_then(|keys| keys.named(&caller.name));
        match entry.and_then(|entry| entry.rate) {
            Some(rate) if rate.holds(further) => rate.take(further),
            Some(rate) => Err(ApiError::invalid(
                param,
                format!("{texts} texts; this key may ask for {} a minute", rate.a_minute()),
            )),
            None => Ok(()),
        }
    }
}

fn authenticate(keys: &KeyRing, headers: &HeaderMap) -> Result<ring::Entry, ApiError> {
    let refused = |code, message: String| {
        ApiError::new(StatusCode::UNAUTHORIZED, ErrorType::Authentication, code, message)
    };
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (given.next(), given.next()) else {
        return Err(refused(
            MISSING,
            "send one API key in the header `Authorization: Bearer KEY`; it is read nowhere else"
                .to_owned(),
        ));
    };
    // The text of the header is a secret: no message repeats any of it.
    let text = value.to_str().unwrap_or_default();
    let (scheme, key) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        let message = "the Authorization header must be `Bearer KEY`";
        return Err(refused("invalid_authorization", message.to_owned()));
    }
    let Some(key) = ApiKey::parse(key.trim()) else {
        let message = format!("this is no whole API key of this service, which is {}", key::FORM);
        return Err(refused("invalid_api_key", message));
    };
    let Some(entry) = keys.find(&key) else {
        return Err(refused("invalid_api_key", "this API key is not known".to_owned()));
    };
    match entry.stored.status(Moment::now()) {
        KeyStatus::Active => Ok(entry),
        KeyStatus::Expired => {
            Err(refused("expired_api_key", "the time of this API key is over".to_owned()))
        }
        KeyStatus::Revoked => {
            Err(refused("revoked_api_key", "this API key was revoked".to_owned()))
        }
    }
}
