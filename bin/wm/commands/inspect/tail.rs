//! `wm inspect tail`: how likely a count or a sum this large is under chance.

use std::path::Path;

use anyhow::Result;
use greenmark::Error;
use greenmark::stats::{
    LogProbability, TailMethod, Trial, ln_binomial_upper, ln_gamma_upper, ln_normal_upper,
    weighted_upper,
};
use serde::Serialize;

use crate::args::{BinomialArgs, GammaArgs, NormalArgs, TailArgs, TailCommand, WeightedArgs};
use crate::exit::Exit;
use crate::output;
use crate::resolve::read_text;

/// The range that the tests hold to 40-digit values.
const MOST_TRIALS: u64 = 10_000_000;

/// A probability as reports show it: a double where one holds it, the reason where none does.
#[derive(Serialize)]
struct Shown {
    p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p_status: Option<&'static str>,
    log10_p: Option<f64>,
}

#[derive(Serialize)]
struct WeightedTail {
    #[serde(flatten)]
    upper: Shown,
    lower: Shown,
    method: TailMethod,
    trials: usize,
}

impl Shown {
    fn new(probability: LogProbability) -> Self {
        if probability.ln() == f64::NEG_INFINITY {
            // No outcome reaches the value: 0 is the probability and not the lack of digits.
            return Self { p: Some(0.0), p_status: Some("impossible"), log10_p: None };
        }
        let p = probability.p_value();
        Self { p: p.value(), p_status: p.status(), log10_p: Some(probability.log10()) }
    }

    /// A lower bound: 0 says that nothing is known unless the upper bound is 0 too.
    fn lower(bound: LogProbability, upper: LogProbability) -> Self {
        if bound.ln() == f64::NEG_INFINITY && upper.ln() > f64::NEG_INFINITY {
            return Self { p: None, p_status: Some("none"), log10_p: None };
        }
        Self::new(bound)
    }

    fn line(&self) -> String {
        match (self.p, self.log10_p) {
            (Some(p), Some(log10_p)) => format!("p {p:e}, log10 p {log10_p:.6}"),
            (None, Some(log10_p)) => {
                format!("p below 1e-300, log10 p {log10_p:.6}")
            }
            (Some(_), None) => "p 0, impossible".to_owned(),
            (None, None) => "no lower bound found".to_owned(),
        }
    }
}

pub(crate) fn run(args: &TailArgs) -> Result<Exit> {
    match &args.distribution {
        TailCommand::Binomial(args) => one(binomial(args)?, args.json)?,
        TailCommand::Gamma(args) => one(gamma(args)?, args.json)?,
        TailCommand::Normal(args) => one(normal(args)?, args.json)?,
        TailCommand::Weighted(args) => weighted(args)?,
    }
    Ok(Exit::Success)
}

fn one(ln: f64, json: bool) -> Result<()> {
    let shown = Shown::new(LogProbability::from_ln(ln));
    if json { output::json(&shown) } else { output::line(&shown.line()) }
}

fn binomial(args: &BinomialArgs) -> Result<f64, Error> {
    let n = u64::try_from(args.n)
        .ok()
        .filter(|n| *n <= MOST_TRIALS)
        .ok_or_else(|| Error::parameter("n", args.n, format!("0 to {MOST_TRIALS}")))?;
    let k = u64::try_from(args.k).map_err(|_| Error::parameter("k", args.k, "0 or more"))?;
    check_rate(args.p)?;
    Ok(ln_binomial_upper(n, k, args.p))
}

fn gamma(args: &GammaArgs) -> Result<f64, Error> {
    check("shape", args.shape, 1e-3, 1e7)?;
    check("x", args.x, 0.0, 1e10)?;
    Ok(ln_gamma_upper(args.shape, args.x))
}

fn normal(args: &NormalArgs) -> Result<f64, Error> {
    check("z", args.z, -1e5, 1e5)?;
    Ok(ln_normal_upper(args.z))
}

fn weighted(args: &WeightedArgs) -> Result<()> {
    let weights = numbers("weights", &args.weights)?;
    let rates = match args.p.parse::<f64>() {
        Ok(rate) => vec![rate; weights.len()],
        Err(_) => numbers("p", &args.p)?,
    };
    if rates.len() != weights.len() {
        let allowed = format!("one number, or {} as there are weights", weights.len());
        return Err(Error::parameter("p", format!("{} numbers", rates.len()), allowed).into());
    }
    for &weight in &weights {
        check("weights", weight, 0.0, 1e300)?;
    }
    for &rate in &rates {
        check_rate(rate)?;
    }
    check("x", args.x, f64::MIN, f64::MAX)?;
    let trials: Vec<Trial> =
        weights.iter().zip(&rates).map(|(&weight, &rate)| Trial { weight, rate }).collect();
    let bounds = weighted_upper(&trials, args.x);
    let tail = WeightedTail {
        upper: Shown::new(bounds.upper),
        lower: Shown::lower(bounds.lower, bounds.upper),
        method: bounds.method,
        trials: trials.len(),
    };
    if args.json {
        return output::json(&tail);
    }
    let method = match tail.method {
        TailMethod::Exact => "exact to rounding",
        TailMethod::Lattice => "Fourier inversion on a lattice, certified",
        TailMethod::Chernoff => "Chernoff's bound",
    };
    output::line(&tail.upper.line())?;
    output::line(&format!("at least: {}", tail.lower.line()))?;
    output::line(&format!("method: {method}"))
}

/// A chance: 0, or large enough that its inverse is a number.
fn check_rate(rate: f64) -> Result<(), Error> {
    check("p", rate, 0.0, 1.0)?;
    if rate == 0.0 || rate >= f64::MIN_POSITIVE {
        return Ok(());
    }
    Err(Error::parameter("p", format!("{rate:e}"), "0, or a number from 2.3e-308 to 1"))
}

fn check(name: &'static str, value: f64, low: f64, high: f64) -> Result<(), Error> {
    // NaN is in no range.
    if (low..=high).contains(&value) {
        return Ok(());
    }
    let allowed = match (low, high) {
        (f64::MIN, f64::MAX) => "a finite number".to_owned(),
        (low, high) => format!("a number from {low} to {high}"),
    };
    Err(Error::parameter(name, value, allowed))
}

/// A JSON list of numbers, or @FILE.
fn numbers(name: &'static str, given: &str) -> Result<Vec<f64>> {
    let text = match given.strip_prefix('@') {
        Some(path) => read_text(Path::new(path))?,
        None => given.to_owned(),
    };
    serde_json::from_str(&text).map_err(|error| {
        let allowed = "a JSON list of numbers, for example '[2,1,0.5]'";
        Error::parameter(name, format!("not a list of numbers ({error})"), allowed).into()
    })
}
