//! The chain once more, written for clarity only: f64, full sorts, the platform's exp and ln. It
//! shares the definitions of `docs/sampling.md` with the library and no code.

use std::collections::{BTreeMap, BTreeSet};

use greenmark::sample::{MirostatMode, Order, Preset, SamplingOptions};
use greenmark::token::TokenId;

const TOLERANCE: f64 = 1e-7;

/// Id and logit, ids ascending.
pub(crate) type Logits = Vec<(TokenId, f64)>;

/// What a member looks at.
pub(crate) struct Inputs<'a> {
    pub(crate) options: &'a SamplingOptions,
    pub(crate) prompt: &'a [TokenId],
    pub(crate) generated: &'a [TokenId],
    pub(crate) end_ids: &'a [TokenId],
    /// Whether XTC's coin says that it acts.
    pub(crate) xtc_acts: bool,
    pub(crate) mu: f64,
}

/// The probabilities of logits, in their order.
pub(crate) fn softmax(logits: &[(TokenId, f64)]) -> Vec<f64> {
    let max = logits.iter().map(|&(_, logit)| logit).fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|&(_, logit)| (logit - max).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

/// The logits that all members leave.
pub(crate) fn apply(inputs: &Inputs<'_>, logits: &[f32]) -> Logits {
    let order = inputs.options.order.clone().unwrap_or_default();
    let mut left: Logits = (0..).zip(logits.iter().map(|&logit| f64::from(logit))).collect();
    let has_mirostat =
        inputs.options.mirostat.is_some_and(|mirostat| mirostat.mode != MirostatMode::Off);
    for &member in order.members() {
        let truncation =
            ["top_n_sigma", "top_k", "top_p", "min_p", "xtc", "typical", "epsilon", "eta"];
        if !(has_mirostat && truncation.contains(&member)) {
            edit(member, inputs, &order, &mut left);
            truncate(member, inputs, &mut left);
        }
        left.retain(|&(_, logit)| logit > f64::NEG_INFINITY);
    }
    left
}

fn counts(inputs: &Inputs<'_>, order: &Order, output_only: bool) -> BTreeMap<TokenId, f64> {
    let both: Vec<TokenId> = inputs.prompt.iter().chain(inputs.generated).copied().collect();
    let window = match (inputs.options.penalty_last_n, order.preset()) {
        (Some(length), _) => Some(length),
        (None, Some(Preset::LlamaCpp)) => Some(64),
        _ => None,
    };
    let scope = match window {
        Some(length) => &both[both.len().saturating_sub(length)..],
        None if output_only => inputs.generated,
        None => &both,
    };
    let mut counts = BTreeMap::new();
    for &id in scope {
        *counts.entry(id).or_default() += 1.0;
    }
    counts
}

fn edit(member: &str, inputs: &Inputs<'_>, order: &Order, left: &mut Logits) {
    let options = inputs.options;
    let both: Vec<TokenId> = inputs.prompt.iter().chain(inputs.generated).copied().collect();
    let mut change = |id: TokenId, by: &dyn Fn(f64) -> f64| {
        for entry in left.iter_mut().filter(|entry| entry.0 == id) {
            entry.1 = by(entry.1);
        }
    };
    let banned = |_: f64| f64::NEG_INFINITY;
    match member {
        "logit_bias" => {
            for (&id, bias) in options.logit_bias.iter().flatten() {
                change(id, &|logit| logit + f64::from(bias.0));
            }
        }
        "allowed_tokens" => {
            if let Some(allowed) = &options.allowed_tokens {
                let allowed: BTreeSet<_> = allowed.iter().collect();
                left.retain(|(id, _)| allowed.contains(id));
            }
        }
        "bad_words" => {
            for word in options.bad_words.iter().flatten() {
                if both.ends_with(&word[..word.len() - 1]) {
                    change(word[word.len() - 1], &banned);
                }
            }
        }
        "min_tokens" if inputs.generated.len() < options.min_tokens.unwrap_or(0) => {
            inputs.end_ids.iter().for_each(|&id| change(id, &banned));
        }
        "repetition" => {
            let penalty = options.repetition_penalty.unwrap_or(1.0);
            for id in counts(inputs, order, false).into_keys() {
                change(id, &|l| if l < 0.0 { l * penalty } else { l / penalty });
            }
        }
        "frequency" => {
            let coefficient = options.frequency_penalty.unwrap_or(0.0);
            for (id, count) in counts(inputs, order, true) {
                change(id, &|logit| logit - count * coefficient);
            }
        }
        "presence" => {
            let coefficient = options.presence_penalty.unwrap_or(0.0);
            for id in counts(inputs, order, true).into_keys() {
                change(id, &|logit| logit - coefficient);
            }
        }
        "dry" => {
            for (id, penalty) in dry(inputs, &both) {
                change(id, &|logit| logit - penalty);
            }
        }
        "no_repeat_ngram" => {
            let size = options.no_repeat_ngram_size.unwrap_or(0);
            if size > 0 && both.len() >= size {
                let start = &both[both.len() + 1 - size..];
                for window in both.windows(size).filter(|window| window.starts_with(start)) {
                    change(window[size - 1], &banned);
                }
            }
        }
        "temperature" => {
            let temperature = options.temperature.unwrap_or(1.0);
            for entry in left.iter_mut() {
                entry.1 /= temperature;
            }
        }
        _ => {}
    }
}

fn dry(inputs: &Inputs<'_>, both: &[TokenId]) -> BTreeMap<TokenId, f64> {
    let mut penalties = BTreeMap::new();
    let Some(options) = &inputs.options.dry else { return penalties };
    let holds_breaker = |suffix: &[TokenId]| {
        options
            .sequence_breakers
            .iter()
            .any(|breaker| suffix.windows(breaker.len()).any(|window| window == breaker))
    };
    for end in 1..both.len() {
        let mut length = 0;
        while length < end
            && both[end - 1 - length] == both[both.len() - 1 - length]
            && !holds_breaker(&both[both.len() - 1 - length..])
        {
            length += 1;
        }
        if length >= options.allowed_length {
            let excess = i32::try_from(length - options.allowed_length).expect("short");
            let penalty = options.multiplier * options.base.powi(excess);
            let entry = penalties.entry(both[end]).or_insert(0.0);
            *entry = penalty.max(*entry);
        }
    }
    penalties
}

/// Keeps the first entries of `order` whose mass before them is below `limit`.
fn prefix(left: &mut Logits, mut order: Vec<(f64, usize)>, limit: f64, at_least: usize) {
    let p = softmax(left);
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut before = 0.0;
    let mut kept = BTreeSet::new();
    for (rank, (_, index)) in order.into_iter().enumerate() {
        if rank < at_least || before < limit {
            kept.insert(left[index].0);
        }
        before += p[index];
    }
    left.retain(|(id, _)| kept.contains(id));
}

/// Indices with the key that sorts the best logit first.
fn best_first(left: &Logits) -> Vec<(f64, usize)> {
    left.iter().enumerate().map(|(index, &(_, logit))| (-logit, index)).collect()
}

/// Keeps the entries for which `keep` says so, and the `at_least` best.
fn threshold(left: &mut Logits, at_least: usize, keep: impl Fn(f64, f64) -> bool) {
    let p = softmax(left);
    let mut order = best_first(left);
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let kept: BTreeSet<TokenId> = order
        .iter()
        .enumerate()
        .filter(|&(rank, &(_, index))| rank < at_least || keep(p[index], left[index].1))
        .map(|(_, &(_, index))| left[index].0)
        .collect();
    left.retain(|(id, _)| kept.contains(id));
}

fn entropy(p: &[f64]) -> f64 {
    p.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln()).sum()
}

