//! From what the user typed to the library's own values, each validated once.

mod key;
mod lists;
mod mark;
mod sampling;
mod source;

pub(crate) use key::{KeySource, NamedKey, api_keys_file, default_key_path, resolve_key};
pub(crate) use lists::{ids_from, parse_ids, read_input, read_input_up_to, read_text};
pub(crate) use mark::{ExplicitMark, resolve_profile};
pub(crate) use sampling::resolve_sampling;
pub(crate) use source::{Bar, resolve_model, resolve_tokenizer};
