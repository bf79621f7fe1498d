//! `wm inspect tail`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    #[command(subcommand)]
    pub(crate) distribution: TailCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TailCommand {
    /// P(X >= k) for the successes in n trials: the null of a count of green tokens, exact
    Binomial(BinomialArgs),
    /// P(X >= x) for a gamma distribution of scale 1: the null of a sum of exponential scores
    Gamma(GammaArgs),
    /// P(Z >= z) for the standard normal distribution
    Normal(NormalArgs),
    /// P(S >= x) for a weighted sum of independent trials, between certified bounds
    ///
    /// `p` and `log10_p` are the upper bound, on which a verdict rests. A sum that falls short of
    /// x by rounding only (the number of trials times 2.2e-16 of the sum of all weights) reaches it.
    Weighted(WeightedArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BinomialArgs {
    /// Number of trials, 0 to 10000000
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) n: i64,
    /// Number of successes, 0 or more; above N the tail is impossible
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub(crate) k: i64,
    /// Chance of a success, 0 to 1
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) p: f64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GammaArgs {
    /// Shape, 0.001 to 10000000; the number of scores in a sum
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    pub(crate) shape: f64,
    /// Value to reach, 0 to 1e10
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) x: f64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NormalArgs {
    /// Value to reach, -100000 to 100000
    #[arg(long, value_name = "Z", allow_negative_numbers = true)]
    pub(crate) z: f64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WeightedArgs {
    /// What each success adds: a JSON list of numbers of at least 0, or @FILE
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) weights: String,
    /// Chance of a success, 0 to 1: one number for all trials, or a JSON list or @FILE with one each
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    pub(crate) p: String,
    /// Value to reach, a finite number
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) x: f64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
