//! The mark that the command line asks for.

use anyhow::Result;
use greenmark::document::identify;
use greenmark::engine::{Mark, TextEngine};

use crate::args::{KeyArgs, MarkArgs};
use crate::resolve::{ExplicitMark, KeySource, NamedKey, resolve_key};

/// The mark that the flags make; the key is made when the user has none.
pub(super) fn resolve_mark(mark: &MarkArgs, key: &KeyArgs, engine: &TextEngine) -> Result<Mark> {
    // Wrong flags are refused before a key is made.
    let explicit = ExplicitMark::resolve(mark)?;
    // A fresh key cannot be the one that a profile names.
    let source =
        if mark.profile.is_some() { KeySource::Existing } else { KeySource::CreateDefault };
    let key = resolve_key(key, source)?;
    join_mark(explicit, &key, engine)
}

/// The mark of flags that were resolved, under a key.
pub(super) fn join_mark(
    explicit: ExplicitMark,
    key: &NamedKey,
    engine: &TextEngine,
) -> Result<Mark> {
    let tokenizer = engine.tokenizer();
    let profile = explicit.profile(identify(tokenizer), key)?;
    Ok(Mark::new(profile, &key.key, tokenizer)?)
}
