//! JSON bodies, read strictly: an object, known fields only, each once.

use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::body::read_body;
use super::error::{ApiError, ErrorType};
use super::state::{Room, State};

/// The body of a request as a value of type `T`.
#[derive(Debug)]
pub struct Json<T> {
    /// The value.
    pub value: T,
    /// The body's share of the common memory; to be kept as long as the value.
    pub room: Room,
}

/// Longest body that the thread which answers reads itself; a longer one is work for the pool.
const QUICK: usize = 64 << 10;

impl<T: DeserializeOwned + Send + 'static> FromRequest<State> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &State) -> Result<Self, ApiError> {
        require_json(&request)?;
        let (bytes, room) = read_body(request, state).await?;
        let value = if bytes.len() <= QUICK {
            from_slice(&bytes)?
        } else {
            state.pool().run(move || from_slice(&bytes)).await??
        };
        Ok(Self { value, room })
    }
}

fn require_json(request: &Request) -> Result<(), ApiError> {
    require_media_type(request.headers(), "application/json", |essence| {
        essence == "application/json"
            || (essence.starts_with("application/") && essence.ends_with("+json"))
    })
}

/// Refuses a body that is not declared as what the route reads. `accepts` is given the media type
/// in lower case and without parameters.
///
/// # Errors
/// 415 naming what was declared, and `wanted` as what to send.
pub(super) fn require_media_type(
    headers: &HeaderMap,
    wanted: &str,
    accepts: impl Fn(&str) -> bool,
) -> Result<(), ApiError> {
    let given = headers.get(CONTENT_TYPE);
    let name = given.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if accepts(&essence) {
        return Ok(());
    }
    let found = match given {
        None => "no Content-Type".to_owned(),
        Some(_) => format!("Content-Type {:?}", name.chars().take(80).collect::<String>()),
    };
    Err(ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorType::InvalidRequest,
        "unsupported_media_type",
        format!("the request has {found}; send the body as {wanted}"),
    ))
}

/// Reads an object strictly. One leading byte-order mark, which some editors write, is left out.
///
/// # Errors
/// 400 when the bytes are no JSON or a field is unknown or stands twice; 422 when a field is
/// missing or of another type.
pub(super) fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_none() {
        let message = "the body is empty; send a JSON object";
        return Err(ApiError::bad_request("empty_body", message));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    if first != Some(&b'{') {
        // Well-formed or not decides the status; a list must not be read as an object's fields.
        serde::de::IgnoredAny::deserialize_whole(&mut reader)?;
        return Err(unprocessable("the body is not a JSON object".to_owned(), None));
    }
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let param = (path != ".").then_some(path);
        refusal(&error.into_inner(), param)
    })?;
    reader.end().map_err(|error| refusal(&error, None))?;
    Ok(value)
}

trait Whole: Sized {
    fn deserialize_whole(
        reader: &mut serde_json::Deserializer<serde_json::de::SliceRead<'_>>,
    ) -> Result<Self, ApiError>;
}

impl Whole for serde::de::IgnoredAny {
    fn deserialize_whole(
        reader: &mut serde_json::Deserializer<serde_json::de::SliceRead<'_>>,
    ) -> Result<Self, ApiError> {
        let value = serde::Deserialize::deserialize(&mut *reader);
        let value = value.and_then(|value| reader.end().map(|()| value));
        value.map_err(|error| refusal(&error, None))
    }
}

fn refusal(error: &serde_json::Error, param: Option<String>) -> ApiError {
    let text = error.to_string();
    if error.classify() != Category::Data {
        return ApiError::bad_request(
            "invalid_json",
            format!("the body is not valid JSON: {text}"),
        );
    }
    // serde has one kind for both; the words are its contract for derived types.
    let named = |start: &str| {
        let rest = text.strip_prefix(start)?;
        rest.strip_prefix('`')?.split('`').next().map(str::to_owned)
    };
    if let Some(field) = named("unknown field ") {
        return ApiError::bad_request("unknown_field", format!("the request has an {text}"))
            .param(join(param, &field));
    }
    if let Some(field) = named("duplicate field ") {
        return ApiError::bad_request("duplicate_field", format!("the request has a {text}"))
            .param(join(param, &field));
    }
    match named("missing field ") {
        Some(field) => unprocessable(text.clone(), Some(join(param, &field))),
        None => unprocessable(text, param),
    }
}

/// The path of `field`, which serde reports at its object or at itself.
fn join(object: Option<String>, field: &str) -> String {
    match object {
        Some(path) if path == field || path.ends_with(&format!(".{field}")) => path,
        Some(path) => format!("{path}.{field}"),
        None => field.to_owned(),
    }
}

/// A field that is missing or of another type (422).
pub(super) fn unprocessable(message: String, param: Option<String>) -> ApiError {
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    let error = ApiError::new(status, ErrorType::InvalidRequest, "invalid_type", message);
    match param {
        Some(param) => error.param(param),
        None => error,
    }
}
