//! Bytes as hexadecimal digits, the form of every hash and fingerprint that is shown.

/// Two lower-case digits for each byte.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let halves = [byte >> 4, byte & 15];
        text.extend(halves.iter().filter_map(|half| char::from_digit((*half).into(), 16)));
    }
    text
}

/// The bytes that `2 * N` hexadecimal digits of either case stand for; none when the text is
/// anything else.
pub(crate) fn from_hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    // Asked first, so that no part of a wrong secret is left behind.
    if digits.len() != 2 * N || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?;
    }
    Some(bytes)
}
