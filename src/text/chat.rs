//! Prompts from chat templates, such that no message can write a control token.
//!
//! A template is rendered twice: with the messages, and with a random stand-in for each of them.
//! What stands between the stand-ins was written by the template; only there are control tokens
//! recognised. The rendering with the messages must then be exactly the template's parts with the
//! messages (or the messages without white space at their ends, which some templates remove)
//! between them. If it is not, because a template looks into the messages, the whole rendering is
//! used only when no message holds the text of a control token and both renderings have the same
//! control tokens in the same order; otherwise the prompt is refused.
//!
//! Text between two control tokens is encoded in one piece, across the border of template and
//! message, so that the ids are those of the reference.

use std::fmt::Write as _;

use hf_chat_template::{ChatTemplate, Message, RenderInput};
use serde_json::{Map, Value};

use super::added::Part;
use super::tokenizer::{Segment, Tokenizer};
use crate::error::{Error, Result};
use crate::token::TokenId;

/// Longest name of a role in characters.
const MAX_ROLE: usize = 64;

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatMessage {
    /// Who speaks: `system`, `user`, `assistant`, `tool` or what the template knows. Letters,
    /// digits, `_` and `-` only.
    pub role: String,
    /// The text.
    pub content: String,
}

impl ChatMessage {
    /// A message of the user.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self { role: "user".to_owned(), content: content.into() }
    }
}

/// Whether a prompt ends with the beginning of the assistant's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GenerationPrompt {
    /// The model is to answer.
    Add,
    /// The conversation is only shown.
    Omit,
}

/// A compiled chat template.
pub struct PromptTemplate {
    template: ChatTemplate,
    tokens: Map<String, Value>,
}

impl PromptTemplate {
    /// The template that comes with a tokenizer.
    ///
    /// # Errors
    /// [`Error::File`] if there is none; otherwise as [`PromptTemplate::new`].
    pub fn from_tokenizer(tokenizer: &Tokenizer) -> Result<Self> {
        let source = tokenizer.chat_template().ok_or_else(|| {
            let remedy = "give the prompt without --chat, or use a model with a chat template";
            Error::file(tokenizer.origin(), None, "there is no chat template", remedy)
        })?;
        Self::new(source, tokenizer)
    }

    /// Compiles a Jinja template; the tokenizer gives `bos_token` and the like.
    ///
    /// # Errors
    /// [`Error::File`] if the template does not compile.
    pub fn new(source: &str, tokenizer: &Tokenizer) -> Result<Self> {
        let template = ChatTemplate::from_str(source).map_err(|e| {
            Error::file(
                tokenizer.origin(),
                None,
                format!("the chat template does not compile: {e}"),
                "give the prompt without --chat",
            )
        })?;
        let tokens = tokenizer
            .template_tokens()
            .map(|(name, text)| (name.to_owned(), Value::String(text.to_owned())))
            .collect();
        Ok(Self { template, tokens })
    }

    /// The prompt as text, as the reference renders it. For display: encoding this text is not
    /// safe against messages that spell control tokens; use [`PromptTemplate::chat_ids`].
    ///
    /// # Errors
    /// [`Error::Parameter`] for a role of other characters than allowed, or if the template
    /// refuses the conversation.
    pub fn render(
        &self,
        messages: &[ChatMessage],
        generation_prompt: GenerationPrompt,
    ) -> Result<String> {
        for message in messages {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let length = message.role.chars().count();
            if !(1..=MAX_ROLE).contains(&length) || !message.role.chars().all(plain) {
                return Err(Error::parameter(
                    "role",
                    format!("{:?}", message.role),
                    format!("1 to {MAX_ROLE} letters, digits, `_` and `-`"),
                ));
            }
        }
        let input = RenderInput {
            messages: messages
                .iter()
                .map(|message| Message::new(message.role.as_str(), message.content.as_str()))
                .collect(),
            add_generation_prompt: generation_prompt == GenerationPrompt::Add,
            extra: self.tokens.clone(),
            ..RenderInput::default()
        };
        self.template.render(&input).map_err(|e| {
            Error::parameter(
                "messages",
                format!("refused by the chat template: {e}"),
                "a conversation that the model's template accepts",
            )
        })
    }

    /// The ids of a conversation. Control tokens come from the template alone; there is one BOS
    /// exactly if the model wants one.
    ///
    /// # Errors
    /// As [`PromptTemplate::render`]; [`Error::Parameter`] too if the template changes messages
    /// in a way that hides whether a control token is its own; [`Error::Backend`] if the system
    /// gives no random numbers.
    pub fn chat_ids(
        &self,
        tokenizer: &Tokenizer,
        messages: &[ChatMessage],
        generation_prompt: GenerationPrompt,
    ) -> Result<Vec<TokenId>> {
        // A template may write the time; a second try meets the turn of the second.
        let mut refusal = None;
        for _ in 0..2 {
            match self.segments(tokenizer, messages, generation_prompt) {
                Ok(segments) => return tokenizer.segment_ids(&segments),
                Err(error) => refusal = Some(error),
            }
        }
        // The loop ran, so there is an error; an empty list is never returned.
        refusal.map_or_else(|| Ok(Vec::new()), Err)
    }

