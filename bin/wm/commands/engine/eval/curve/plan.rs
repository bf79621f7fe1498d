//! What a run measures: settings, lengths, rates and attacks.

use std::fmt;

use anyhow::Result;
use greenmark::Error;
use greenmark::document::Share;
use greenmark::engine::{Mark, TextEngine};
use greenmark::prf::Key;
use greenmark::profile::{Delta, Gamma};
use greenmark::stats::LogProbability;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::BATCH;
use crate::args::{EvalCurveArgs, MarkArgs, SchemeName};
use crate::commands::engine::prepare::join_mark;
use crate::resolve::{ExplicitMark, NamedKey};

const TEXTS: usize = 60;
const QUICK_TEXTS: usize = 20;
/// More would take days on any machine that this runs on.
const MAX_TEXTS: usize = 100_000;
const DELTAS: [f64; 5] = [0.0, 1.0, 2.0, 3.0, 5.0];
const QUICK_DELTAS: [f64; 3] = [0.0, 2.0, 5.0];
const GAMMAS: [f64; 2] = [0.25, 0.5];
const QUICK_GAMMAS: [f64; 1] = [0.5];
const LENGTHS: [usize; 3] = [25, 50, 100];

/// The false positive rates at which detection is measured, and their names.
pub(super) const RATES: [(f64, &str); 2] = [(1e-3, "1e-3"), (1e-5, "1e-5")];
/// The shares of a text that attacks touch.
pub(super) const SHARES: [f64; 3] = [0.1, 0.3, 0.5];

/// A scheme with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "scheme", rename_all = "kebab-case")]
pub(super) enum Setting {
    GreenList { gamma: f64, delta: f64 },
    Gumbel,
}

impl Setting {
    /// A mark that changes nothing.
    pub(super) const DELTA_ZERO: Self = Self::GreenList { gamma: 0.5, delta: 0.0 };

    pub(super) fn marks(self) -> bool {
        !matches!(self, Self::GreenList { delta: 0.0, .. })
    }

    /// The mark of text `index`, under a key of its own.
    pub(super) fn mark(self, engine: &TextEngine, seed: u64, index: u32) -> Result<Mark> {
        let flags = match self {
            Self::GreenList { gamma, delta } => {
                MarkArgs { gamma: Some(gamma), delta: Some(delta), ..MarkArgs::default() }
            }
            Self::Gumbel => MarkArgs { scheme: Some(SchemeName::Gumbel), ..MarkArgs::default() },
        };
        let key = NamedKey::new(text_key(seed, index), "eval-curve");
        join_mark(ExplicitMark::resolve(&flags)?, &key, engine)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GreenList { gamma, delta } => write!(f, "green-list gamma {gamma} delta {delta}"),
            Self::Gumbel => write!(f, "gumbel"),
        }
    }
}

/// A key for a repeatable measurement. It protects nothing.
pub(super) fn text_key(seed: u64, index: u32) -> Key {
    let mut hash = Sha256::new();
    hash.update(b"greenmark/eval-text-key/1");
    hash.update(seed.to_le_bytes());
    hash.update(index.to_le_bytes());
    Key::from_bytes(hash.finalize().into())
}

/// The validated flags.
pub(super) struct Plan {
    pub(super) texts: usize,
    pub(super) tokens: usize,
    pub(super) seed: u64,
    pub(super) settings: Vec<Setting>,
    /// The lengths at which the texts are cut, ascending, the whole last.
    pub(super) lengths: Vec<usize>,
}

impl Plan {
    pub(super) fn new(args: &EvalCurveArgs) -> Result<Self> {
        let texts = args.texts.unwrap_or(if args.quick { QUICK_TEXTS } else { TEXTS });
        if !(2..=MAX_TEXTS).contains(&texts) {
            let allowed = format!("2 to {MAX_TEXTS}: intervals need a spread");
            return Err(Error::parameter("texts", texts, allowed).into());
        }
        if args.tokens == 0 {
            return Err(Error::parameter("tokens", 0, "at least 1").into());
        }
        let (deltas, gammas): (&[f64], &[f64]) =
            if args.quick { (&QUICK_DELTAS, &QUICK_GAMMAS) } else { (&DELTAS, &GAMMAS) };
        let mut settings = Vec::new();
        for &gamma in args.gammas.as_deref().unwrap_or(gammas) {
            let gamma = Gamma::new(gamma)?.get();
            for &delta in args.deltas.as_deref().unwrap_or(deltas) {
                let delta = Delta::new(delta)?.get();
                settings.push(Setting::GreenList { gamma, delta });
            }
        }
        settings.push(Setting::Gumbel);
        let shorter = LENGTHS.into_iter().filter(|&length| length < args.tokens);
        Ok(Self {
            texts,
            tokens: args.tokens,
            seed: args.seed,
            settings,
            lengths: shorter.chain([args.tokens]).collect(),
        })
    }

    /// The number of texts that are written again with delta 0.
    pub(super) fn checked(&self) -> usize {
        self.texts.min(BATCH)
    }
}

/// [`RATES`] as the tests take them.
pub(super) fn log_rates() -> [LogProbability; 2] {
    RATES.map(|(rate, _)| LogProbability::from_ln(rate.ln()))
}

/// [`SHARES`] as the attacks take them.
pub(super) fn shares() -> Result<Vec<Share>> {
    Ok(SHARES.into_iter().map(Share::new).collect::<Result<_, _>>()?)
}
