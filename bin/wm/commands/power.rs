//! `wm power`: how many tokens a mark needs to be found, before there is a text.

use std::path::Path;

use anyhow::Result;
use greenmark::Error;
use greenmark::detect::entropy::{
    GreenListBias, Power, StepDistribution, TokenUncertainty, likelihood_ratio_weight,
    mean_green_chance, plain_power, power, tokens_needed,
};
use greenmark::detect::{Alpha, Scorable};
use greenmark::document::Sidecar;
use greenmark::prf::Key;
use greenmark::profile::{Delta, Gamma};
use greenmark::scheme::{Scheme, build};
use greenmark::token::{TokenId, TokenSet};
use serde::{Deserialize, Serialize};

use crate::args::PowerArgs;
use crate::commands::engine;
use crate::exit::Exit;
use crate::output;
use crate::resolve::read_text;

/// Power when nothing is said.
const DEFAULT_POWER: f64 = 0.9;

/// The steps of a text as a file gives them.
#[derive(Deserialize)]
#[serde(untagged)]
enum StepsFile {
    Chances(Vec<f64>),
    Distributions(Vec<Vec<f64>>),
}

/// The steps that stand for the texts to come.
struct Steps {
    /// Mean chance of green in marked text.
    rate: f64,
    /// The tokens of real texts, where the source has them.
    tokens: Vec<TokenUncertainty>,
    count: usize,
    source: &'static str,
}

#[derive(Serialize)]
struct Plan {
    source: &'static str,
    steps: usize,
    gamma: f64,
    delta: f64,
    alpha: f64,
    green_chance: f64,
    /// Scored tokens; null when no number suffices.
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_status: Option<&'static str>,
    /// Chance that the plain count is at most alpha.
    power: f64,
    z: f64,
    /// The same of the likelihood-ratio test (`wm detect --entropy`), for measured steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    likelihood_ratio_power: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    likelihood_ratio_z: Option<f64>,
}

pub(super) fn run(args: &PowerArgs) -> Result<Exit> {
    let gamma = Gamma::new(args.gamma)?;
    let delta = Delta::new(args.delta)?;
    let bias = GreenListBias { gamma: gamma.effective(), delta: delta.get() };
    let alpha = args.alpha.map_or(Ok(Alpha::default()), Alpha::new)?;
    let wanted = args.power.unwrap_or(DEFAULT_POWER);
    if !(wanted > 0.0 && wanted < 1.0) {
        return Err(Error::parameter("power", wanted, "a number above 0 and below 1").into());
    }
    if let (Some(flag), None) = (args.device.first_given(), &args.prompt_file) {
        return Err(Error::parameter(flag, "given alone", "together with --prompt-file").into());
    }
    let steps = steps(args, bias)?;
    let tokens = match args.tokens {
        Some(tokens) if (1..=10_000_000).contains(&tokens) => Some(tokens),
        Some(tokens) => return Err(Error::parameter("tokens", tokens, "1 to 10000000").into()),
        None => tokens_needed(bias.gamma, steps.rate, wanted, alpha),
    };
    let plain = plain_power(bias.gamma, steps.rate, tokens.unwrap_or(0), alpha);
    // Beside the plain test, as `wm detect --entropy` makes it, it has half of alpha.
    let half = alpha.shared(2);
    let ratio = tokens.and_then(|tokens| likelihood_ratio(&steps.tokens, bias, tokens, half));
    let plan = Plan {
        source: steps.source,
        steps: steps.count,
        gamma: gamma.get(),
        delta: delta.get(),
        alpha: alpha.value(),
        green_chance: steps.rate,
        tokens,
        tokens_status: tokens.is_none().then_some("out_of_reach"),
        power: plain.power,
        z: plain.z,
        likelihood_ratio_power: ratio.map(|power| power.power),
        likelihood_ratio_z: ratio.map(|power| power.z),
    };
    if args.json {
        output::json(&plan)?;
    } else {
        print(&plan, wanted)?;
    }
    Ok(Exit::Success)
}

/// The power of the likelihood-ratio test over steps spread evenly over the profile; `None` where the profile has none, or for lengths beyond what a weighted tail is exact
/// for.
fn likelihood_ratio(
    tokens: &[TokenUncertainty],
    bias: GreenListBias,
    length: u64,
    alpha: Alpha,
) -> Option<Power> {
    let length = usize::try_from(length).ok().filter(|&length| length <= 10_000)?;
    let weighed: Vec<(f64, f64)> = tokens
        .iter()
        .filter_map(|token| token.chances)
        .map(|c| (likelihood_ratio_weight(bias, &c), c.token_green))
        .collect();
    // Whole rounds of the profile, then every so many steps one: no stretch counts more than another.
    let (all, rest) = (weighed.len().max(1), length % weighed.len().max(1));
    let rounds = weighed.iter().copied().cycle().take(length - rest);
    let spread = (0..rest).map(|place| weighed[place * all / rest]);
    let steps: Vec<(f64, f64)> = rounds.chain(spread).collect();
    (!weighed.is_empty()).then(|| power(bias.gamma, &steps, alpha))
}

