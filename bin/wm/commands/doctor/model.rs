//! The tokenizer of a model that is here already: does it give a text back?

use std::path::Path;

use greenmark::store::{Fetch, Silent, Store};
use greenmark::text::Tokenizer;
use greenmark::{Error, Result};

use super::Check;

const NAME: &str = "tokenizer";

/// Scripts, signs beyond the basic plane, and white space, in composed form.
const TEXT: &str =
    "The Zürich café: Привет, мир. 你好，世界! مرحبا नमस्ते 안녕 🙂🏳️‍🌈\n\tfn main() { 1 + 1 }  ";

/// Looks for the file of `spec`, reads its tokenizer and sends a text through it.
///
/// # Errors
/// For a `spec` that names nothing.
pub(super) fn tokenizer(store: &Store, spec: &str) -> Result<Check> {
    match store.resolve_tokenizer(spec, Fetch::Offline, &mut Silent) {
        Ok(path) => Ok(round_trip(spec, &path)),
        Err(Error::Unavailable { .. }) => {
            Ok(Check::note(NAME, format!("the model {spec} is not in the cache"))
                .with_remedy(format!("run: wm models pull {spec}")))
        }
        Err(error @ Error::Parameter { .. }) => Err(error),
        // What was named, not what the cache should hold.
        Err(error) if names(&error, spec) => Err(error),
        Err(error) => Ok(Check::problem_of(NAME, &error)),
    }
}

/// Whether an error is of the file that `spec` is.
fn names(error: &Error, spec: &str) -> bool {
    matches!(error, Error::Io { path, .. } if path == Path::new(spec))
}

fn round_trip(spec: &str, path: &Path) -> Check {
    let tokenizer = match Tokenizer::open(path) {
        Ok(tokenizer) => tokenizer,
        Err(error) => return Check::problem_of(NAME, &error),
    };
    let ids = match tokenizer.encode_ids(TEXT) {
        Ok(ids) => ids,
        Err(error) => return Check::problem_of(NAME, &error),
    };
    let said = format!("{spec}: {} ids", tokenizer.vocab_size());
    if tokenizer.decode(&ids) != TEXT.as_bytes() {
        let remedy = "marks in such text are partly lost: use another model, or report this";
        return Check::problem(NAME, format!("{said}, a text does not come back"), remedy);
    }
    let text = format!(
        "{said}, {} bytes to {} tokens and back, fingerprint {}",
        TEXT.len(),
        ids.len(),
        tokenizer.fingerprint()
    );
    Check::ok(NAME, text)
}
