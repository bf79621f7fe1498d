//! The tokenizer of a model that is here already: does it give a text back?

use greenmark::Error;
use greenmark::store::{Fetch, Silent, Store};
use greenmark::text::Tokenizer;

use super::Check;

/// Scripts, signs beyond the basic plane, and white space, in composed form.
const TEXT: &str =
    "The Zürich café: Привет, мир. 你好，世界! مرحبا नमस्ते 안녕 🙂🏳️‍🌈\n\tfn main() { 1 + 1 }  ";

/// Looks for the file of `spec`, reads its tokenizer and sends a text through it.
pub(super) fn tokenizer(store: &Store, spec: &str) -> Check {
    let name = "tokenizer";
    let path = match store.resolve_tokenizer(spec, Fetch::Offline, &mut Silent) {
        Ok(path) => path,
        Err(Error::Unavailable { .. }) => {
            return Check::note(name, format!("the model {spec} is not in the cache"))
                .with_remedy(format!("run: wm models pull {spec}"));
        }
        Err(error) => return Check::problem_of(name, &error),
    };
    let tokenizer = match Tokenizer::open(&path) {
        Ok(tokenizer) => tokenizer,
        Err(error) => return Check::problem_of(name, &error),
    };
    let ids = match tokenizer.encode_ids(TEXT) {
        Ok(ids) => ids,
        Err(error) => return Check::problem_of(name, &error),
    };
    let said = format!("{spec}: {} ids", tokenizer.vocab_size());
    if tokenizer.decode(&ids) != TEXT.as_bytes() {
        let remedy = "marks in such text are partly lost: use another model, or report this";
        return Check::problem(name, format!("{said}, a text does not come back"), remedy);
    }
    let text = format!(
        "{said}, {} bytes to {} tokens and back, fingerprint {}",
        TEXT.len(),
        ids.len(),
        tokenizer.fingerprint()
    );
    Check::ok(name, text)
}
