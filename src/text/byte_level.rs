//! The byte alphabet of GPT-2: each of the 256 bytes is written as one printable character.
//!
//! Source: Radford et al. 2019 (the `bytes_to_unicode` table of the released code). Printable
//! Latin-1 characters stand for themselves; the other bytes, in order, are U+0100 and up.

/// Whether a byte is written as the character of the same number.
fn is_printable(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The bytes that are written as U+0100 and up, in order.
fn shifted() -> impl Iterator<Item = u8> {
    (0..=255u8).filter(|&byte| !is_printable(byte))
}

/// Turns characters of the alphabet back into bytes.
pub(super) struct Alphabet {
    /// Byte of each character below U+0144; `None` for those outside the alphabet.
    bytes: [Option<u8>; 0x144],
}

impl Alphabet {
    pub(super) fn new() -> Self {
        let mut bytes = [None; 0x144];
        for byte in (0..=255u8).filter(|&byte| is_printable(byte)) {
            bytes[usize::from(byte)] = Some(byte);
        }
        // 68 bytes are not printable, so the last entry is U+0143.
        for (entry, byte) in bytes[0x100..].iter_mut().zip(shifted()) {
            *entry = Some(byte);
        }
        Self { bytes }
    }

    /// The bytes that a vocabulary string stands for; `None` if a character is outside the
    /// alphabet.
    pub(super) fn bytes(&self, piece: &str) -> Option<Vec<u8>> {
        piece.chars().map(|c| self.bytes.get(c as usize).copied().flatten()).collect()
    }
}
