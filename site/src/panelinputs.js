/**
 * What panels ask for beside the scenario. Names are those of the api's parameters; in links a panel's own
 * stand behind its id: `speed.price=4.5`.
 */

import { parseBytes, parseCount } from "./format.js";

/**
 * @typedef {{read: (text: string) => string|number|null, code: string, plain?: boolean}} Kind `read` gives null for
 * what it refuses; what is `plain` is shown as it is, others with their digits grouped
 */

const atLeast = (least, read) => (text) => {
  const value = read(text);
  return value !== null && value >= least ? value : null;
};

const decimal = (text) => {
  const cleaned = text.normalize("NFKC").trim();
  return /^(\d+\.?\d*|\.\d+)$/.test(cleaned) ? Number(cleaned) : null;
};

/** Tokens as kvcore takes them: a number, or the median and the 95th percentile: "6,900", "7k/40k". */
const lengths = (text) => {
  const counts = text.split("/").map((part) => atLeast(1, parseCount)(part));
  if (counts.length > 2 || counts.includes(null)) return null;
  return counts.length === 1 ? counts[0] : counts.join("/");
};

/** Numbers as kvcore takes them: "40, 80 160" is "40,80,160". */
const list = (text) => {
  const parts = text.normalize("NFKC").trim().split(/[\s,;]+/);
  return parts.every((part) => decimal(part) > 0 && !/^0\d/.test(part)) ? parts.join(",") : null;
};

/** TensorRT-LLM's retention as kvcore takes it: START:END=PRIORITY/SECONDS,... */
const rules = (text) => {
  const cleaned = text.normalize("NFKC").replace(/\s/g, "");
  return /^(\d*:\d*=\d+(\/\d+\.?\d*)?(,(?!$)|$))+$/.test(cleaned) ? cleaned : null;
};

/** A share of one: "0.01", "1%". */
const part = (text) => {
  const [, digits, percent] = /^(.*?)\s*(%?)$/.exec(text.normalize("NFKC").trim());
  const value = decimal(digits) === null ? null : percent ? Number(`${digits}e-2`) : decimal(digits);
  return value > 0 && value < 1 ? value : null;
};

const KIND = {
  count: { read: atLeast(1, parseCount), code: "count" },
  bytes: { read: atLeast(1, parseBytes), code: "bytes" },
  decimal: { read: (text) => (decimal(text) > 0 ? decimal(text) : null), code: "decimal" },
  share: { read: part, code: "share" },
  lengths: { read: lengths, code: "lengths" },
  list: { read: list, code: "list", plain: true },
  rules: { read: rules, code: "rules", plain: true },
  choice: { read: (text) => (/^[\w.:-]{1,80}$/.test(text) ? text : null), code: "choice" },
};

/** Every input of every panel, and how its text is read. */
export const PANEL_INPUTS = {
  traffic: {
    prompt: KIND.lengths,
    output: KIND.lengths,
    arrival_rate: KIND.decimal,
    tokens_per_second: KIND.decimal,
    seconds_per_request: KIND.decimal,
    prefill_tokens_per_second: KIND.decimal,
    odds: KIND.share,
    common_prefix: KIND.count,
    context: KIND.count,
  },
  speed: {
    price: KIND.decimal,
    prompt_tokens: KIND.count,
    bandwidth_bytes_per_second: KIND.bytes,
    flops_per_second: KIND.count,
  },
  reuse: {
    preset: KIND.choice,
    policy: KIND.choice,
    retention: KIND.rules,
    replicas: KIND.count,
    routing: KIND.choice,
    block_tokens: KIND.count,
    trace_block_tokens: KIND.count,
    tokens_per_second: KIND.decimal,
    warmup: KIND.share,
    budgets_gib: KIND.list,
  },
};

/** No input of any panel. */
export const nothingGiven = () => Object.fromEntries(Object.keys(PANEL_INPUTS).map((id) => [id, {}]));

/** What a text says for an input; undefined where there is no such input, null where it can't be read. */
export function readInput(panel, name, text) {
  const kinds = Object.hasOwn(PANEL_INPUTS, panel) ? PANEL_INPUTS[panel] : {};
  return Object.hasOwn(kinds, name) ? kinds[name].read(text) : undefined;
}

/** Pairs of a link, as `parse` of state.js reads them back. */
export const givenPairs = (given) =>
  Object.entries(given).flatMap(([panel, values]) =>
    Object.entries(values).map(([name, value]) => [`${panel}.${name}`, String(value)]),
  );

const joined = new WeakMap();

/**
 * What a panel is asked about: the scenario, its own inputs, and a file where it has one. The same object for the
 * same three, so that a panel knows that nothing has changed.
 * @returns {{scenario: object, given: object, file: object|null}}
 */
export function subjectOf(scenario, given, file = null) {
  let of = joined;
  for (const part of file === null ? [scenario, given] : [scenario, given, file]) {
    if (!of.has(part)) of.set(part, new WeakMap());
    of = of.get(part);
  }
  if (!of.has(joined)) of.set(joined, { scenario, given, file });
  return of.get(joined);
}
