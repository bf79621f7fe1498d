// The ChaCha8 key stream: the twin of src/prf/chacha.rs (64-bit block counter, nonce 0).
#ifndef GM_CHACHA_CUH
#define GM_CHACHA_CUH
#include "portable.cuh"

GM_DEVICE void gm_quarter_round(uint32_t &a, uint32_t &b, uint32_t &c, uint32_t &d) {
  a += b; d ^= a; d = __funnelshift_l(d, d, 16);
  c += d; b ^= c; b = __funnelshift_l(b, b, 12);
  a += b; d ^= a; d = __funnelshift_l(d, d, 8);
  c += d; b ^= c; b = __funnelshift_l(b, b, 7);
}

// Block `counter` of the stream under `key`. A vocabulary needs no counter above 32 bits.
GM_DEVICE void gm_chacha8(const uint32_t *key, uint32_t counter, uint32_t (&out)[16]) {
  const uint32_t input[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u,
                              key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7],
                              counter, 0u, 0u, 0u};
#pragma unroll
  for (int i = 0; i < 16; i++) out[i] = input[i];
#pragma unroll
  for (int pair = 0; pair < 4; pair++) {
    gm_quarter_round(out[0], out[4], out[8], out[12]);
    gm_quarter_round(out[1], out[5], out[9], out[13]);
    gm_quarter_round(out[2], out[6], out[10], out[14]);
    gm_quarter_round(out[3], out[7], out[11], out[15]);
    gm_quarter_round(out[0], out[5], out[10], out[15]);
    gm_quarter_round(out[1], out[6], out[11], out[12]);
    gm_quarter_round(out[2], out[7], out[8], out[13]);
    gm_quarter_round(out[3], out[4], out[9], out[14]);
  }
#pragma unroll
  for (int i = 0; i < 16; i++) out[i] += input[i];
}

// The u32 at word `token`.
GM_CALLED uint32_t gm_word(const uint32_t *key, uint32_t token) {
  uint32_t block[16];
  gm_chacha8(key, token / 16u, block);
  uint32_t word = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) word = token % 16u == (uint32_t)i ? block[i] : word;
  return word;
}

// The u64 at words 2 * token (low half) and 2 * token + 1.
GM_CALLED uint64_t gm_word_pair(const uint32_t *key, uint32_t token) {
  uint32_t block[16];
  gm_chacha8(key, token / 8u, block);
  uint64_t pair = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const uint64_t candidate = (uint64_t)block[2 * i] | (uint64_t)block[2 * i + 1] << 32;
    pair = token % 8u == (uint32_t)i ? candidate : pair;
  }
  return pair;
}

#endif
