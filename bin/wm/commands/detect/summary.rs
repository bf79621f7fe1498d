//! The last word on many texts.

use std::time::Duration;

use anyhow::Result;
use greenmark::detect::Verdict;
use serde::Serialize;
use serde_json::json;

use super::batch::Outcome;
use crate::output::{self, note};

/// Counts over all inputs.
#[derive(Default, Serialize)]
pub(super) struct Summary {
    texts: u64,
    watermarked: u64,
    not_detected: u64,
    insufficient: u64,
    errors: u64,
    tokens: u64,
}

impl Summary {
    pub(super) fn add(&mut self, outcome: &Outcome) {
        self.texts += 1;
        match outcome {
            Outcome::Failed { .. } => self.errors += 1,
            Outcome::Judged { verdict, tokens, .. } => {
                self.tokens += tokens;
                *match verdict {
                    Verdict::Watermarked => &mut self.watermarked,
                    Verdict::NotDetected => &mut self.not_detected,
                    Verdict::Insufficient => &mut self.insufficient,
                } += 1;
            }
        }
    }

    /// Standard error gets the words and the time; the JSON record holds what is the same in every
    /// run.
    pub(super) fn show(&self, json: bool, time: Duration) -> Result<()> {
        if json {
            output::line(&json!({"summary": self}).to_string())?;
        }
        let Self { texts, watermarked, not_detected, insufficient, errors, tokens } = self;
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        note!(
            "{texts} text{}: {watermarked} watermarked, {not_detected} not detected, \
             {insufficient} insufficient, {errors} error{}; {tokens} token{} in {:.1} s",
            plural(*texts),
            plural(*errors),
            plural(*tokens),
            time.as_secs_f64()
        );
        Ok(())
    }
}
