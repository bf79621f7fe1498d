// Numbers as a reader meets them: the words of src/document/page/numbers.rs.

import { el } from "/page/dom.js";

/** A whole number with commas between thousands. */
export const count = (value) => Math.round(value).toLocaleString("en-US");

/** `1 token`, `2 tokens`. */
export const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** An effect size. */
export function effect(z) {
  // A minus sign is wider than a hyphen and lines up with digits.
  return z === null || z === undefined ? "none" : z.toFixed(2).replace("-", "−");
}

/** A probability by its decimal logarithm: `0.550`, `3.94 × 10` with a raised exponent. */
export function probability(log10) {
  if (log10 >= -2) return [(10 ** log10).toFixed(3)];
  let exponent = Math.floor(log10);
  let mantissa = 10 ** (log10 - exponent);
  // 9.996 would print as 10.00.
  if (mantissa >= 9.995) [mantissa, exponent] = [1, exponent + 1];
  return [`${mantissa.toFixed(2)} × 10`, el("sup", {}, `−${-exponent}`)];
}

/** How rare an event is: `about 1 in 30 million`. */
export function rarity(log10) {
  const times = 10 ** -log10;
  if (log10 > -0.005) return ["nearly all"];
  if (log10 > -1) return [`about ${Math.round(10 ** log10 * 100)} in 100`];
  if (log10 > -6) return [`about 1 in ${twoDigits(times).toLocaleString("en-US")}`];
  if (log10 <= -15) return ["about 1 in 10", el("sup", {}, String(Math.floor(-log10)))];
  const [unit, name] =
    log10 > -9 ? [1e6, "million"] : log10 > -12 ? [1e9, "billion"] : [1e12, "trillion"];
  return [`about 1 in ${twoDigits(times / unit).toLocaleString("en-US")} ${name}`];
}

/** `value` rounded to two significant digits. */
const twoDigits = (value) => Number(value.toPrecision(2));
