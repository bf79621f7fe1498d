//! A tokenizer, a profile and a key, joined once; texts in, reports out.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::sentences::sentences;
use super::sidecar::sha256_hex;
use super::warnings::{byte_order_mark, text_warnings};
use crate::detect::entropy::EntropyInput;
use crate::detect::{
    DetectOptions, Look, Report, ReportContext, SentenceRange, Sentences, gather, test_sentences,
};
use crate::error::{Error, Result};
use crate::prf::Key;
use crate::profile::{Profile, PromptContext, TokenizerIdentity};
use crate::scheme::{Scheme, build};
use crate::text::{Normalizer, Tokenizer, normalize};
use crate::token::{CharRanges, Piece, TokenId, TokenSet, check_ids};

/// The identity of a tokenizer as a profile names it.
#[must_use]
pub fn identify(tokenizer: &Tokenizer) -> TokenizerIdentity {
    let mut ids = tokenizer.control_ids();
    ids.sort_unstable();
    let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    TokenizerIdentity {
        fingerprint: tokenizer.fingerprint().to_owned(),
        never_marked: sha256_hex(&bytes),
    }
}

/// The ids of `tokenizer` that are never marked and never scored, among `vocab` ids: its control
/// tokens. A model may have more ids than its tokenizer; those behind it never stand in a text.
///
/// # Errors
/// [`Error::TokenOutOfRange`] when `vocab` is smaller than the tokenizer's vocabulary.
pub fn never_marked(tokenizer: &Tokenizer, vocab: usize) -> Result<TokenSet> {
    let padding = (0..).take(vocab).skip(tokenizer.vocab_size());
    TokenSet::from_ids(vocab, tokenizer.control_ids().into_iter().chain(padding))
}

/// What a detection is told beside the text.
#[derive(Clone, Debug, Default)]
pub struct Circumstances<'a> {
    /// The prompt, which gives the first tokens their context and is not scored.
    pub prompt: Option<&'a str>,
    /// A second look is taken after these changes; both looks are paid for.
    pub normalizers: &'a [Normalizer],
    /// Sampling parameters from a sidecar, for the report.
    pub generation: Option<Value>,
    /// The model's uncertainty at each of [`Detector::pieces`]; adds the tests that need it.
    pub entropy: Option<EntropyInput>,
}

/// Judges texts under one profile and key. Immutable and shareable between threads.
#[derive(Clone, Debug)]
pub struct Detector {
    tokenizer: Arc<Tokenizer>,
    never_marked: Arc<TokenSet>,
    scheme: Arc<dyn Scheme>,
    profile: Arc<Profile>,
    options: DetectOptions,
}

impl Detector {
    /// Joins the parts.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when the profile names another tokenizer or key: the result would be a
    /// z near 0 that says nothing.
    pub fn new(
        tokenizer: Arc<Tokenizer>,
        profile: Profile,
        key: &Key,
        options: DetectOptions,
    ) -> Result<Self> {
        profile.require("the profile", &identify(&tokenizer), key.fingerprint())?;
        let never_marked = never_marked(&tokenizer, tokenizer.vocab_size())?;
        Ok(Self {
            scheme: build(&profile, key).into(),
            never_marked: Arc::new(never_marked),
            tokenizer,
            profile: Arc::new(profile),
            options,
        })
    }

    /// The same tokenizer under another profile.
    ///
    /// # Errors
    /// As [`Detector::new`].
    pub fn with_profile(
        &self,
        profile: Profile,
        key: &Key,
        options: DetectOptions,
    ) -> Result<Self> {
        Self::new(Arc::clone(&self.tokenizer), profile, key, options)
    }

