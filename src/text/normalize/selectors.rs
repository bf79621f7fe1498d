//! Variation selectors: one chooses the look of the character before it; a run of them can carry
//! bytes that no reader sees.
//!
//! The C2PA specification (Embedding manifests into unstructured text) encodes the byte b as
//! U+FE00 + b below 16 and as U+E0100 + b - 16 from there on, behind a U+FEFF.

/// What a C2PA text manifest begins with.
const C2PA_MAGIC: &[u8] = b"C2PATXT\0";

/// Shortest run that carries data: no character takes two selectors.
pub(super) const SHORTEST_RUN: usize = 2;

/// Whether `character` is a variation selector that stands for a byte.
pub(super) fn is_selector(character: char) -> bool {
    byte_of(character).is_some()
}

fn byte_of(character: char) -> Option<u8> {
    let code = match character {
        '\u{fe00}'..='\u{fe0f}' => character as u32 - 0xfe00,
        '\u{e0100}'..='\u{e01ef}' => character as u32 - 0xe_0100 + 16,
        _ => return None,
    };
    // The ranges hold 16 and 240 characters.
    u8::try_from(code).ok()
}

/// Number of selectors at the start of `text`.
pub(super) fn run_length(text: &str) -> usize {
    text.chars().take_while(|&character| is_selector(character)).count()
}

/// Whether the selectors at the start of `text` begin a C2PA manifest.
pub(super) fn is_c2pa(text: &str) -> bool {
    text.chars().map_while(byte_of).take(C2PA_MAGIC.len()).eq(C2PA_MAGIC.iter().copied())
}
