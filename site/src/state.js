/**
 * The scenario and its readable form: #v=1&model=...&tokens=...
 * Names are those of the api; what a link of its version takes for granted is left out.
 */

import { parseCount } from "./format.js";

export const VERSION = 1;

/**
 * What a link of version 1 means by leaving something out. Fixed for good: the page may open with
 * another scenario, but a link keeps its numbers.
 */
export const LINK_DEFAULTS = { model: "llama-3.1-70b-instruct", tokens: 131072, sequences: 1 };

const EMBED_VIEWS = ["answer", "bar", "curve", "full"];

/** Readers return undefined for a value they refuse. */
const text = (raw) => (raw.length > 0 && raw.length <= 200 ? raw : undefined);
const flag = (raw) => (raw === "1" ? true : raw === "0" ? false : undefined);
const positive = (raw) => whole(raw, 1);
const natural = (raw) => whole(raw, 0);
const oneOf =
  (...values) =>
  (raw) =>
    values.includes(raw) ? raw : undefined;

function fractionOf(raw) {
  const value = /^\d*\.?\d+$/.test(raw) ? Number(raw) : Number.NaN;
  return value > 0 && value <= 1 ? value : undefined;
}

function whole(raw, least) {
  const value = parseCount(raw);
  return value !== null && value >= least ? value : undefined;
}

/** What kvcore is asked; null means "not said". */
const SCENARIO = {
  model: text,
  tokens: natural,
  sequences: positive,
  kv_format: text,
  indexer_format: text,
  state_format: text,
  no_state: flag,
  draft: flag,
  encoder_tokens: natural,
  checkpoint_interval: positive,
  engine: text,
  engine_version: text,
  gpu: text,
};

/** What only a plan asks for: the GPUs and how the engine uses them. */
const PLAN = {
  gpus: positive,
  memory_mib: positive,
  tp: positive,
  pp: positive,
  dp: positive,
  dcp: positive,
  memory_fraction: fractionOf,
  block_tokens: positive,
  batched_tokens: positive,
  weight_format: text,
  weight_bytes: natural,
  reserve_bytes: natural,
  pool_bytes: natural,
  shared_prefix: natural,
};
const FIELDS = { ...SCENARIO, ...PLAN };
/** What only the logical bytes depend on: a plan has no such setting. */
export const NOT_PLANNED = ["no_state", "encoder_tokens", "checkpoint_interval"];
/** The api's own names in a plan for what the page calls otherwise. */
const PLAN_NAMES = { tokens: "context", sequences: "concurrency" };

/** How it is shown. */
const VIEW = {
  lang: text,
  theme: oneOf("auto", "light", "dark"),
  unit: oneOf("gib", "gb"),
  embed: flag,
  view: oneOf(...EMBED_VIEWS),
};

const OPTION = "option.";

export const VIEW_DEFAULTS = { lang: null, theme: null, unit: "gib", embed: false, view: "full" };

/** The build's default scenario, with every field present. */
export function completeScenario(given) {
  const scenario = { model_text: null, engine_options: {} };
  for (const key of Object.keys(FIELDS)) scenario[key] = null;
  Object.assign(scenario, { no_state: false, draft: false }, given);
  scenario.engine_options = { ...(given.engine_options ?? {}) };
  return scenario;
}

/** The api's parameters of some keys: what is not said is not sent. */
function said(scenario, keys) {
  const params = {};
  if (scenario.model_text !== null) params.model_text = scenario.model_text;
  for (const key of keys) {
    const value = scenario[key] ?? null;
    if (key === "model" && scenario.model_text !== null) continue;
    if (value === null || value === false) continue;
    if (key === "engine_version" && scenario.engine === null) continue;
    params[key] = value;
  }
  if (scenario.engine !== null && Object.keys(scenario.engine_options).length > 0) {
    params.engine_options = { ...scenario.engine_options };
  }
  return params;
}

/** The api's parameters for `estimate`. */
export const toParams = (scenario) =>
  said(
    scenario,
    Object.keys(SCENARIO).filter((key) => key !== "gpu"),
  );

/** The api's parameters for `plan`; null without a GPU. */
export function toPlanParams(scenario) {
  if (!scenario.gpu) return null;
  const keys = Object.keys(FIELDS).filter((key) => !NOT_PLANNED.includes(key));
  return Object.fromEntries(
    Object.entries(said(scenario, keys)).map(([key, value]) => [PLAN_NAMES[key] ?? key, value]),
  );
}

const encode = (value) => encodeURIComponent(value).replace(/%2F/g, "/").replace(/%3A/g, ":").replace(/%2C/g, ",");
const written = (value) => (value === true ? "1" : value === false ? "0" : String(value));

/**
 * The fragment without its "#".
 * @param {string|null} cfg the packed config.json of a custom model
 */
export function serialize({ scenario, view, cfg = null }) {
  const pairs = [];
  for (const key of Object.keys(scenario.gpu ? FIELDS : SCENARIO)) {
    if (key === "model" && cfg !== null) continue;
    const value = scenario[key];
    if (value === null || value === (LINK_DEFAULTS[key] ?? false)) continue;
    pairs.push([key, written(value)]);
  }
  for (const [name, value] of Object.entries(scenario.engine_options)) {
    pairs.push([OPTION + name, written(value)]);
  }
  for (const [key, fallback] of Object.entries(VIEW_DEFAULTS)) {
    const value = view[key];
    if (value !== undefined && value !== null && value !== fallback) pairs.push([key, written(value)]);
  }
  if (cfg !== null) pairs.push(["cfg", cfg]);
  pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return [`v=${VERSION}`, ...pairs.map(([key, value]) => `${encode(key)}=${encode(value)}`)].join("&");
}

/**
 * Reads a fragment. Never throws: what it can't use is returned as `problems`.
 * `linked` tells whether it states a scenario at all, if only by its version.
 * @returns {{scenario: object, view: object, cfg: string|null, problems: Array<{code: string, params: object}>, empty: boolean, linked: boolean}}
 */
export function parse(fragment) {
  const found = { scenario: {}, view: {}, cfg: null, problems: [], empty: true, linked: false };
  const source = fragment.replace(/^[#?]/, "");
  if (!source.includes("=")) return found;
  const options = new Map();
  for (const pair of source.split("&")) {
    if (pair === "") continue;
    const cut = pair.indexOf("=");
    const key = decode(cut < 0 ? pair : pair.slice(0, cut));
    const raw = decode(cut < 0 ? "" : pair.slice(cut + 1).replace(/\+/g, " "));
    found.empty = false;
    if (!Object.hasOwn(VIEW, key)) found.linked = true;
    if (key === "v") {
      if (raw !== String(VERSION))
        found.problems.push({ code: "link_version", params: { value: raw, expected: VERSION } });
    } else if (key === "cfg") {
      found.cfg = raw;
    } else if (key.startsWith(OPTION) && key.length > OPTION.length) {
      options.set(key.slice(OPTION.length), raw);
    } else {
      const [target, readers] = Object.hasOwn(FIELDS, key)
        ? [found.scenario, FIELDS]
        : Object.hasOwn(VIEW, key)
          ? [found.view, VIEW]
          : [null, null];
      if (target === null) {
        found.problems.push({ code: "link_unknown", params: { key } });
        continue;
      }
      const value = readers[key](raw);
      if (value === undefined) found.problems.push({ code: "link_value", params: { key, value: raw } });
      else target[key] = value;
    }
  }
  if (options.size > 0) found.scenario.engine_options = Object.fromEntries(options);
  return found;
}

function decode(raw) {
  try {
    return decodeURIComponent(raw);
  } catch {
    return raw;
  }
}
