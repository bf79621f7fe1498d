//! Tail probabilities in log space.
//!
//! Every p-value of a report comes from here. The module knows no keys, tokens or schemes: it
//! answers how likely a count or a sum at least this large is under a null that is given as
//! numbers. All results are natural logarithms of probabilities unless a name says otherwise,
//! because the evidence in a long marked text is far below the smallest double.

mod binomial;
mod gamma;
mod interval;
mod loader;
mod mean;
mod multiple;
mod normal;
mod probability;
mod randomised;
mod uniformity;
mod weighted;

pub use binomial::{critical_count, ln_binomial_upper};
pub use gamma::ln_gamma_upper;
pub use interval::{binomial_interval, clopper_pearson};
pub use mean::MeanInterval;
pub use multiple::benjamini_hochberg;
pub use normal::{ln_normal_upper, normal_upper};
pub use probability::{LogProbability, PValue};
pub use randomised::Tails;
pub use uniformity::{KolmogorovSmirnov, kolmogorov_smirnov};
pub use weighted::{TailBounds, TailMethod, Trial, weighted_threshold, weighted_upper};
