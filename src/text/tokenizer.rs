//! The tokenizer: text to ids with their places, ids to bytes, and what each id is.

use std::path::{Path, PathBuf};

use super::added::{Literals, Part};
use super::bpe::{Scratch, Sized};
use super::encoder::Encoder;
use super::vocab::{Slot, Vocab};
use super::{gguf, json};
use crate::error::{Error, Result};
use crate::format::{Gguf, Map};
use crate::token::{CharRanges, Piece, TokenId, TokenKind};

/// Longest text of one call in bytes.
const MAX_TEXT: usize = u32::MAX as usize;

/// Whether a sequence begins with the model's BOS token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bos {
    /// The model expects it.
    Add,
    /// The model does without.
    Omit,
}

/// Tokens that end or begin a sequence, and the chat template, as the files say.
#[derive(Debug, Default)]
pub(super) struct Extras {
    pub(super) bos: Option<TokenId>,
    pub(super) eos: Vec<TokenId>,
    pub(super) pad: Option<TokenId>,
    pub(super) unknown: Option<TokenId>,
    pub(super) add_bos: bool,
    pub(super) template: Option<String>,
}

/// What makes a tokenizer; see [`Tokenizer`].
pub(super) struct Parts {
    pub(super) vocab: Vocab,
    pub(super) encoder: Encoder,
    pub(super) fingerprint: String,
    /// Whether decoding drops one space at the start of a text (`SentencePiece`).
    pub(super) strip_leading_space: bool,
    pub(super) extras: Extras,
}

/// A tokenizer, immutable and free to share between threads.
///
/// Text is encoded as given: nothing is trimmed, no BOS is added, and the text of a control
/// token (`<|im_end|>`) is plain text that becomes ordinary tokens. Control tokens come only from
/// [`crate::text::PromptTemplate`].
#[derive(Debug)]
pub struct Tokenizer {
    vocab: Vocab,
    encoder: Encoder,
    added: Literals,
    control: Literals,
    fingerprint: String,
    strip_leading_space: bool,
    extras: Extras,
    origin: PathBuf,
}

/// A stretch of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// Text without control tokens.
    Text(String),
    /// A control token.
    Control(TokenId),
}

