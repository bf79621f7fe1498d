//! Temperature: every logit is divided by T.
//!
//! Parameters: `temperature` >= 0; 1 is off. Below [`GREEDY_BELOW`] decoding is greedy, which the
//! chain does itself: this member is then not built.
//! Edges: quotients beyond f32 are bounded to its largest numbers.

use super::{Active, Kind, Member, Processor, Setup, StepContext};
use crate::error::{Error, Result};
use crate::sample::candidates::Candidates;
use crate::sample::kernel::Form;
use crate::sample::options::GREEDY_BELOW;

pub(super) const MEMBER: Member =
    Member { name: "temperature", options: &["temperature"], kind: Kind::Temperature, build };

#[derive(Debug)]
struct Temperature(f32);

#[expect(clippy::float_cmp, reason = "exactly 1 is the neutral element")]
fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let given = setup.options.temperature.unwrap_or(1.0);
    #[expect(clippy::cast_possible_truncation, reason = "the result is checked")]
    let temperature = given as f32;
    if !temperature.is_finite() || given < 0.0 {
        return Err(Error::parameter(
            "temperature",
            given,
            "0 (greedy) or above, finite and at most 3.4e38",
        ));
    }
    Ok((given >= GREEDY_BELOW && temperature != 1.0)
        .then(|| Box::new(Temperature(temperature)) as _))
}

impl Processor for Temperature {
    fn apply(&self, candidates: &mut Candidates, _context: &StepContext<'_>) {
        candidates.divide(self.0);
    }

    fn form(&self, _context: &StepContext<'_>) -> Form<'_> {
        Form::Temperature(self.0)
    }
}
