//! Long texts: time that grows with the length, and no more stack than a small thread has.

use std::time::{Duration, Instant};

use crate::fixtures::{pair, smollm2};

/// Letters from a fixed generator, so that every run sees the same text.
fn random_letters(count: usize) -> String {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(b'a' + u8::try_from(state % 26).unwrap())
        })
        .collect()
}

/// Words of random letters and lengths with punctuation, numbers and lines.
fn prose(bytes: usize) -> String {
    let letters = random_letters(bytes);
    let mut text = String::new();
    let mut at = 0;
    let mut word = 0;
    while text.len() < bytes {
        let length = 1 + usize::from(letters.as_bytes()[at]) % 7;
        text.push_str(&letters[at..(at + length).min(letters.len())]);
        at = (at + length) % (letters.len() - 10);
        word += 1;
        text.push_str(match word {
            _ if word % 97 == 0 => ".\n\n",
            _ if word % 31 == 0 => " 2024 ",
            _ if word % 11 == 0 => ", ",
            _ => " ",
        });
    }
    text.truncate(bytes);
    text
}

/// The shortest of three runs.
fn time(mut run: impl FnMut()) -> Duration {
    (0..3)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .min()
        .unwrap()
}

#[test]
fn t10_time_is_linear_and_no_worse_than_the_reference() {
    let pair = pair("smollm");
    let size = 1_000_000;
    let cases = [
        ("one letter", "a".repeat(2 * size)),
        ("random letters", random_letters(2 * size)),
        ("spaces", " ".repeat(2 * size)),
        ("prose", prose(2 * size)),
    ];
    for (name, text) in &cases {
        let half = &text[..size];
        let start = Instant::now();
        let expected = pair.reference_ids(half);
        let reference = start.elapsed();
        assert_eq!(smollm2().encode_ids(half).unwrap(), expected, "{name}");
        // The machine may be busy: one quiet moment of several is enough.
        let good = (0..4).any(|_| {
            let one = time(|| drop(smollm2().encode(half).unwrap()));
            let two = time(|| drop(smollm2().encode(text).unwrap()));
            println!("T10 {name}: {one:?} for 1 MB, {two:?} for 2 MB; reference {reference:?}");
            let noise = Duration::from_millis(40);
            one <= 2 * reference + noise && two <= one.mul_f64(2.5) + noise
        });
        assert!(good, "{name}: the printed times grow too fast");
    }
    // The count that the field case gives.
    assert_eq!(smollm2().encode_ids(&cases[0].1[..size]).unwrap().len(), 250_000);
}

#[test]
fn t11_long_runs_fit_a_stack_of_2_mib() {
    let texts = [
        "A".repeat(43_000),
        "Z".repeat(131_072),
        "語".repeat(100_000),
        format!("e{}", "\u{301}".repeat(100_000)),
        " ".repeat(200_000),
        "'".repeat(200_000),
        "7".repeat(200_000),
        "\r\n".repeat(100_000),
    ];
    for name in ["smollm", "llama-bpe", "qwen2", "gpt-2"] {
        let pair = pair(name);
        let texts = texts.clone();
        std::thread::Builder::new()
            .stack_size(2 << 20)
            .spawn(move || {
                for text in &texts {
                    let pieces = pair.ours.encode(text).unwrap();
                    assert_eq!(pieces.last().unwrap().bytes.end, text.len());
                    let characters = text.chars().count();
                    assert_eq!(pieces.last().unwrap().chars.end, characters);
                }
            })
            .unwrap()
            .join()
            .unwrap();
    }
}
