//! The one shape of every error reply: `{"error":{"message","type","param","code"}}`, as clients
//! of the `OpenAI` interface read it.

use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::error::{Error, ErrorKind};

/// Who can mend it, in the words of the `OpenAI` interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorType {
    /// The request is wrong.
    InvalidRequest,
    /// No key or a wrong one.
    Authentication,
    /// The key may not do this.
    Permission,
    /// Too much at once; try again later.
    RateLimit,
    /// The service cannot do it now.
    Unavailable,
    /// A fault of the service.
    Server,
}

impl ErrorType {
    fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request_error",
            Self::Authentication => "authentication_error",
            Self::Permission => "permission_error",
            Self::RateLimit => "rate_limit_error",
            Self::Unavailable => "service_unavailable_error",
            Self::Server => "server_error",
        }
    }
}

/// The code of an error reply, for whoever counts them.
#[derive(Clone, Copy, Debug)]
pub(super) struct ErrorCode(pub(super) &'static str);

/// An error reply.
#[derive(Clone, Debug)]
pub struct ApiError {
    status: StatusCode,
    kind: ErrorType,
    code: &'static str,
    message: String,
    param: Option<String>,
    retry_after: Option<u64>,
    cause: Option<String>,
}

/// What went wrong inside, on its way to the log.
#[derive(Clone, Debug)]
pub(super) struct Cause(pub(super) String);

impl ApiError {
    /// An error reply with a stable `code` for programs and a sentence for people.
    pub fn new(
        status: StatusCode,
        kind: ErrorType,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        Self { status, kind, code, message, param: None, retry_after: None, cause: None }
    }

    /// A field with a value that is not allowed (400).
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::bad_request("invalid_value", message).param(param)
    }

    /// A request that cannot be understood (400).
    pub fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorType::InvalidRequest, code, message)
    }

    /// Nothing is here (404).
    pub fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorType::InvalidRequest, code, message)
    }

    /// The key of the caller may not do this (403).
    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, ErrorType::Permission, code, message)
    }

    /// Too much at once (429); `seconds` until it is worth another try.
    pub fn busy(code: &'static str, message: impl Into<String>, seconds: u64) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self {
            retry_after: Some(seconds),
            ..Self::new(status, ErrorType::RateLimit, code, message)
        }
    }

    /// Not now (503); `seconds` until it is worth another try.
    pub fn unavailable(code: &'static str, message: impl Into<String>, seconds: u64) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let kind = ErrorType::Unavailable;
        Self { retry_after: Some(seconds), ..Self::new(status, kind, code, message) }
    }

    /// A fault of the service (500). What went wrong stands in the log, not in the reply.
    #[must_use]
    pub fn internal() -> Self {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        let message = "the service failed on this request; its log names the cause under the \
                       request id of this reply";
        Self::new(status, ErrorType::Server, "internal", message)
    }

    /// Names the field at fault.
    #[must_use]
    pub fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// What went wrong inside, for the log.
    pub(super) fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The value of the reply's body, for a line of a batch or an event of a stream.
    #[must_use]
    pub fn body(&self) -> serde_json::Value {
        json!({"error": {
            "message": self.message,
            "type": self.kind.name(),
            "param": self.param,
            "code": self.code,
        }})
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        // The variants that name a request's field give `param`; a fault of ours is logged and
        // not shown, because its text may name files of the operator.
        match (&error, error.kind()) {
            (Error::Parameter { name, .. }, _) => Self::invalid(*name, error.to_string()),
            (Error::ContextLength { .. }, _) => {
                Self::bad_request("context_length_exceeded", error.to_string())
            }
            (Error::NoTokenAllowed { .. }, _) => {
                Self::bad_request("no_token_allowed", error.to_string())
            }
            (Error::TokenOutOfRange { .. }, _) => {
                Self::bad_request("token_out_of_range", error.to_string())
            }
            // A device without memory for one more text, for example.
            (Error::Unavailable { .. }, _) => {
                let message = "the model has no room for this now; try again later";
                Self { cause: Some(error.to_string()), ..Self::unavailable("no_room", message, 5) }
            }
            (_, ErrorKind::Input) => Self::bad_request("invalid_request", error.to_string()),
            (_, ErrorKind::Environment | ErrorKind::Internal) => {
                Self { cause: Some(error.to_string()), ..Self::internal() }
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        response.extensions_mut().insert(ErrorCode(self.code));
        if let Some(cause) = self.cause {
            response.extensions_mut().insert(Cause(cause));
        }
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"greenmark\""));
        }
        response
    }
}