impl Tokenizer {
    /// Opens a `tokenizer.json`, a folder that holds one, or a GGUF file.
    ///
    /// Beside a `tokenizer.json`, `tokenizer_config.json` and `chat_template.jinja` are read where
    /// they exist. Of a GGUF file only the metadata are read.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be read, [`Error::File`] if one is damaged,
    /// [`Error::Unsupported`] for a kind of tokenizer this crate cannot reproduce.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            return json::open(&path.join("tokenizer.json"));
        }
        let map = Map::open(path)?;
        if map.starts_with(b"GGUF") {
            drop(map);
            return Self::from_gguf(&Gguf::open(path)?);
        }
        drop(map);
        json::open(path)
    }

    /// Reads the content of a `tokenizer.json`; `origin` names it in messages.
    ///
    /// # Errors
    /// As [`Tokenizer::open`].
    pub fn from_json_bytes(bytes: &[u8], origin: impl AsRef<Path>) -> Result<Self> {
        json::from_bytes(bytes, origin.as_ref(), json::Siblings::default())
    }

    /// Builds the tokenizer that a GGUF file carries.
    ///
    /// # Errors
    /// [`Error::File`] if the metadata are missing or contradict themselves;
    /// [`Error::Unsupported`] for a tokenizer model other than `gpt2` and a pre-tokenizer other
    /// than those of [`crate::text::PreTokenizer`].
    pub fn from_gguf(gguf: &Gguf) -> Result<Self> {
        gguf::load(gguf)
    }

    pub(super) fn assemble(parts: Parts, origin: &Path) -> Self {
        let Parts { vocab, encoder, fingerprint, strip_leading_space, extras } = parts;
        Self {
            added: Literals::new(vocab.of(Slot::Added)),
            control: Literals::new(vocab.of(Slot::Control)),
            vocab,
            encoder,
            fingerprint,
            strip_leading_space,
            extras,
            origin: origin.to_path_buf(),
        }
    }

    /// The tokens of a text with their places. The byte ranges follow each other without gaps
    /// from 0 to the text's length.
    ///
    /// Tokens of a byte-level vocabulary are cut at byte level, also inside a character. A byte
    /// for which the vocabulary has no token belongs to the token before it (at the start, to
    /// the token after it). Where the tokenizer's own normaliser changes a character, a cut
    /// inside falls after as many bytes as in the changed character.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a text above 4 GiB; [`Error::Backend`] if the reference crate
    /// fails.
    pub fn encode(&self, text: &str) -> Result<Vec<Piece>> {
        let tokens = self.tokens(text)?;
        let mut pieces = Vec::with_capacity(tokens.len());
        let mut ranges = CharRanges::new(text);
        let mut from = 0;
        for (id, length) in tokens {
            let to = from + length as usize;
            pieces.push(Piece { id, bytes: from..to, chars: ranges.advance(to) });
            from = to;
        }
        Ok(pieces)
    }

    /// The ids of a text.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_ids(&self, text: &str) -> Result<Vec<TokenId>> {
        Ok(self.tokens(text)?.into_iter().map(|(id, _)| id).collect())
    }

    /// The ids of a raw prompt: one BOS where the model wants one, then the text.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn prompt_ids(&self, text: &str) -> Result<Vec<TokenId>> {
        let mut ids = Vec::from_iter(self.wanted_bos());
        ids.append(&mut self.encode_ids(text)?);
        Ok(ids)
    }

    fn tokens(&self, text: &str) -> Result<Vec<Sized>> {
        if text.len() > MAX_TEXT {
            return Err(Error::parameter(
                "text",
                format!("{} bytes", text.len()),
                format!("at most {MAX_TEXT} bytes in one piece"),
            ));
        }
        let mut out = Vec::with_capacity(text.len() / 4);
        let mut scratch = Scratch::default();
        for part in self.added.split(text) {
            match part {
                Part::Text(text) => {
                    self.encoder.encode(text, &self.vocab, &self.origin, &mut scratch, &mut out)?;
                }
                // Texts are below 2^32 bytes.
                #[expect(clippy::cast_possible_truncation, reason = "see above")]
                Part::Literal(id, text) => scratch.push(&mut out, (id, text.len() as u32)),
            }
        }
        Ok(out)
    }

    /// Cuts text that a template wrote at its control tokens.
    pub(super) fn split_control<'t>(&self, text: &'t str) -> Vec<Part<'t>> {
        self.control.split(text)
    }

    /// The ids of the segments of a prompt, with exactly one BOS where the model wants one.
    pub(super) fn segment_ids(&self, segments: &[Segment]) -> Result<Vec<TokenId>> {
        let mut ids = Vec::new();
        for segment in segments {
            match segment {
                Segment::Text(text) => ids.append(&mut self.encode_ids(text)?),
                Segment::Control(id) => ids.push(*id),
            }
        }
        if let Some(bos) = self.extras.bos {
            // Some templates write a BOS although the tokenizer adds one.
            let given = ids.iter().take_while(|&&id| id == bos).count();
            ids.drain(..given.saturating_sub(1));
            if given == 0
                && let Some(bos) = self.wanted_bos()
            {
                ids.insert(0, bos);
            }
        }
        Ok(ids)
    }

    fn wanted_bos(&self) -> Option<TokenId> {
        self.extras.bos.filter(|_| self.extras.add_bos)
    }

    /// The exact bytes that the ids stand for. Control tokens and ids outside the vocabulary
    /// add nothing; nothing is cleaned up.
    #[must_use]
    pub fn decode(&self, ids: &[TokenId]) -> Vec<u8> {
        let mut text = Vec::new();
        for &id in ids {
            self.append_bytes(id, &mut text);
        }
        text
    }

    /// [`Tokenizer::decode`] as text, with U+FFFD for what is no UTF-8.
    #[must_use]
    pub fn decode_lossy(&self, ids: &[TokenId]) -> String {
        String::from_utf8_lossy(&self.decode(ids)).into_owned()
    }

    /// Appends the bytes of one token to those of the tokens before it.
    pub(super) fn append_bytes(&self, id: TokenId, text: &mut Vec<u8>) {
        let Some(bytes) = self.token_bytes(id) else { return };
        let strip = self.strip_leading_space && text.is_empty();
        text.extend_from_slice(bytes.strip_prefix(b" ").filter(|_| strip).unwrap_or(bytes));
    }

    /// Whether the first text token loses a leading space.
    pub(super) fn strips_leading_space(&self) -> bool {
        self.strip_leading_space
    }

    /// The bytes that a token adds to a text: none for control tokens. `None` outside the
    /// vocabulary.
    #[must_use]
    pub fn token_bytes(&self, id: TokenId) -> Option<&[u8]> {
        match self.vocab.kind(id)? {
            TokenKind::Control => Some(&[]),
            TokenKind::Normal | TokenKind::Byte => self.vocab.bytes(id),
        }
    }

    /// The vocabulary's own string for an id, for example `Ġhello`.
    #[must_use]
    pub fn piece_text(&self, id: TokenId) -> Option<&str> {
        self.vocab.piece(id)
    }

    /// The kind of an id; ids that stand for nothing count as control. `None` outside the
    /// vocabulary.
    #[must_use]
    pub fn kind(&self, id: TokenId) -> Option<TokenKind> {
        self.vocab.kind(id)
    }

    /// Number of ids that the file gives. A model may have more logits: padding.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.vocab.len()
    }

    /// The control tokens in ascending order. Padding ids, which files give or leave out at
    /// will, are not listed.
    #[must_use]
    pub fn control_ids(&self) -> Vec<TokenId> {
        self.vocab.of(Slot::Control).map(|(_, id)| id).collect()
    }

    /// The id of a control token's text, for example `<|im_end|>`.
    #[must_use]
    pub fn control_id(&self, text: &str) -> Option<TokenId> {
        match self.control.split(text).as_slice() {
            [Part::Literal(id, found)] if *found == text => Some(*id),
            _ => None,
        }
    }

    /// The beginning-of-sequence token.
    #[must_use]
    pub fn bos_id(&self) -> Option<TokenId> {
        self.extras.bos
    }

    /// The tokens that end a generation: those the file names first, then control tokens with
    /// the usual names (`<|im_end|>`, `<|endoftext|>`, `<|eot_id|>`, ...).
    #[must_use]
    pub fn eos_ids(&self) -> &[TokenId] {
        &self.extras.eos
    }

    /// Whether a prompt begins with [`Tokenizer::bos_id`].
    #[must_use]
    pub fn add_bos(&self) -> Bos {
        if self.extras.add_bos { Bos::Add } else { Bos::Omit }
    }

    /// The strings that templates know as `bos_token`, `eos_token`, `pad_token` and `unk_token`.
    pub(super) fn template_tokens(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let extras = &self.extras;
        [
            ("bos_token", extras.bos),
            ("eos_token", extras.eos.first().copied()),
            ("pad_token", extras.pad),
            ("unk_token", extras.unknown),
        ]
        .into_iter()
        .filter_map(|(name, id)| Some((name, self.vocab.piece(id?)?)))
    }

    /// The chat template (Jinja) that comes with the tokenizer.
    #[must_use]
    pub fn chat_template(&self) -> Option<&str> {
        self.extras.template.as_deref()
    }

    /// SHA-256, as 64 hexadecimal digits, of everything that decides which ids a text has. Equal
    /// for the GGUF and the `tokenizer.json` of one model. `docs/tokenizers.md` gives the form.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The file.
    #[must_use]
    pub fn origin(&self) -> &Path {
        &self.origin
    }
}

/// Completes the list of tokens that end a generation by the usual names.
pub(super) fn complete_eos(eos: &mut Vec<TokenId>, vocab: &Vocab) {
    const USUAL: [&str; 7] = [
        "<|im_end|>",
        "<|endoftext|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end_of_text|>",
        "<|end|>",
        "</s>",
    ];
    for (piece, id) in vocab.of(Slot::Control) {
        if USUAL.contains(&piece) && !eos.contains(&id) {
            eos.push(id);
        }
    }
}