fn steps(args: &PowerArgs, bias: GreenListBias) -> Result<Steps> {
    if let Some(spike) = args.spike_entropy {
        let least = 1.0 / (1.0 + bias.spike_modulus());
        if !(least - 1e-9..=1.0).contains(&spike) {
            let allowed = format!("{least:.4} (a certain token) to 1 at this gamma and delta");
            return Err(Error::parameter("spike_entropy", spike, allowed).into());
        }
        let rate = bias.green_chance_at_least(spike);
        return Ok(Steps { rate, tokens: Vec::new(), count: 1, source: "spike_entropy" });
    }
    if let Some(path) = &args.entropy_profile {
        return from_file(path, bias);
    }
    let Some(path) = &args.prompt_file else {
        let allowed = "one of --entropy-profile, --spike-entropy and --prompt-file";
        return Err(Error::parameter("the steps of a text", "not given", allowed).into());
    };
    let tokens = engine::measure_steps(args, &read_text(path)?, bias)?;
    measured(tokens, "model")
}

/// The places of the tokens that a detection counts: T is their number, and a repeat is none. The
/// key does not matter.
pub(super) fn counted(scheme: &dyn Scheme, ids: &[TokenId]) -> impl Iterator<Item = usize> {
    let vocab = ids.iter().max().map_or(0, |largest| *largest as usize + 1);
    let scorable = Scorable::new(scheme, &TokenSet::empty(vocab), &[], ids);
    let places: Vec<usize> = scorable.scores(scheme).map(|(place, _)| place).collect();
    places.into_iter()
}

fn measured(tokens: Vec<TokenUncertainty>, source: &'static str) -> Result<Steps> {
    let Some(rate) = mean_green_chance(&tokens) else {
        let allowed = "steps with their chances: a text of this version's generate, on a GPU \
                       with --sampler cpu";
        return Err(Error::parameter("entropy_profile", "only entropies", allowed).into());
    };
    Ok(Steps { rate, count: tokens.len(), tokens, source })
}

fn from_file(path: &Path, bias: GreenListBias) -> Result<Steps> {
    let text = read_text(path)?;
    let remedy = "give a sidecar, a JSON list of chances of green, or a list of distributions";
    let wrong = |problem: String| Error::file(path, None, problem, remedy);
    if text.trim_start().starts_with('{') {
        let sidecar = Sidecar::read(path)?;
        let own = GreenListBias::of(sidecar.profile.scheme());
        if own != Some(bias) {
            return Err(Error::Mismatch {
                field: "gamma and delta",
                left_name: "the command line".to_owned(),
                left: format!("{} and {}", bias.gamma, bias.delta),
                right_name: path.display().to_string(),
                right: own.map_or("none".to_owned(), |b| format!("{} and {}", b.gamma, b.delta)),
                remedy: "chances hold for one gamma and delta: give those of the sidecar"
                    .to_owned(),
            }
            .into());
        }
        let ids: Vec<TokenId> = sidecar.entropies.iter().filter_map(|entry| entry.id).collect();
        // A sidecar of the first version has no ids, and no chances either.
        let tokens = if ids.len() == sidecar.entropies.len() {
            let scheme = build(&sidecar.profile, &Key::from_bytes([0; 32]));
            counted(&*scheme, &ids).map(|at| sidecar.entropies[at]).collect()
        } else {
            sidecar.entropies
        };
        let tokens = tokens
            .iter()
            .map(|entry| TokenUncertainty { entropy: entry.nats, chances: entry.chances });
        return measured(tokens.collect(), "sidecar");
    }
    let steps: StepsFile =
        serde_json::from_str(&text).map_err(|error| wrong(format!("not a profile: {error}")))?;
    let chances = match steps {
        StepsFile::Chances(chances) => {
            if let Some(bad) = chances.iter().find(|chance| !(0.0..=1.0).contains(*chance)) {
                return Err(wrong(format!("{bad} is no chance")).into());
            }
            chances
        }
        StepsFile::Distributions(list) => list
            .iter()
            .enumerate()
            .map(|(index, p)| {
                let sum: f64 = p.iter().sum();
                if p.iter().any(|&p| !(0.0..=1.0).contains(&p)) || (sum - 1.0).abs() > 1e-3 {
                    return Err(wrong(format!("step {index} is no distribution (sum {sum})")));
                }
                let shares = p.iter().map(|&p| (p / sum, true));
                Ok(StepDistribution::new(bias, shares).green_chance())
            })
            .collect::<Result<_, _>>()?,
    };
    if chances.is_empty() {
        return Err(wrong("no steps".to_owned()).into());
    }
    let rate = chances.iter().sum::<f64>() / chances.len() as f64;
    Ok(Steps { rate, tokens: Vec::new(), count: chances.len(), source: "file" })
}

fn print(plan: &Plan, wanted: f64) -> Result<()> {
    output::line(&format!(
        "chance of green {:.4} in marked text (gamma {}, delta {}, {} steps)",
        plan.green_chance, plan.gamma, plan.delta, plan.steps
    ))?;
    let Some(tokens) = plan.tokens else {
        return output::line(&format!(
            "no number of tokens up to 10 million gives power {wanted} at alpha {:.3e}",
            plan.alpha
        ));
    };
    output::line(&format!(
        "{tokens} scored tokens: expected z {:.2}, power {:.4} at alpha {:.3e}",
        plan.z, plan.power, plan.alpha
    ))?;
    if let (Some(z), Some(power)) = (plan.likelihood_ratio_z, plan.likelihood_ratio_power) {
        output::line(&format!(
            "with the likelihood-ratio test (wm detect --entropy): expected z {z:.2}, power \
             {power:.4}"
        ))?;
    }
    Ok(())
}
