//! From what the user typed to the library's own values, each validated once.

mod key;
mod lists;
mod mark;
#[cfg(feature = "engine")]
mod placing;
#[cfg(not(feature = "engine"))]
#[path = "placing_absent.rs"]
mod placing;
mod sampling;
mod source;

pub(crate) use key::{
    KeySource, NamedKey, api_keys_file, config_folder, default_key_path, resolve_key,
};
pub(crate) use lists::{ids_from, parse_ids, read_input, read_input_up_to, read_text};
pub(crate) use mark::{ExplicitMark, resolve_profile};
#[cfg(feature = "engine")]
pub(crate) use placing::Opened;
pub(crate) use placing::Placing;
pub(crate) use sampling::resolve_sampling;
pub(crate) use source::{Bar, resolve_model, resolve_tokenizer};
