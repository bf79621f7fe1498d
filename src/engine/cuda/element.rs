//! The numbers that activations and dense weights are made of.

use candle_core::cuda_backend::CudaDType;
use candle_core::cuda_backend::cudarc::driver::{DeviceRepr, ValidAsZeroBits};
use half::bf16;

use crate::engine::cache::CacheType;

/// A number that the kernels compute with.
pub(in crate::engine) trait Element:
    CudaDType + DeviceRepr + ValidAsZeroBits + Copy + Send + Sync + 'static
{
    /// The ending of the kernels' names, and the name for people.
    const NAME: &'static str;
    /// What caches hold.
    const CACHE: CacheType;

    /// The nearest number; ties go to the even one.
    fn from_f32(value: f32) -> Self;

    /// The same from a bfloat16.
    fn from_bf16(value: bf16) -> Self;
}

impl Element for f32 {
    const NAME: &'static str = "f32";
    const CACHE: CacheType = CacheType::F32;

    fn from_f32(value: f32) -> Self {
        value
    }

    fn from_bf16(value: bf16) -> Self {
        value.to_f32()
    }
}

impl Element for bf16 {
    const NAME: &'static str = "bf16";
    const CACHE: CacheType = CacheType::Bf16;

    fn from_f32(value: f32) -> Self {
        bf16::from_f32(value)
    }

    fn from_bf16(value: bf16) -> Self {
        value
    }
}
