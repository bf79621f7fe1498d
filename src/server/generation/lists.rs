//! Lists and choices of a body, read without keeping more than is used.
//!
//! What serde derives for a choice of types keeps the whole value in memory first, at many times
//! the bytes of the body. The readers here look at one element at a time and stop at a limit.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::body::{Content, Logprobs, Part, Prompts, Stop};
use crate::sample::Bias;
use crate::token::TokenId;

/// Messages of one conversation.
pub(super) const MAX_MESSAGES: usize = 4096;
/// Prompts of one request.
const MAX_PROMPTS: usize = 1024;
/// Ids of all prompts of one request.
const MAX_PROMPT_IDS: usize = 1_000_000;
/// Sequences of ids in `bad_words`.
pub(super) const MAX_SEQUENCES: usize = 65_536;
/// Stop strings of one request.
pub(super) const MAX_STOPS: usize = 16;
/// Bytes of a word that [`Foreign`] keeps.
const MAX_WORD: usize = 32;

/// Reads `null` or a list of at most `MOST` elements.
pub(super) fn at_most<'de, const MOST: usize, T, D>(reader: D) -> Result<Option<Vec<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct List<const MOST: usize, T>(PhantomData<T>);
    impl<'de, const MOST: usize, T: Deserialize<'de>> Visitor<'de> for List<MOST, T> {
        type Value = Option<Vec<T>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MOST} elements")
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut read = Vec::new();
            while let Some(element) = list.next_element()? {
                if read.len() == MOST {
                    return Err(A::Error::custom(format!("more than {MOST} elements")));
                }
                read.push(element);
            }
            Ok(Some(read))
        }
    }
    reader.deserialize_any(List::<MOST, T>(PhantomData))
}

/// What a list of prompts may hold.
enum Prompt {
    Text(String),
    Id(TokenId),
    Ids(Vec<TokenId>),
}

impl<'de> Deserialize<'de> for Prompt {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct One;
        impl<'de> Visitor<'de> for One {
            type Value = Prompt;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a token id or a list of token ids")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Prompt, E> {
                Ok(Prompt::Text(text.to_owned()))
            }

            fn visit_u64<E: Error>(self, id: u64) -> Result<Prompt, E> {
                let wrong = |_| E::custom(format!("{id} is no token id"));
                TokenId::try_from(id).map(Prompt::Id).map_err(wrong)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Prompt, A::Error> {
                let mut ids = Vec::new();
                while let Some(id) = list.next_element()? {
                    if ids.len() == MAX_PROMPT_IDS {
                        return Err(too_many_ids());
                    }
                    ids.push(id);
                }
                Ok(Prompt::Ids(ids))
            }
        }
        reader.deserialize_any(One)
    }
}

fn too_many_ids<E: Error>() -> E {
    E::custom(format!("prompt: more than {MAX_PROMPT_IDS} token ids; send fewer"))
}

impl<'de> Deserialize<'de> for Prompts {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Prompts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a string, a list of strings, a list of token ids or a list of such lists",
                )
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Prompts, E> {
                Ok(Prompts::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Prompts, A::Error> {
                let mut prompts = match list.next_element()? {
                    None => return Ok(Prompts::Texts(Vec::new())),
                    Some(Prompt::Text(text)) => Prompts::Texts(vec![text]),
                    Some(Prompt::Id(id)) => Prompts::Ids(vec![id]),
                    Some(Prompt::Ids(ids)) => Prompts::IdLists(vec![ids]),
                };
                let mut ids = prompts.ids();
                while let Some(next) = list.next_element()? {
                    match (&mut prompts, next) {
                        (Prompts::Texts(texts), Prompt::Text(text)) => texts.push(text),
                        (Prompts::Ids(list), Prompt::Id(id)) => {
                            list.push(id);
                            ids += 1;
                        }
                        (Prompts::IdLists(lists), Prompt::Ids(list)) => {
                            ids += list.len();
                            lists.push(list);
                        }
                        _ => {
                            return Err(A::Error::custom(
                                "prompt: a list holds strings, token ids or lists of token ids, \
                                 one of the three",
                            ));
                        }
                    }
                    if ids > MAX_PROMPT_IDS {
                        return Err(too_many_ids());
                    }
                    if prompts.len() > MAX_PROMPTS {
                        let message =
                            format!("prompt: more than {MAX_PROMPTS} prompts; send fewer");
                        return Err(A::Error::custom(message));
                    }
                }
                Ok(prompts)
            }
        }
        reader.deserialize_any(All)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of content parts")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content, A::Error> {
                let (mut joined, mut index) = (String::new(), 0);
                while let Some(Part { kind, text }) = list.next_element()? {
                    let Some(text) = text.filter(|_| kind == "text") else {
                        while list.next_element::<IgnoredAny>()?.is_some() {}
                        return Ok(Content::Foreign { index, kind });
                    };
                    if index > 0 {
                        joined.push('\n');
                    }
                    joined.push_str(&text);
                    index += 1;
                }
                Ok(Content::Text(joined))
            }
        }
        reader.deserialize_any(Parts)
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Part;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a content part: an object with `type` and `text`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Part, A::Error> {
                let (mut part, mut unknown) = (Part::default(), None);
                while let Some(name) = map.next_key::<String>()? {
                    match name.as_str() {
                        "type" => part.kind = map.next_value()?,
                        "text" => part.text = map.next_value()?,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            unknown = unknown.or(Some(name));
                        }
                    }
                }
                match unknown {
                    Some(name) if part.kind == "text" => {
                        Err(A::Error::unknown_field(&name, &["type", "text"]))
                    }
                    _ => Ok(part),
                }
            }
        }
        reader.deserialize_map(Fields)
    }
}

