//! Random access to the ChaCha8 key stream, the generator behind both native schemes and the
//! draw.
//!
//! The stream is that of `rand_chacha::ChaCha8Rng::from_seed` (64-bit block counter, stream 0).
//! A detector needs one word per context, so a single block is computed here, not the four that
//! the library fills at once; the dense sweep of a whole vocabulary goes through the library.
//! The two are compared word for word in `tests/prf`.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const BLOCK_WORDS: u64 = 16;

/// A ChaCha8 key stream under a 256-bit seed, with the last block kept.
#[derive(Clone)]
pub struct ChaCha8Stream {
    key: [u32; 8],
    block: [u32; 16],
    block_index: Option<u64>,
}

// The seed is derived from the secret key; printing it would let a reader forge that context.
impl std::fmt::Debug for ChaCha8Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChaCha8Stream").finish_non_exhaustive()
    }
}

impl ChaCha8Stream {
    /// The stream under `seed`.
    #[must_use]
    pub fn new(seed: &[u8; 32]) -> Self {
        let mut key = [0; 8];
        for (word, bytes) in key.iter_mut().zip(seed.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        Self { key, block: [0; 16], block_index: None }
    }

    /// The seed as little-endian words, for the device kernels.
    pub(crate) fn key(&self) -> [u32; 8] {
        self.key
    }

    /// The little-endian u32 at word `position`.
    pub fn word(&mut self, position: u64) -> u32 {
        self.load(position / BLOCK_WORDS);
        self.block[(position % BLOCK_WORDS) as usize]
    }

    /// The u64 at words `2 * index` (low half) and `2 * index + 1` (high half).
    pub fn word_pair(&mut self, index: u64) -> u64 {
        self.load(2 * index / BLOCK_WORDS);
        let low = (2 * index % BLOCK_WORDS) as usize;
        u64::from(self.block[low]) | u64::from(self.block[low + 1]) << 32
    }

    /// The first `count` words.
    #[must_use]
    pub fn words(&self, count: usize) -> Vec<u32> {
        let mut rng = self.rng();
        (0..count).map(|_| rng.next_u32()).collect()
    }

    /// A reader for positions in ascending order that computes several blocks at once: cheaper
    /// than single blocks when a good part of a vocabulary is asked for.
    pub(crate) fn sweep(&self) -> ChaCha8Sweep {
        ChaCha8Sweep { rng: self.rng(), next: 0 }
    }

    fn rng(&self) -> ChaCha8Rng {
        let mut seed = [0; 32];
        for (bytes, word) in seed.chunks_exact_mut(4).zip(self.key) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        ChaCha8Rng::from_seed(seed)
    }

    fn load(&mut self, index: u64) {
        if self.block_index != Some(index) {
            self.block = block(&self.key, index);
            self.block_index = Some(index);
        }
    }
}

/// The same words as [`ChaCha8Stream`], in ascending order of positions.
#[derive(Clone)]
pub(crate) struct ChaCha8Sweep {
    rng: ChaCha8Rng,
    /// The word that the generator gives next.
    next: u64,
}

impl ChaCha8Sweep {
    /// Beyond this gap it is cheaper to move the generator than to draw and discard.
    const FAR: u64 = 4 * BLOCK_WORDS;

    /// The u32 at word `position`, which is not below any asked for before.
    #[inline]
    pub(crate) fn word(&mut self, position: u64) -> u32 {
        self.seek(position);
        self.next = position + 1;
        self.rng.next_u32()
    }

    /// The u64 at words `2 * index` and `2 * index + 1`, in ascending order too.
    #[inline]
    pub(crate) fn word_pair(&mut self, index: u64) -> u64 {
        self.seek(2 * index);
        self.next = 2 * index + 2;
        self.rng.next_u64()
    }

    #[inline]
    fn seek(&mut self, position: u64) {
        if position != self.next {
            if position.wrapping_sub(self.next) > Self::FAR {
                self.rng.set_word_pos(u128::from(position));
            } else {
                for _ in self.next..position {
                    self.rng.next_u32();
                }
            }
        }
    }
}

/// One 64-byte block of the ChaCha8 key stream (Bernstein 2008: 64-bit counter, 64-bit nonce 0).
#[expect(clippy::cast_possible_truncation, reason = "the counter is split into its halves")]
fn block(key: &[u32; 8], counter: u64) -> [u32; 16] {
    const SIGMA: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];
    let mut input = [0; 16];
    input[..4].copy_from_slice(&SIGMA);
    input[4..12].copy_from_slice(key);
    input[12] = counter as u32;
    input[13] = (counter >> 32) as u32;
    let mut state = input;
    for _ in 0..4 {
        quarter_round(&mut state, 0, 4, 8, 12);
        quarter_round(&mut state, 1, 5, 9, 13);
        quarter_round(&mut state, 2, 6, 10, 14);
        quarter_round(&mut state, 3, 7, 11, 15);
        quarter_round(&mut state, 0, 5, 10, 15);
        quarter_round(&mut state, 1, 6, 11, 12);
        quarter_round(&mut state, 2, 7, 8, 13);
        quarter_round(&mut state, 3, 4, 9, 14);
    }
    for (word, start) in state.iter_mut().zip(input) {
        *word = word.wrapping_add(start);
    }
    state
}

#[inline]
fn quarter_round(state: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    state[a] = state[a].wrapping_add(state[b]);
    state[d] = (state[d] ^ state[a]).rotate_left(16);
    state[c] = state[c].wrapping_add(state[d]);
    state[b] = (state[b] ^ state[c]).rotate_left(12);
    state[a] = state[a].wrapping_add(state[b]);
    state[d] = (state[d] ^ state[a]).rotate_left(8);
    state[c] = state[c].wrapping_add(state[d]);
    state[b] = (state[b] ^ state[c]).rotate_left(7);
}