fn truncate(member: &str, inputs: &Inputs<'_>, left: &mut Logits) {
    let options = inputs.options;
    let at_least = options.min_tokens_to_keep.unwrap_or(1);
    let p = softmax(left);
    match member {
        "top_n_sigma" => {
            let n = options.top_n_sigma.unwrap_or(0.0);
            if n > 0.0 {
                let count = left.len() as f64;
                let mean = left.iter().map(|entry| entry.1).sum::<f64>() / count;
                let variance = left.iter().map(|entry| (entry.1 - mean).powi(2)).sum::<f64>();
                let max = left.iter().map(|entry| entry.1).fold(f64::NEG_INFINITY, f64::max);
                let lowest = max - n * (variance / count).sqrt();
                threshold(left, at_least, |_, logit| logit >= lowest);
            }
        }
        "top_k" => {
            let k = usize::try_from(options.top_k.unwrap_or(0)).unwrap_or(0);
            if k > 0 {
                threshold(left, k.max(at_least), |_, _| false);
            }
        }
        "top_p" => {
            if let Some(top_p) = options.top_p.filter(|&top_p| top_p < 1.0) {
                let order = best_first(left);
                prefix(left, order, top_p - TOLERANCE, at_least);
            }
        }
        "min_p" => {
            let limit = options.min_p.unwrap_or(0.0) * p.iter().copied().fold(0.0, f64::max);
            threshold(left, at_least, |p, _| p >= limit - TOLERANCE);
        }
        "xtc" => {
            if let Some(xtc) = options.xtc.filter(|_| inputs.xtc_acts) {
                let mut likely: Vec<(f64, usize)> = best_first(left)
                    .into_iter()
                    .filter(|&(_, index)| p[index] >= xtc.threshold - TOLERANCE)
                    .collect();
                likely.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                likely.pop();
                let gone: BTreeSet<TokenId> =
                    likely.into_iter().map(|(_, index)| left[index].0).collect();
                left.retain(|(id, _)| !gone.contains(id));
            }
        }
        "typical" => {
            if let Some(mass) = options.typical_p.filter(|&mass| mass < 1.0) {
                let entropy = entropy(&p);
                let order =
                    p.iter().enumerate().map(|(i, p)| ((-p.ln() - entropy).abs(), i)).collect();
                prefix(left, order, mass - TOLERANCE, at_least);
            }
        }
        "epsilon" => {
            let limit = options.epsilon_cutoff.unwrap_or(0.0);
            threshold(left, at_least, |p, _| p >= limit - TOLERANCE);
        }
        "eta" => {
            let epsilon = options.eta_cutoff.unwrap_or(0.0);
            let limit = epsilon.min(epsilon.sqrt() * (-entropy(&p)).exp());
            threshold(left, at_least, |p, _| p >= limit - TOLERANCE);
        }
        "mirostat" => match options.mirostat.map(|mirostat| mirostat.mode) {
            Some(MirostatMode::V1) => {
                let k = zipf_k(left, inputs.mu);
                threshold(left, k, |_, _| false);
            }
            Some(MirostatMode::V2) => {
                threshold(left, 1, |p, _| p >= (-inputs.mu).exp2() - TOLERANCE);
            }
            _ => {}
        },
        _ => {}
    }
}

/// Basu et al. 2020, equation for k with Zipf's exponent from the 100 best tokens.
fn zipf_k(left: &Logits, mu: f64) -> usize {
    let mut p = softmax(left);
    p.sort_by(|a, b| b.total_cmp(a));
    p.truncate(100);
    let (mut products, mut squares) = (0.0, 0.0);
    for (index, pair) in p.windows(2).enumerate() {
        let t = ((index + 2) as f64 / (index + 1) as f64).ln();
        products += t * (pair[0] / pair[1]).ln();
        squares += t * t;
    }
    let s = products / squares;
    let e = s - 1.0;
    let count = left.len() as f64;
    let k = (e * mu.exp2() / (1.0 - count.powf(-e))).powf(1.0 / s).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let k = k as usize;
    k.clamp(1, left.len())
}
