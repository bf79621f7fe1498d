//! Whether a text is marked, and what an enforced mark does not let a request do.

use super::bounds::EnforceBounds;
use super::bounds::unbounded;
use super::settings::Policy;
use crate::engine::Mark;
use crate::error::{Error, Result};
use crate::profile::{PromptContext, SchemeParameters};
use crate::sample::{GREEDY_BELOW, SamplingOptions};
use crate::server::error::ApiError;

/// What a request says of the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish<'a> {
    pub(super) watermark: Option<bool>,
    pub(super) profile: Option<&'a str>,
}

/// Whether the text is marked.
///
/// # Errors
/// 403 when an enforced mark is to be left out; 400 when the request contradicts itself.
pub(super) fn is_marked(policy: Policy, wish: Wish<'_>) -> Result<bool, ApiError> {
    let Wish { watermark, profile } = wish;
    if policy == Policy::Enforce && watermark == Some(false) {
        let message = "watermark: false is not allowed: the operator marks every text";
        return Err(ApiError::forbidden("watermark_enforced", message).param("watermark"));
    }
    if watermark == Some(false) && profile.is_some() {
        let message = "profile names a watermark and watermark is false; give one of them";
        return Err(ApiError::invalid("watermark", message));
    }
    Ok(match policy {
        Policy::Enforce => true,
        Policy::DefaultOn => watermark != Some(false),
        Policy::OptIn => watermark == Some(true) || profile.is_some(),
    })
}

/// Refuses a profile that leaves unmarked tokens by rule, where every text has to be marked.
///
/// # Errors
/// [`Error::Parameter`] naming the profile.
pub(super) fn check_enforceable(name: &str, mark: &Mark) -> Result<()> {
    let refuse = |why: &str| {
        let allowed = format!("a profile that marks every token under the policy enforce: {why}");
        Err(Error::parameter("generation profile", name, allowed))
    };
    if let SchemeParameters::GreenList { delta, .. } = mark.profile().scheme()
        && delta.get() == 0.0
    {
        return refuse("delta 0 marks nothing");
    }
    if mark.profile().context().prompt == PromptContext::None
        && mark.profile().context().width.get() > 0
    {
        return refuse(
            "without the prompt's tail the first tokens of every reply are unmarked, \
                       and a client may ask for a text in small pieces",
        );
    }
    Ok(())
}

/// Refuses sampling that would take the mark its choice.
///
/// # Errors
/// 403 naming the field, its value and the operator's bound.
pub(super) fn check_bounds(
    bounds: &EnforceBounds,
    options: &SamplingOptions,
    logprobs: Option<usize>,
) -> Result<(), ApiError> {
    let least = |name, value: Option<f64>, least: f64, most: f64| match value {
        Some(value) if !(least..=most).contains(&value) => refuse(name, value, &range(least, most)),
        _ => Ok(()),
    };
    let bound = bounds.min_temperature;
    match options.temperature {
        Some(value) if (GREEDY_BELOW..bound).contains(&value) => {
            return refuse("temperature", value, &format!("0 or at least {bound}"));
        }
        _ => {}
    }
    match options.top_k {
        Some(value) if value > 0 && value < bounds.min_top_k => {
            let allowed = format!("at least {}, or 0 for off", bounds.min_top_k);
            return refuse("top_k", value, &allowed);
        }
        _ => {}
    }
    least("top_p", options.top_p, bounds.min_top_p, f64::INFINITY)?;
    least("min_p", options.min_p, f64::NEG_INFINITY, bounds.max_min_p)?;
    // A coefficient that favours what was seen turns a prompt into a table of biases.
    let most = bounds.max_repetition_penalty.max(1.0);
    least("repetition_penalty", options.repetition_penalty, 1.0, most)?;
    least("presence_penalty", options.presence_penalty, 0.0, 2.0)?;
    least("frequency_penalty", options.frequency_penalty, 0.0, 2.0)?;
    let bound = bounds.max_abs_logit_bias;
    let biases = options.logit_bias.iter().flatten();
    if let Some((id, bias)) = biases.into_iter().find(|(_, bias)| f64::from(bias.0.abs()) > bound) {
        return refuse(&format!("logit_bias.{id}"), bias.0, &format!("-{bound} to {bound}"));
    }
    match logprobs {
        // Even the number of the token drawn is read from the unmarked distribution; with texts
        // drawn again and again it tells which tokens come more often than they should.
        Some(_) if bounds.max_logprobs == 0 => {
            return refuse("logprobs", "a value", "leave it out");
        }
        Some(count) if count > bounds.max_logprobs => {
            let allowed = format!("at most {} alternatives", bounds.max_logprobs);
            return refuse("logprobs", count, &allowed);
        }
        _ => {}
    }
    for (name, acts) in unbounded(options) {
        if acts && !bounds.allow.iter().any(|allowed| allowed == name) {
            return refuse(name, "a value", "leave it out");
        }
    }
    Ok(())
}

fn range(least: f64, most: f64) -> String {
    match (least.is_finite(), most.is_finite()) {
        (true, true) => format!("{least} to {most}"),
        (true, false) => format!("at least {least}"),
        _ => format!("at most {most}"),
    }
}

fn refuse(name: &str, value: impl std::fmt::Display, allowed: &str) -> Result<(), ApiError> {
    let message = format!(
        "{name}: {value} would weaken the watermark, which the operator enforces; allowed: {allowed}"
    );
    Err(ApiError::forbidden("watermark_enforced", message).param(name))
}
