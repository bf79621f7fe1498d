//! Tail probabilities in log space.
//!
//! Every p-value of a report comes from here. The module knows no keys, tokens or schemes: it
//! answers how likely a count or a sum at least this large is under a null that is given as
//! numbers. All results are natural logarithms of probabilities unless a name says otherwise,
//! because the evidence in a long marked text is far below the smallest double.

mod binomial;
mod gamma;
mod loader;
mod mean;
mod normal;
mod probability;
mod randomised;

pub use binomial::ln_binomial_upper;
pub use gamma::ln_gamma_upper;
pub use mean::MeanInterval;
pub use normal::{ln_normal_upper, normal_upper};
pub use probability::{LogProbability, PValue};
pub use randomised::Tails;
