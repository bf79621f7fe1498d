//! From the bytes of a file to the text that is judged.

use axum::body::Bytes;

use crate::server::error::ApiError;

/// The text of a file and how it was had.
#[derive(Debug)]
pub(in crate::server) struct Reading {
    /// The name of the format.
    pub(in crate::server) format: &'static str,
    /// The text.
    pub(in crate::server) text: String,
    /// What a reader should know about it.
    pub(in crate::server) notes: Vec<String>,
}

/// Reads a file by its name and declared media type. The only place that knows formats.
///
/// # Errors
/// 400 for a format that is not read here and for bytes that are not what they claim.
pub(in crate::server) async fn read(
    name: &str,
    media_type: Option<&str>,
    bytes: Bytes,
) -> Result<Reading, ApiError> {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let format = match (extension.as_deref(), media_type) {
        (Some("txt" | "text"), _) | (None, None | Some("text/plain")) => "text",
        (Some("md" | "markdown"), _) | (None, Some("text/markdown")) => "markdown",
        _ => {
            let message = "the file is no text (.txt) and no Markdown (.md); send its text";
            return Err(ApiError::bad_request("unsupported_format", message).param("file"));
        }
    };
    let text = String::from_utf8(bytes.into()).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = format!("the file is not UTF-8 (byte {at}); convert it to UTF-8 first");
        ApiError::bad_request("not_utf8", message).param("file")
    })?;
    Ok(Reading { format, text, notes: Vec::new() })
}
