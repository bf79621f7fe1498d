//! The mean of a sample and how well it is known.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct MeanInterval {
    /// The mean of the sample.
    pub mean: f64,
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

impl MeanInterval {
    /// Student's interval at `confidence` in (0, 1); it assumes that the mean of so many samples is
    /// close to normal. `None` for fewer than two samples, which say nothing about their spread,
    /// and for a confidence outside its range.
    #[must_use]
    pub fn new(samples: &[f64], confidence: f64) -> Option<Self> {
        if samples.len() < 2 || !(confidence > 0.0 && confidence < 1.0) {
            return None;
        }
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count;
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let student = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
        let quantile = student.inverse_cdf(0.5 + confidence / 2.0);
        let half = quantile * (squares / (count - 1.0) / count).sqrt();
        Some(Self { mean, lower: mean - half, upper: mean + half })
    }

    /// The same interval on another scale, given by an increasing function.
    #[must_use]
    pub fn map(self, scale: impl Fn(f64) -> f64) -> Self {
        Self { mean: scale(self.mean), lower: scale(self.lower), upper: scale(self.upper) }
    }
}
