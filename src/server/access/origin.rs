//! Which web pages may ask: origins that were listed, and for a service without keys the pages of
//! this machine only.
//!
//! A service without keys trusts whoever reaches its loopback address, and a browser reaches it on
//! behalf of any page. Two things keep foreign pages out. A page whose name was made to point at
//! 127.0.0.1 (DNS rebinding) still sends its own name in `Host`, which must be one of this
//! machine. A page that posts across origins says so in `Origin`, also for forms and other bodies
//! that need no preflight.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::error::{Error, Result};
use crate::server::error::{ApiError, ErrorType};

/// The origin of a web page, `scheme://host[:port]` as browsers write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(HeaderValue);

impl Origin {
    /// The value that browsers send.
    #[must_use]
    pub fn value(&self) -> &HeaderValue {
        &self.0
    }
}

impl std::str::FromStr for Origin {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            let allowed = "exact origins as browsers send them, for example \
                           https://desk.example or http://localhost:3000: lower case, no `*`, \
                           no path, no default port";
            Error::parameter("cors_origins", text.escape_debug(), allowed)
        };
        let (scheme, authority) = text.split_once("://").ok_or_else(wrong)?;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
        let is_scheme =
            scheme.starts_with(|c: char| c.is_ascii_lowercase()) && scheme.chars().all(plain);
        let strange = |c: char| c.is_ascii_uppercase() || c.is_whitespace() || "/?#@*,".contains(c);
        if !is_scheme || authority.contains(strange) {
            return Err(wrong());
        }
        let parsed: Authority = authority.parse().map_err(|_| wrong())?;
        let after_host = authority.strip_prefix(parsed.host()).ok_or_else(wrong)?;
        let port = parsed.port_u16();
        let default = matches!((scheme, port), ("http", Some(80)) | ("https", Some(443)));
        if parsed.host().is_empty() || default || after_host.is_empty() != port.is_none() {
            return Err(wrong());
        }
        HeaderValue::from_str(text).map(Self).map_err(|_| wrong())
    }
}

/// Refuses what a page of another origin made a browser send.
///
/// # Errors
/// 421 for a `Host` that is no name of this machine, 403 for an `Origin` other than the service's
/// own and the listed ones.
pub(super) fn refuse_foreign_pages(headers: &HeaderMap, listed: &[Origin]) -> Result<(), ApiError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    if let Some(host) = hosts.find(|host| !host.to_str().is_ok_and(is_loopback)) {
        return Err(ApiError::new(
            StatusCode::MISDIRECTED_REQUEST,
            ErrorType::InvalidRequest,
            "foreign_host",
            format!(
                "this service has no API keys and answers to names of its own machine only, for \
                 example localhost; the request is for {:?}",
                shown(host)
            ),
        ));
    }
    let own = headers.get(header::HOST).map_or(&b""[..], HeaderValue::as_bytes);
    let is_own = |origin: &HeaderValue| {
        let bytes = origin.as_bytes();
        let rest = bytes.strip_prefix(b"http://").or_else(|| bytes.strip_prefix(b"https://"));
        rest.is_some_and(|rest| rest.eq_ignore_ascii_case(own))
    };
    let is_listed = |origin: &HeaderValue| listed.iter().any(|known| known.0 == origin);
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match origins.find(|origin| !is_own(origin) && !is_listed(origin)) {
        None => Ok(()),
        Some(origin) => Err(ApiError::forbidden(
            "foreign_origin",
            format!(
                "pages of {:?} may not use this service; its operator lists those that may in \
                 cors_origins",
                shown(origin)
            ),
        )),
    }
}

fn shown(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).chars().take(100).collect()
}

/// Whether the value of a `Host` header names this machine, with or without a port.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.to_ascii_lowercase();
    // Browsers take every name under `localhost` for this machine without asking anybody.
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse().is_ok_and(|address: IpAddr| address.to_canonical().is_loopback())
}
