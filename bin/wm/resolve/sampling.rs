//! Sampling flags as the chain's options.

use greenmark::sample::{
    Bias, DryOptions, MirostatMode, MirostatOptions, SamplingOptions, XtcOptions,
};
use greenmark::{Error, Result};

use super::parse_ids;
use crate::args::SamplingArgs;

/// The options that were given; what was not stays open for the model's defaults.
pub(crate) fn resolve_sampling(args: &SamplingArgs) -> Result<SamplingOptions> {
    let size = |name, value: Option<u64>| {
        value
            .map(|value| {
                usize::try_from(value)
                    .map_err(|_| Error::parameter(name, value, "a number that fits memory"))
            })
            .transpose()
    };
    let logit_bias = args
        .logit_bias
        .iter()
        .map(|pair| Bias::parse_pair(pair))
        .collect::<Result<std::collections::BTreeMap<_, _>>>()?;
    if logit_bias.len() < args.logit_bias.len() {
        return Err(Error::parameter("logit_bias", "an id twice", "each id once"));
    }
    let bad_words =
        args.bad_words.iter().map(|ids| parse_ids("bad_words", ids)).collect::<Result<Vec<_>>>()?;
    Ok(SamplingOptions {
        temperature: args.temperature,
        top_k: args.top_k,
        top_p: args.top_p,
        min_p: args.min_p,
        typical_p: args.typical_p,
        epsilon_cutoff: args.epsilon_cutoff,
        eta_cutoff: args.eta_cutoff,
        top_n_sigma: args.top_n_sigma,
        repetition_penalty: args.repetition_penalty,
        presence_penalty: args.presence_penalty,
        frequency_penalty: args.frequency_penalty,
        penalty_last_n: size("penalty_last_n", args.penalty_last_n)?,
        no_repeat_ngram_size: size("no_repeat_ngram_size", args.no_repeat_ngram_size)?,
        dry: dry(args, size("dry_allowed_length", args.dry_allowed_length)?)?,
        xtc: xtc(args)?,
        mirostat: mirostat(args)?,
        logit_bias: (!logit_bias.is_empty()).then_some(logit_bias),
        bad_words: (!bad_words.is_empty()).then_some(bad_words),
        allowed_tokens: args
            .allowed_tokens
            .as_deref()
            .map(|ids| parse_ids("allowed_tokens", ids))
            .transpose()?,
        min_tokens: size("min_tokens", args.min_tokens)?,
        min_tokens_to_keep: size("min_tokens_to_keep", args.min_tokens_to_keep)?,
        order: args.order.as_deref().map(str::parse).transpose()?,
    })
}

/// A value that shapes a member says nothing without the value that switches it on.
fn needs(name: &'static str, given: bool, switch: &str) -> Result<()> {
    if given {
        return Err(Error::parameter(name, "given alone", format!("together with {switch}")));
    }
    Ok(())
}

fn dry(args: &SamplingArgs, allowed_length: Option<usize>) -> Result<Option<DryOptions>> {
    let Some(multiplier) = args.dry_multiplier else {
        needs("dry_base", args.dry_base.is_some(), "--dry-multiplier")?;
        needs("dry_allowed_length", allowed_length.is_some(), "--dry-multiplier")?;
        return Ok(None);
    };
    let usual = DryOptions::new(multiplier);
    Ok(Some(DryOptions {
        base: args.dry_base.unwrap_or(usual.base),
        allowed_length: allowed_length.unwrap_or(usual.allowed_length),
        ..usual
    }))
}

fn xtc(args: &SamplingArgs) -> Result<Option<XtcOptions>> {
    let Some(probability) = args.xtc_probability else {
        needs("xtc_threshold", args.xtc_threshold.is_some(), "--xtc-probability")?;
        return Ok(None);
    };
    let usual = XtcOptions::new(probability);
    Ok(Some(XtcOptions { threshold: args.xtc_threshold.unwrap_or(usual.threshold), ..usual }))
}

fn mirostat(args: &SamplingArgs) -> Result<Option<MirostatOptions>> {
    let Some(version) = args.mirostat else {
        needs("mirostat_tau", args.mirostat_tau.is_some(), "--mirostat")?;
        needs("mirostat_eta", args.mirostat_eta.is_some(), "--mirostat")?;
        return Ok(None);
    };
    let usual = MirostatOptions::new(MirostatMode::try_from(version)?);
    Ok(Some(MirostatOptions {
        tau: args.mirostat_tau.unwrap_or(usual.tau),
        eta: args.mirostat_eta.unwrap_or(usual.eta),
        ..usual
    }))
}
