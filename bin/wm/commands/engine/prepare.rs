//! What generation needs beside the model: the chain with its defaults, and the mark.

use std::sync::Arc;

use anyhow::Result;
use greenmark::detect::entropy::{Detectability, GreenListBias, Levels, detectability};
use greenmark::detect::{Alpha, Evidence, Outcome, gather};
use greenmark::document::{self, identify};
use greenmark::engine::{Generation, GenerationDefaults, never_marked};
use greenmark::profile::{Profile, SchemeParameters};
use greenmark::sample::{Chain, SamplingOptions};
use greenmark::scheme::{Greedy, Marker, Scheme, build};
use greenmark::token::{TokenId, TokenSet};

use super::loaded::Loaded;
use crate::args::{KeyArgs, MarkArgs};
use crate::resolve::{ExplicitMark, KeySource, NamedKey, resolve_key};

/// A mark, ready to be given to requests.
pub(super) struct Mark {
    pub(super) profile: Profile,
    scheme: Arc<dyn Scheme>,
    never_marked: TokenSet,
}

impl Mark {
    /// The mark that the flags make; the key is made when the user has none.
    pub(super) fn resolve(mark: &MarkArgs, key: &KeyArgs, loaded: &Loaded) -> Result<Self> {
        // Wrong flags are refused before a key is made.
        let explicit = ExplicitMark::resolve(mark)?;
        // A fresh key cannot be the one that a profile names.
        let source =
            if mark.profile.is_some() { KeySource::Existing } else { KeySource::CreateDefault };
        let key = resolve_key(key, source)?;
        Self::new(explicit, &key, loaded)
    }

    pub(super) fn new(explicit: ExplicitMark, key: &NamedKey, loaded: &Loaded) -> Result<Self> {
        let profile = explicit.profile(identify(&loaded.tokenizer), key)?;
        let tokenizer = &loaded.tokenizer;
        let never_marked = document::never_marked(tokenizer, tokenizer.vocab_size())?;
        let scheme = build(&profile, &key.key).into();
        Ok(Self { profile, scheme, never_marked })
    }

    /// The state of one request.
    pub(super) fn marker(&self) -> Marker {
        Marker::new(Arc::clone(&self.scheme), *self.profile.context())
    }

    /// The z that a detector without the prompt is expected to find; `None` for schemes without
    /// a prediction.
    pub(super) fn predicted_z(&self, text: &Generation) -> Option<f64> {
        let SchemeParameters::GreenList { gamma, delta } = self.profile.scheme() else {
            return None;
        };
        let evidence = gather(&*self.scheme, &self.never_marked, &[], &text.ids);
        text.predicted_z(&evidence, gamma.effective(), delta.get())
    }

    /// The bias, for schemes that have one.
    pub(super) fn bias(&self) -> Option<GreenListBias> {
        GreenListBias::of(self.profile.scheme())
    }

    /// What a detector that knows no prompt counts in `ids`.
    pub(super) fn evidence(&self, ids: &[TokenId]) -> Evidence {
        gather(&*self.scheme, &self.never_marked, &[], ids)
    }

    /// How well the text can be told by a detector that knows no prompt, over random keys: by
    /// `wm detect` with the plain count, which has all of the default alpha, and by
    /// `wm detect --entropy` with the likelihood ratio, which has half of it. `None` where the chances were not measured, and for schemes without a
    /// prediction.
    pub(super) fn expected(&self, text: &Generation) -> Option<Detectability> {
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

    /// Whether the samples of one request begin alike: the mark replaces the draw's own noise.
    pub(super) fn is_keyed_draw(&self) -> bool {
        self.scheme.greedy() == Greedy::Refused
    }
}

/// The chain of a run: flags over the model's own defaults over the built-in values.
pub(super) fn chain(
    options: SamplingOptions,
    loaded: &Loaded,
    end_ids: &[TokenId],
) -> Result<Arc<Chain>> {
    let info = loaded.model.info();
    let never_marked = Arc::new(never_marked(info, &loaded.tokenizer)?);
    let options = options.over(model_defaults(&info.defaults));
    Ok(Arc::new(Chain::new(options, info.vocab_size, end_ids, never_marked)?))
}

/// `generation_config.json` as options. A model that says `do_sample: false` is decoded greedily
/// by its authors' engine, whatever its temperature.
fn model_defaults(defaults: &GenerationDefaults) -> SamplingOptions {
    let whole = |value: Option<u64>| value.and_then(|value| i64::try_from(value).ok());
    SamplingOptions {
        temperature: match defaults.do_sample {
            Some(false) => Some(0.0),
            _ => defaults.temperature,
        },
        top_k: whole(defaults.top_k),
        top_p: defaults.top_p,
        min_p: defaults.min_p,
        typical_p: defaults.typical_p,
        epsilon_cutoff: defaults.epsilon_cutoff,
        eta_cutoff: defaults.eta_cutoff,
        repetition_penalty: defaults.repetition_penalty,
        no_repeat_ngram_size: defaults
            .no_repeat_ngram_size
            .and_then(|value| usize::try_from(value).ok()),
        ..SamplingOptions::default()
    }
}
