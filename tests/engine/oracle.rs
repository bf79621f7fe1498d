//! Ours beside candle's own model of the same file (`--features oracle`).

use candle_core::quantized::gguf_file;
use candle_core::{Device, Tensor};

use crate::fixtures::{argmax, every};
use crate::real_model::MODEL;
use crate::support::default_model;

#[test]
fn logits_are_close_to_those_of_candle_transformers() {
    let tokens = [504, 9180, 282, 253, 2644, 314];
    let mut file = std::fs::File::open(default_model()).unwrap();
    let content = gguf_file::Content::read(&mut file).unwrap();
    let mut other = candle_transformers::models::quantized_llama::ModelWeights::from_gguf(
        content,
        &mut file,
        &Device::Cpu,
    )
    .unwrap();
    let input = Tensor::new(&tokens, &Device::Cpu).unwrap().unsqueeze(0).unwrap();
    let other: Vec<f32> =
        other.forward(&input, 0).unwrap().flatten_all().unwrap().to_vec1().unwrap();
    let own = every(&MODEL, &tokens).pop().unwrap();
    let mean: f32 = own.iter().zip(&other).map(|(a, b)| (a - b).abs()).sum::<f32>() / 49152.0;
    println!("mean absolute difference of logits: {mean:.4}");
    // candle rounds activations to 8 bits; the logits spread over tens.
    assert!(mean < 0.15, "{mean}");
    assert_eq!(argmax(&own), argmax(&other));
}
