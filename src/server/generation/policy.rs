//! Whether a text is marked, and what an enforced mark does not let a request do.

use super::settings::{EnforceBounds, Policy, UNBOUNDED_FIELDS};
use crate::engine::Mark;
use crate::error::{Error, Result};
use crate::profile::{PromptContext, SchemeParameters};
use crate::sample::{GREEDY_BELOW, MirostatMode, SamplingOptions};
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
    alternatives: usize,
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
    least("repetition_penalty", options.repetition_penalty, 1.0, 2.0)?;
    least("presence_penalty", options.presence_penalty, 0.0, 2.0)?;
    least("frequency_penalty", options.frequency_penalty, 0.0, 2.0)?;
    let bound = bounds.max_abs_logit_bias;
    let biases = options.logit_bias.iter().flatten();
    if let Some((id, bias)) = biases.into_iter().find(|(_, bias)| f64::from(bias.0.abs()) > bound) {
        return refuse(&format!("logit_bias.{id}"), bias.0, &format!("-{bound} to {bound}"));
    }
    if alternatives > bounds.max_logprobs {
        // Who reads the unmarked distribution can draw from it without the service.
        let allowed = format!("at most {} alternatives", bounds.max_logprobs);
        return refuse("logprobs", alternatives, &allowed);
    }
    for name in UNBOUNDED_FIELDS {
        if acts(name, options) && !bounds.allow.iter().any(|allowed| allowed == name) {
            return refuse(name, "a value", "leave it out");
        }
    }
    Ok(())
}

/// Whether an option without a bound is given with a value that does something.
fn acts(name: &str, options: &SamplingOptions) -> bool {
    let differs = |value: Option<f64>, off: f64| value.is_some_and(|value| value != off);
    match name {
        "typical_p" => differs(options.typical_p, 1.0),
        "epsilon_cutoff" => differs(options.epsilon_cutoff, 0.0),
        "eta_cutoff" => differs(options.eta_cutoff, 0.0),
        "top_n_sigma" => differs(options.top_n_sigma, 0.0),
        "mirostat" => options.mirostat.is_some_and(|given| given.mode != MirostatMode::Off),
        "bad_words" => options.bad_words.as_ref().is_some_and(|words| !words.is_empty()),
        "allowed_tokens" => options.allowed_tokens.is_some(),
        "order" => options.order.is_some(),
        // A name that is added to the list and forgotten here counts as acting.
        _ => true,
    }
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
