//! What one row of logits says, in double precision: for inspection and cross-checks, not for
//! sampling, whose arithmetic is [`crate::sample::math`].

use crate::token::TokenId;

/// A row of logits in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distribution {
    /// The id of the largest logit; the smallest id of equals.
    pub argmax: TokenId,
    /// ln of the sum of exponentials.
    pub logsumexp: f64,
    /// Shannon entropy in nats.
    pub entropy: f64,
}

impl Distribution {
    /// Describes `logits`; `None` for an empty row.
    #[must_use]
    pub fn of(logits: &[f32]) -> Option<Self> {
        let (argmax, max) = (0..).zip(logits).fold(None, |best, (id, &logit)| match best {
            Some((_, top)) if logit <= top => best,
            _ => Some((id, logit)),
        })?;
        let max = f64::from(max);
        let (mut sum, mut weighted) = (0.0, 0.0);
        for &logit in logits {
            let shifted = f64::from(logit) - max;
            let weight = shifted.exp();
            sum += weight;
            if weight > 0.0 {
                weighted += weight * shifted;
            }
        }
        Some(Self { argmax, logsumexp: max + sum.ln(), entropy: sum.ln() - weighted / sum })
    }
}