/// Biases by token id, each id once: of two values for one id neither is what was meant.
pub(super) fn biases<'de, D: Deserializer<'de>>(
    reader: D,
) -> Result<Option<BTreeMap<TokenId, Bias>>, D::Error> {
    struct Biases;
    impl<'de> Visitor<'de> for Biases {
        type Value = Option<BTreeMap<TokenId, Bias>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of token ids and numbers")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = BTreeMap::new();
            while let Some((id, bias)) = map.next_entry::<TokenId, Bias>()? {
                if found.insert(id, bias).is_some() {
                    return Err(A::Error::custom(format_args!("duplicate field `{id}`")));
                }
            }
            Ok(Some(found))
        }
    }
    reader.deserialize_any(Biases)
}

impl<'de> Deserialize<'de> for Stop {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Stops;
        impl<'de> Visitor<'de> for Stops {
            type Value = Stop;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Stop, E> {
                Ok(Stop { strings: vec![text.to_owned()], given: 1 })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Stop, A::Error> {
                let mut strings = Vec::new();
                while strings.len() < MAX_STOPS {
                    let Some(string) = list.next_element()? else { break };
                    strings.push(string);
                }
                let mut given = strings.len();
                if given == MAX_STOPS {
                    while list.next_element::<IgnoredAny>()?.is_some() {
                        given += 1;
                    }
                }
                Ok(Stop { strings, given })
            }
        }
        reader.deserialize_any(Stops)
    }
}

impl<'de> Deserialize<'de> for Logprobs {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Form;
        impl Visitor<'_> for Form {
            type Value = Logprobs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number (completions) or true or false (chat)")
            }

            fn visit_bool<E: Error>(self, flag: bool) -> Result<Logprobs, E> {
                Ok(Logprobs::Flag(flag))
            }

            fn visit_u64<E: Error>(self, count: u64) -> Result<Logprobs, E> {
                // More than any limit stays so.
                Ok(Logprobs::Count(usize::try_from(count).unwrap_or(usize::MAX)))
            }
        }
        reader.deserialize_any(Form)
    }
}

/// The value of a field that this service does not do: only as much of it as tells whether it
/// asks for nothing.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Foreign {
    /// A short value.
    Short(Value),
    /// Longer than every value that asks for nothing.
    Long,
}

impl Foreign {
    /// Whether it is one of these.
    pub(super) fn is_among(&self, values: &[Value]) -> bool {
        matches!(self, Self::Short(value) if values.contains(value))
    }
}

impl<'de> Deserialize<'de> for Foreign {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Foreign;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_unit<E: Error>(self) -> Result<Foreign, E> {
                Ok(Foreign::Short(Value::Null))
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Foreign, E> {
                Ok(Foreign::Short(value.into()))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Foreign, E> {
                Ok(Foreign::Short(value.into()))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Foreign, E> {
                Ok(Foreign::Short(value.into()))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Foreign, E> {
                Ok(Foreign::Short(value.into()))
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Foreign, E> {
                if word.len() > MAX_WORD {
                    return Ok(Foreign::Long);
                }
                Ok(Foreign::Short(word.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Foreign, A::Error> {
                let first = match list.next_element()? {
                    None => return Ok(Foreign::Short(Value::Array(Vec::new()))),
                    Some(Foreign::Short(first)) => Some(first),
                    Some(Foreign::Long) => None,
                };
                let mut is_long = false;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    is_long = true;
                }
                Ok(match first.filter(|_| !is_long) {
                    Some(first) => Foreign::Short(Value::Array(vec![first])),
                    None => Foreign::Long,
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Foreign, A::Error> {
                let first = match map.next_entry::<String, Foreign>()? {
                    None => return Ok(Foreign::Short(Value::Object(serde_json::Map::new()))),
                    Some((name, Foreign::Short(value))) => Some((name, value)),
                    Some((_, Foreign::Long)) => None,
                };
                let mut is_long = false;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    is_long = true;
                }
                Ok(match first.filter(|_| !is_long) {
                    Some(first) => Foreign::Short(Value::Object([first].into_iter().collect())),
                    None => Foreign::Long,
                })
            }
        }
        reader.deserialize_any(Any)
    }
}
