//! From the bytes of a file to the text that is judged.

use std::path::PathBuf;

use axum::body::Bytes;

use crate::extract::{Extracted, Format, Note, text};
use crate::server::error::ApiError;
use crate::server::state::State;

/// Reads a file by its name, its declared media type and its first bytes.
///
/// # Errors
/// 400 for a format that is not read here and for bytes that are not what they claim.
pub(in crate::server) async fn read(
    state: &State,
    name: &str,
    media_type: Option<&str>,
    bytes: Bytes,
) -> Result<Extracted, ApiError> {
    let name = (!name.is_empty()).then(|| PathBuf::from(name));
    // What a browser says of a file that it does not know says nothing.
    let media_type = media_type.filter(|declared| *declared != "application/octet-stream");
    let media_type = media_type.map(str::to_owned);
    let (limits, file) = (*state.file_limits(), bytes.clone());
    // Plain text waits behind nobody's foreign file.
    let plain = move || {
        let format = Format::detect(name.as_deref(), media_type.as_deref(), &file)?;
        let read = format.is_plain().then(|| text(format, &file, &limits)).transpose()?;
        Ok::<_, crate::error::Error>((format, read))
    };
    match state.pool().run(plain).await?? {
        (_, Some(extracted)) => Ok(extracted),
        (format, None) => Ok(state.extract(format, &bytes).await?),
    }
}

/// What a reader should know about the text of a file, in words.
pub(in crate::server) fn notes(extracted: &Extracted) -> Vec<String> {
    extracted.notes.iter().map(Note::to_string).collect()
}
