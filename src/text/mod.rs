//! Text and tokens: tokenizers with exact offsets, streaming decode, stop strings, prompts from
//! chat templates, and the normalisers a detection may ask for.
//!
//! Byte-level BPE with a pre-tokenizer known by name is encoded by code of this module, which
//! gives the ids of the reference crate (`tokenizers`) faster and in linear time; every other
//! `tokenizer.json` goes through that crate. No model is needed and candle is not used.
//!
//! Not here: reading model files ([`crate::format`]) and anything that knows a watermark.

mod added;
mod bpe;
mod byte_level;
mod chat;
mod classes;
mod encoder;
mod fingerprint;
mod gguf;
mod json;
mod json_reference;
mod load;
mod normalize;
mod split;
mod stop;
mod stream;
mod tokenizer;
mod vocab;

pub use chat::{ChatMessage, GenerationPrompt, PromptTemplate};
pub use normalize::{Normalized, Normalizer, Survey, normalize, survey};
pub use split::PreTokenizer;
pub use stop::{StopMatcher, StopOutput};
pub use stream::{StreamDecoder, Utf8Stream};
pub use tokenizer::{Bos, Tokenizer};
