//! Who may do what.

mod role;

pub use role::{Caller, Role};

use axum::http::HeaderMap;

use super::error::ApiError;

/// The access rules of a service.
#[derive(Debug, Default)]
pub struct Access {}

impl Access {
    /// Everybody who reaches the service is its operator; for a loopback address only.
    #[must_use]
    pub fn local() -> Self {
        Self::default()
    }

    /// Who sends a request with these headers.
    ///
    /// # Errors
    /// 401 without a valid key.
    pub fn caller(&self, _headers: &HeaderMap) -> Result<Caller, ApiError> {
        Ok(Caller { name: "local".to_owned(), role: Role::Operator })
    }
}