    fn segments(
        &self,
        tokenizer: &Tokenizer,
        messages: &[ChatMessage],
        generation_prompt: GenerationPrompt,
    ) -> Result<Vec<Segment>> {
        let stand_ins: Vec<ChatMessage> = messages
            .iter()
            .map(|message| Ok(ChatMessage { role: message.role.clone(), content: random_word()? }))
            .collect::<Result<_>>()?;
        let frame = self.render(&stand_ins, generation_prompt)?;
        let real = self.render(messages, generation_prompt)?;

        let mut segments = Segments { tokenizer, done: Vec::new(), text: String::new() };
        if let Some(parts) = align(&frame, &real, &stand_ins, messages) {
            for part in parts {
                match part {
                    Span::Template(text) => segments.template(text),
                    Span::Message(text) => segments.text.push_str(text),
                }
            }
            return Ok(segments.finish());
        }

        let control = |text: &str| -> Vec<TokenId> {
            tokenizer
                .split_control(text)
                .into_iter()
                .filter_map(|part| match part {
                    Part::Literal(id, _) => Some(id),
                    Part::Text(_) => None,
                })
                .collect()
        };
        let clean = messages.iter().all(|message| control(&message.content).is_empty());
        if clean && control(&frame) == control(&real) {
            segments.template(&real);
            return Ok(segments.finish());
        }
        Err(Error::parameter(
            "messages",
            "text that the chat template changes, with control tokens whose origin is unclear",
            "messages without the text of control tokens, or a prompt without --chat",
        ))
    }
}

impl std::fmt::Debug for PromptTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PromptTemplate").finish_non_exhaustive()
    }
}

/// Collects segments, joining neighbouring text.
struct Segments<'a> {
    tokenizer: &'a Tokenizer,
    done: Vec<Segment>,
    text: String,
}

impl Segments<'_> {
    fn template(&mut self, text: &str) {
        for part in self.tokenizer.split_control(text) {
            match part {
                Part::Text(text) => self.text.push_str(text),
                Part::Literal(id, _) => {
                    self.flush();
                    self.done.push(Segment::Control(id));
                }
            }
        }
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.done.push(Segment::Text(std::mem::take(&mut self.text)));
        }
    }

    fn finish(mut self) -> Vec<Segment> {
        self.flush();
        self.done
    }
}

/// A stretch of a rendering.
#[derive(Clone, Copy)]
enum Span<'a> {
    Template(&'a str),
    Message(&'a str),
}

/// Splits the real rendering into the template's parts, which `frame` shows between the
/// stand-ins, and messages. `None` if it is not made of these.
fn align<'a>(
    frame: &'a str,
    real: &'a str,
    stand_ins: &[ChatMessage],
    messages: &[ChatMessage],
) -> Option<Vec<Span<'a>>> {
    // The stand-ins in the order in which the template wrote them.
    let mut places: Vec<(usize, usize)> = stand_ins
        .iter()
        .enumerate()
        .flat_map(|(index, stand_in)| {
            frame.match_indices(stand_in.content.as_str()).map(move |(at, _)| (at, index))
        })
        .collect();
    places.sort_unstable();

    let mut spans = Vec::new();
    let (mut at, mut rest) = (0, real);
    for (number, &(place, index)) in places.iter().enumerate() {
        let part = &frame[at..place];
        rest = rest.strip_prefix(part)?;
        spans.push(Span::Template(part));
        at = place + stand_ins[index].content.len();
        let next = places.get(number + 1).map_or(frame.len(), |&(place, _)| place);
        let following = &frame[at..next];
        let content = messages[index].content.as_str();
        // White space as Python's `str.strip` has it is Rust's plus four separators.
        let space = |c: char| c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}');
        let candidates = [
            content,
            content.trim_matches(space),
            content.trim_start_matches(space),
            content.trim_end_matches(space),
        ];
        let message = candidates.into_iter().find(|candidate| {
            rest.strip_prefix(candidate).is_some_and(|rest| rest.starts_with(following))
        })?;
        let (taken, tail) = rest.split_at(message.len());
        spans.push(Span::Message(taken));
        rest = tail;
    }
    let part = &frame[at..];
    if rest != part {
        return None;
    }
    spans.push(Span::Template(part));
    Some(spans)
}

/// A word that nobody can guess: 128 random bits as letters, which no template treats specially.
fn random_word() -> Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|e| Error::backend("asking the system for random numbers", e))?;
    let mut word = String::with_capacity(34);
    for byte in bytes {
        let letter = |half: u8| char::from(b'a' + half);
        // Writing to a string cannot fail.
        let _ = write!(word, "{}{}", letter(byte >> 4), letter(byte & 15));
    }
    Ok(word)
}
