//! A profile and its key, ready to mark texts and to say how well they can be detected.
//!
//! No verdict is made here: what is told of a text is a prediction from the model's own
//! probabilities, over random keys.

use std::sync::Arc;

use super::generation::Generation;
use crate::detect::entropy::{Detectability, GreenListBias, Levels, detectability};
use crate::detect::{Alpha, Evidence, Outcome, gather};
use crate::document::{Detector, identify, never_marked};
use crate::error::Result;
use crate::prf::Key;
use crate::profile::{Profile, SchemeParameters};
use crate::scheme::{Greedy, Marker, Scheme, build};
use crate::text::Tokenizer;
use crate::token::{TokenId, TokenSet};

/// A mark, ready to be given to requests. Immutable and shared between threads.
#[derive(Debug)]
pub struct Mark {
    profile: Profile,
    scheme: Arc<dyn Scheme>,
    never_marked: Arc<TokenSet>,
}

impl Mark {
    /// The mark of `profile` under `key`, on the ids of `tokenizer`.
    ///
    /// # Errors
    /// [`crate::Error::Mismatch`] when the profile names another tokenizer or key.
    pub fn new(profile: Profile, key: &Key, tokenizer: &Tokenizer) -> Result<Self> {
        profile.require("the profile", &identify(tokenizer), key.fingerprint())?;
        let never_marked = Arc::new(never_marked(tokenizer, tokenizer.vocab_size())?);
        Ok(Self { scheme: build(&profile, key).into(), profile, never_marked })
    }

    /// The mark that `detector` looks for.
    #[must_use]
    pub fn of(detector: &Detector) -> Self {
        Self {
            profile: detector.profile().clone(),
            scheme: detector.shared_scheme(),
            never_marked: detector.never_marked(),
        }
    }

    /// The profile.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The state of one request.
    #[must_use]
    pub fn marker(&self) -> Marker {
        Marker::new(Arc::clone(&self.scheme), *self.profile.context())
    }

    /// What greedy decoding does to the mark. [`Greedy::Refused`] also means that the mark
    /// replaces the draw's own noise: the samples of one request begin alike.
    #[must_use]
    pub fn greedy(&self) -> Greedy {
        self.scheme.greedy()
    }

    /// The bias, for schemes that have one.
    #[must_use]
    pub fn bias(&self) -> Option<GreenListBias> {
        GreenListBias::of(self.profile.scheme())
    }

    /// What a detector that knows no prompt counts in `ids`.
    #[must_use]
    pub fn evidence(&self, ids: &[TokenId]) -> Evidence {
        gather(&*self.scheme, &self.never_marked, &[], ids)
    }

    /// The z that a detector without the prompt is expected to find; `None` for schemes without
    /// a prediction.
    #[must_use]
    pub fn predicted_z(&self, text: &Generation) -> Option<f64> {
        let SchemeParameters::GreenList { gamma, delta } = self.profile.scheme() else {
            return None;
        };
        text.predicted_z(&self.evidence(&text.ids), gamma.effective(), delta.get())
    }

    /// How well the text can be told by a detector that knows no prompt, over random keys: by
    /// `wm detect` with the plain count, which has all of the default alpha, and by
    /// `wm detect --entropy` with the likelihood ratio, which has half of it. `None` where the
    /// chances were not measured, and for schemes without a prediction.
    #[must_use]
    pub fn expected(&self, text: &Generation) -> Option<Detectability> {
        let evidence = self.evidence(&text.ids);
        let scored = evidence.outcomes.iter().zip(&text.steps);
        let tokens: Vec<_> = scored
            .filter(|(outcome, _)| matches!(outcome, Outcome::Scored(_)))
            .map(|(_, step)| Some(step.uncertainty()))
            .collect();
        let alpha = Alpha::default();
        let levels = Levels { plain: alpha, likelihood_ratio: alpha.shared(2), min_scored: 1 };
        detectability(self.bias()?, &tokens, levels)
    }
}
