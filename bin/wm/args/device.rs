//! Where a model computes, for every command that loads one.

use clap::Args;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DeviceArgs {
    /// Where the model computes: cpu, cuda:N (an NVIDIA GPU by its number, in a build with CUDA), or
    /// auto: the first GPU that answers, else the CPU [default: auto]
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    /// The numbers a GPU computes in: f32, bf16 (half the memory of f32, rounded), or auto, as the
    /// file suggests; the CPU takes auto only [default: auto]
    #[arg(long, value_name = "DTYPE")]
    pub(crate) dtype: Option<String>,
    /// Where tokens are drawn: auto, where the model computes, or cpu, which has the chains that a
    /// GPU does not have, and to which all logits of a GPU are copied [default: auto]
    #[arg(long, value_name = "PLACE")]
    pub(crate) sampler: Option<String>,
    /// Whether a GPU computes in passes of one fixed shape, so that no text depends on what runs
    /// beside it: off, on (64 rows), or the ROWS of a pass, 1 to 512 (safe up to 64). A step of fewer
    /// texts costs as much as one of ROWS, and prompts are read ROWS tokens at a time. On the CPU
    /// it is always so [default: in generate and demo the number of texts rounded up to a multiple
    /// of 8, at most 64; else off]
    #[arg(long, value_name = "ROWS", num_args = 0..=1, default_missing_value = "on")]
    pub(crate) deterministic: Option<String>,
}

impl DeviceArgs {
    /// The first of the flags that was given, by its name in messages.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        let flags = [
            ("device", &self.device),
            ("dtype", &self.dtype),
            ("sampler", &self.sampler),
            ("deterministic", &self.deterministic),
        ];
        flags.into_iter().find(|(_, value)| value.is_some()).map(|(name, _)| name)
    }
}
