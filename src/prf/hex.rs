//! Bytes as hexadecimal digits, the form of every hash and fingerprint that is shown.

use std::fmt::Write;

/// Two lower-case digits for each byte.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // A String takes every write.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes that `2 * N` hexadecimal digits stand for; none when the text is anything else.
pub(crate) fn from_hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?;
    }
    Some(bytes)
}
