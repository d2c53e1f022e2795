/** Numbers in and out of text: the only place that knows unit words. */

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const DECIMAL = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** 131072 -> "131,072". Both languages group by commas. */
export function integer(value) {
  return grouped.format(value);
}

/** Three significant digits, never fewer integer digits than the value has. */
function threeDigits(value) {
  if (value >= 99.95) return grouped.format(Math.round(value));
  return value.toFixed(value >= 9.995 ? 1 : 2);
}

/**
 * Bytes as a number and its unit: 42949672960 -> {number: "40.0", unit: "GiB"}.
 * @param {number} bytes
 * @param {'gib'|'gb'} system powers of 1,024 or of 1,000
 */
export function scaleBytes(bytes, system = "gib") {
  const [base, units] = system === "gb" ? [1000, DECIMAL] : [1024, BINARY];
  let value = bytes;
  let step = 0;
  while (value >= base && step < units.length - 1) {
    value /= base;
    step += 1;
  }
  // 1,023.7 rounds to the next unit's 1.00, not to "1,024".
  if (step > 0 && Math.round(value) >= base && step < units.length - 1) {
    value /= base;
    step += 1;
  }
  return { number: step === 0 ? integer(value) : threeDigits(value), unit: units[step] };
}

export function bytesText(bytes, system) {
  const { number, unit } = scaleBytes(bytes, system);
  return `${number} ${unit}`;
}

/** All digits, or an honest approximation where a double no longer holds them. */
export function exactInteger(value) {
  if (Number.isSafeInteger(value)) return integer(value);
  const [mantissa, exponent] = value.toExponential(3).split("e+");
  return `≈ ${mantissa} × 10^${exponent}`;
}

/** Context lengths as model cards write them: 131072 -> "128K", 1048576 -> "1M". */
export function shortTokens(tokens) {
  for (const [size, suffix] of [
    [2 ** 20, "M"],
    [2 ** 10, "K"],
  ]) {
    if (tokens >= size && tokens % (size / 4) === 0) return `${tokens / size}${suffix}`;
  }
  return integer(tokens);
}

/** 70553706496 -> "70.6B". Parameter counts are decimal. */
export function parameterCount(count) {
  for (const [size, suffix] of [
    [1e12, "T"],
    [1e9, "B"],
    [1e6, "M"],
  ]) {
    if (count >= size) return `${threeDigits(count / size).replace(/\.0+$/, "")}${suffix}`;
  }
  return integer(count);
}

/** A share for reading: "87.5%", "<0.1%". */
export function percent(ratio) {
  const value = ratio * 100;
  if (value > 0 && value < 0.1) return "<0.1%";
  return `${value >= 99.95 || value === 0 ? Math.round(value) : value.toFixed(1)}%`;
}

/** A share as somebody states it: "1%", "0.5%". */
export const statedShare = (ratio) => `${quantity(ratio * 100)}%`;

/** A share that may be tiny, such as odds: "4.5%", "0.042%", "<0.0001%". */
export function share(ratio) {
  if (ratio > 0 && ratio < 1e-6) return "<0.0001%";
  return ratio < 0.01 ? statedShare(ratio) : percent(ratio);
}

/** A growth factor for reading: 127.99 -> "128", 3.337 -> "3.34". */
export function factor(ratio) {
  const near = Math.round(ratio);
  if (near > 0 && Math.abs(ratio - near) / near < 0.0005) return integer(near);
  return threeDigits(ratio);
}

/** A rate or an amount for reading: 1776.96 -> "1,777", 55.53 -> "55.5", 0.04195 -> "0.042". */
export function quantity(value) {
  if (value === 0 || value >= 1) return threeDigits(value).replace(/\.0+$/, "");
  return String(Number(value.toPrecision(2)));
}

const DURATIONS = [
  [3600, "h"],
  [60, "min"],
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
];

/** Seconds for reading: 0.018 -> "18 ms", 23.8 -> "23.8 s", 5400 -> "1.50 h". */
export function duration(seconds) {
  const [size, unit] = DURATIONS.find(([least]) => seconds >= least) ?? DURATIONS.at(-1);
  return `${quantity(seconds / size)} ${unit}`;
}

/** US dollars for reading: 34.332 -> "$34.33", 0.00417 -> "$0.0042". */
export function dollars(value) {
  return value >= 0.1 ? `$${value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}` : `$${quantity(value)}`;
}

const MULTIPLIERS = { "": 1, k: 2 ** 10, ki: 2 ** 10, m: 2 ** 20, mi: 2 ** 20, g: 2 ** 30, gi: 2 ** 30 };
const PLAIN = /^\d+(\.\d+)?$/;
const GROUPED = /^\d{1,3}([,_ ]\d{3})+$/;

/**
 * A whole number as people type it: 131072, 131,072, 128k (x1,024), 1M, 1e6.
 * @returns {number|null} null when the text is not such a number
 */
export function parseCount(text) {
  const cleaned = text
    .normalize("NFKC")
    .trim()
    .toLowerCase()
    .replace(/\s*(tokens?|토큰)$/, "");
  if (/^\d+(\.\d+)?e\+?\d{1,2}$/.test(cleaned)) return whole(Number(cleaned));
  const match = /^(.*?)\s*([kmg]i?)?$/.exec(cleaned);
  const [, digits, suffix = ""] = match;
  if (PLAIN.test(digits)) return whole(Number(digits) * MULTIPLIERS[suffix]);
  if (GROUPED.test(digits)) return whole(Number(digits.replace(/\D/g, "")) * MULTIPLIERS[suffix]);
  return null;
}

const BYTE_SIZES = { kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40, kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12 };

/**
 * Bytes as people copy them: 58465683113, "54.45 GiB" as a log prints it, "141 GB", "54.45g" (GiB).
 * @returns {number|null} whole bytes, or null when the text is none
 */
export function parseBytes(text) {
  const match = /^(\d+(?:\.\d+)?)\s*([kmgt]i?b)$/.exec(text.normalize("NFKC").trim().toLowerCase());
  if (match) return whole(Math.round(Number(match[1]) * BYTE_SIZES[match[2]]));
  const short = /^(\d+\.\d+)\s*([kmgt])i?$/.exec(text.normalize("NFKC").trim().toLowerCase());
  if (short) return whole(Math.round(Number(short[1]) * BYTE_SIZES[`${short[2]}ib`]));
  return parseCount(text);
}

/** How a field's text is read: bytes by their unit, anything else as a count. */
export const readerOf = (field) => (field.endsWith("_bytes") ? parseBytes : parseCount);

function whole(value) {
  return Number.isSafeInteger(value) ? value : null;
}