    /// The same profile and key under other options; cheap.
    #[must_use]
    pub fn with_options(&self, options: DetectOptions) -> Self {
        Self { options, ..self.clone() }
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &DetectOptions {
        &self.options
    }

    /// The effective profile.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The tokenizer, for who keeps it longer.
    #[must_use]
    pub fn shared_tokenizer(&self) -> Arc<Tokenizer> {
        Arc::clone(&self.tokenizer)
    }

    /// The scheme under the key, for who marks or counts with it.
    #[must_use]
    pub fn shared_scheme(&self) -> Arc<dyn Scheme> {
        Arc::clone(&self.scheme)
    }

    /// The ids that are never scored.
    #[must_use]
    pub fn never_marked(&self) -> Arc<TokenSet> {
        Arc::clone(&self.never_marked)
    }

    /// Judges the bytes of a text file.
    ///
    /// The bytes are encoded as they are; only one leading byte-order mark is left out, with a
    /// warning.
    ///
    /// # Errors
    /// [`Error::File`] naming the byte where `bytes` are not UTF-8.
    pub fn bytes(
        &self,
        name: &Path,
        bytes: &[u8],
        circumstances: &Circumstances<'_>,
    ) -> Result<Report> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            Error::file(
                name,
                error.valid_up_to() as u64,
                "the text is not UTF-8",
                "convert it first, for example: iconv -f LATIN1 -t UTF-8",
            )
        })?;
        self.text(text, circumstances)
    }

    /// Judges a text; see [`Detector::bytes`].
    ///
    /// # Errors
    /// As the tokenizer's.
    pub fn text(&self, text: &str, circumstances: &Circumstances<'_>) -> Result<Report> {
        let normalizers = circumstances.normalizers;
        let mut warnings = Vec::new();
        let (body, skipped) = match text.strip_prefix('\u{feff}') {
            Some(body) => {
                warnings.push(byte_order_mark());
                (body, '\u{feff}'.len_utf8())
            }
            None => (text, 0),
        };
        warnings.extend(text_warnings(body, normalizers));
        let prompt = self.prompt_ids(circumstances.prompt)?;
        let pieces = self.shifted_pieces(body, skipped)?;
        let mut looks = vec![self.look(Vec::new(), &prompt, pieces)];
        if !normalizers.is_empty() {
            let changed = normalize(body, normalizers);
            let mut pieces = self.tokenizer.encode(changed.text())?;
            let mut ranges = CharRanges::new(body);
            for piece in &mut pieces {
                piece.bytes = changed.original_range(piece.bytes.clone());
                piece.chars = ranges.advance(piece.bytes.end);
                shift(piece, skipped);
            }
            let names = normalizers.iter().map(|normalizer| normalizer.name()).collect();
            looks.push(self.look(names, &prompt, pieces));
        }
        let context = ReportContext {
            profile: &self.profile,
            input_sha256: sha256_hex(text.as_bytes()),
            warnings,
            generation: circumstances.generation.clone(),
            entropy: circumstances.entropy.clone(),
        };
        let mut report = Report::new(&*self.scheme, &looks, &self.options, context);
        if self.options.sentences == Sentences::Include {
            let ranges = sentence_ranges(body, skipped);
            report.sentences =
                Some(test_sentences(self.scheme.null(), &looks[0], &ranges, self.options.profiles));
        }
        Ok(report)
    }

    /// Judges token ids; `input_sha256` is that of the input they were read from.
    ///
    /// # Errors
    /// [`Error::TokenOutOfRange`] naming the position and the id.
    pub fn ids(
        &self,
        ids: &[TokenId],
        input_sha256: String,
        prompt: Option<&str>,
    ) -> Result<Report> {
        check_ids(ids, self.tokenizer.vocab_size())?;
        let prompt = self.prompt_ids(prompt)?;
        let context = ReportContext {
            profile: &self.profile,
            input_sha256,
            warnings: Vec::new(),
            generation: None,
            entropy: None,
        };
        let look = Look {
            normalization: Vec::new(),
            ids: ids.to_vec(),
            pieces: Vec::new(),
            evidence: gather(&*self.scheme, &self.never_marked, &prompt, ids),
        };
        let looks = [look];
        Ok(Report::new(&*self.scheme, &looks, &self.options, context))
    }

    /// The tokens of a text as it is judged: without a leading byte-order mark, at their places in
    /// the text.
    ///
    /// # Errors
    /// As the tokenizer's.
    pub fn pieces(&self, text: &str) -> Result<Vec<Piece>> {
        match text.strip_prefix('\u{feff}') {
            Some(body) => self.shifted_pieces(body, '\u{feff}'.len_utf8()),
            None => self.shifted_pieces(text, 0),
        }
    }

    /// The pieces of `body`, which stands `skipped` bytes (a byte-order mark or nothing) into the
    /// original.
    fn shifted_pieces(&self, body: &str, skipped: usize) -> Result<Vec<Piece>> {
        let mut pieces = self.tokenizer.encode(body)?;
        for piece in &mut pieces {
            shift(piece, skipped);
        }
        Ok(pieces)
    }

    /// The ids of a prompt as generation read it: without a leading byte-order mark, and with the
    /// start token where the model wants one.
    fn prompt_ids(&self, prompt: Option<&str>) -> Result<Vec<TokenId>> {
        // Under the rule `none` a prompt seeds nothing.
        let seeds = self.profile.context().prompt == PromptContext::Tail;
        let Some(prompt) = prompt.filter(|_| seeds) else { return Ok(Vec::new()) };
        self.tokenizer.prompt_ids(prompt.strip_prefix('\u{feff}').unwrap_or(prompt))
    }

    fn look(
        &self,
        normalization: Vec<&'static str>,
        prompt: &[TokenId],
        pieces: Vec<Piece>,
    ) -> Look {
        let ids: Vec<TokenId> = pieces.iter().map(|piece| piece.id).collect();
        let evidence = gather(&*self.scheme, &self.never_marked, prompt, &ids);
        Look { normalization, ids, pieces, evidence }
    }
}

/// The sentences of `body`, which stands `skipped` bytes (a byte-order mark or nothing) into the
/// original.
fn sentence_ranges(body: &str, skipped: usize) -> Vec<SentenceRange> {
    let characters = usize::from(skipped > 0);
    let mut ranges = CharRanges::new(body);
    let mut place = |bytes: Range<usize>| {
        ranges.advance(bytes.start);
        let chars = ranges.advance(bytes.end);
        SentenceRange {
            bytes: bytes.start + skipped..bytes.end + skipped,
            chars: chars.start + characters..chars.end + characters,
        }
    };
    sentences(body).into_iter().map(&mut place).collect()
}

/// Moves a piece behind the `skipped` bytes of a byte-order mark, which is one character.
fn shift(piece: &mut Piece, skipped: usize) {
    let characters = usize::from(skipped > 0);
    piece.bytes = piece.bytes.start + skipped..piece.bytes.end + skipped;
    piece.chars = piece.chars.start + characters..piece.chars.end + characters;
}
