/**
 * The scenario and its readable form: #v=1&model=...&tokens=...
 * Names are those of the api; what a link of its version takes for granted is left out.
 */

import { parseCount } from "./format.js";
import { givenPairs, nothingGiven, readInput } from "./panelinputs.js";
import { textOf, valueOf } from "./values.js";

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
  draft_model: text,
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
/** A field of the model's config changed by hand. */
const EDIT = "set.";

export const VIEW_DEFAULTS = { lang: null, theme: null, unit: "gib", embed: false, view: "full" };

/**
 * What only files, or a text, can say: of the model, and of one that drafts for it. `hub` is what the Hub calls
 * the model, where it was looked up.
 */
export const NO_FILES = { model_text: null, weights: null, hub: null, draft_model_text: null, draft_weights: null };

/** The build's default scenario, with every field present. */
export function completeScenario(given) {
  const scenario = { ...NO_FILES, engine_options: {}, edits: {} };
  for (const key of Object.keys(FIELDS)) scenario[key] = null;
  Object.assign(scenario, { no_state: false, draft: false }, given);
  scenario.engine_options = { ...(given.engine_options ?? {}) };
  scenario.edits = { ...(given.edits ?? {}) };
  return scenario;
}

/** The api's parameters that say which model is meant, with the weights its files have. */
export function modelParams({ model, model_text: text, weights, edits = {} }) {
  const params = text === null ? { model } : { model_text: text };
  if (text !== null && weights !== null) params.weights = weights;
  if (Object.keys(edits).length > 0) params.edits = { ...edits };
  return params;
}

/** The same of a draft model. */
const draftParams = ({ draft_model_text: text, draft_weights: weights }) =>
  Object.fromEntries(
    Object.entries(modelParams({ model: null, model_text: text, weights })).map(([key, value]) => [`draft_${key}`, value]),
  );

/** The api's parameters of some keys: what is not said is not sent. */
function said(scenario, keys) {
  const params = modelParams(scenario);
  for (const key of keys) {
    const value = scenario[key] ?? null;
    if (key === "model") continue;
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
export const toPlanParams = (scenario) => (scenario.gpu ? toCacheParams(scenario) : null);

/** The same under the same names, without a GPU what it says of model, engine and requests. */
export function toCacheParams(scenario) {
  const keys = Object.keys(scenario.gpu ? FIELDS : SCENARIO).filter((key) => !NOT_PLANNED.includes(key));
  const params = said(scenario, keys);
  if (scenario.draft_model_text !== null) Object.assign(params, draftParams(scenario));
  return Object.fromEntries(Object.entries(params).map(([key, value]) => [PLAN_NAMES[key] ?? key, value]));
}

/**
 * Parameters of a plan to set as fields of the scenario, null taking one away.
 * @returns {object|null} null where the page has no such field
 */
export function fromPlanChange(change) {
  const blank = completeScenario({});
  const patch = {};
  for (const [name, value] of Object.entries(change)) {
    const field = Object.keys(PLAN_NAMES).find((key) => PLAN_NAMES[key] === name) ?? name;
    if (!Object.hasOwn(blank, field)) {
      if (value === null) continue;
      return null;
    }
    if (field === "engine_options") {
      patch[field] = Object.fromEntries(Object.entries(value ?? {}).map(([option, set]) => [option, String(set)]));
    } else patch[field] = value ?? blank[field];
  }
  return patch;
}

const encode = (value) => encodeURIComponent(value).replace(/%2F/g, "/").replace(/%3A/g, ":").replace(/%2C/g, ",");
const written = (value) => (value === true ? "1" : value === false ? "0" : String(value));

/** What came from files beside the model's text, as links carry it; null where nothing did. */
export function filesJson({ weights, draft_model_text: text, draft_weights }) {
  const brief = (stored) => {
    if (stored === null) return null;
    const { by_type, ...rest } = stored;
    return rest;
  };
  if (weights === null && text === null) return null;
  return JSON.stringify({
    ...(weights === null ? {} : { weights: brief(weights) }),
    ...(text === null ? {} : { draft_model_text: text, draft_weights: brief(draft_weights) }),
  });
}

/** The same, read again. @throws for what is no such text */
export function filesOfJson(json) {
  const given = JSON.parse(json);
  const objectOrNull = (value) => {
    if (value === undefined || value === null) return null;
    if (!isPlain(value)) throw new TypeError("not an object");
    return value;
  };
  const text = objectOrNull(given).draft_model_text ?? null;
  if (text !== null && typeof text !== "string") throw new TypeError("not a text");
  return {
    weights: objectOrNull(given.weights),
    draft_model_text: text,
    draft_weights: text === null ? null : objectOrNull(given.draft_weights),
  };
}

const isPlain = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The fragment without its "#".
 * @param {{cfg: string|null, files: string|null, hub: string|null}} [packed] the model's text, what files gave
 *   beside it, and what it is called on the Hub: a name alone, which no link looks up
 */
export function serialize({ scenario, view, given = {}, cfg = null, files = null, hub = null }) {
  const pairs = givenPairs(given);
  for (const key of Object.keys(scenario.gpu ? FIELDS : SCENARIO)) {
    if (key === "model" && cfg !== null) continue;
    const value = scenario[key];
    if (value === null || value === (LINK_DEFAULTS[key] ?? false)) continue;
    pairs.push([key, written(value)]);
  }
  for (const [name, value] of Object.entries(scenario.engine_options)) {
    pairs.push([OPTION + name, written(value)]);
  }
  for (const [path, value] of Object.entries(scenario.edits)) pairs.push([EDIT + path, textOf(value)]);
  for (const [key, fallback] of Object.entries(VIEW_DEFAULTS)) {
    const value = view[key];
    if (value !== undefined && value !== null && value !== fallback) pairs.push([key, written(value)]);
  }
  if (cfg !== null) pairs.push(["cfg", cfg]);
  if (files !== null) pairs.push(["files", files]);
  if (cfg !== null && hub !== null) pairs.push(["hub", hub]);
  pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return [`v=${VERSION}`, ...pairs.map(([key, value]) => `${encode(key)}=${encode(value)}`)].join("&");
}

/**
 * Reads a fragment. Never throws: what it can't use is returned as `problems`.
 * `linked` tells whether it states a scenario at all, if only by its version.
 * @returns {{scenario: object, view: object, given: object, cfg: string|null, files: string|null, hub: string|null, problems: Array<{code: string, params: object}>, empty: boolean, linked: boolean}}
 */
export function parse(fragment) {
  const found = { scenario: {}, view: {}, given: nothingGiven(), cfg: null, files: null, hub: null, problems: [], empty: true, linked: false };
  const source = fragment.replace(/^[#?]/, "");
  if (!source.includes("=")) return found;
  const options = new Map();
  const edits = new Map();
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
    } else if (key === "cfg" || key === "files" || key === "hub") {
      found[key] = raw;
    } else if (key.startsWith(OPTION) && key.length > OPTION.length) {
      options.set(key.slice(OPTION.length), raw);
    } else if (key.startsWith(EDIT) && key.length > EDIT.length) {
      edits.set(key.slice(EDIT.length), valueOf(raw));
    } else if (readInput(...split(key), raw) !== undefined) {
      const [panel, name] = split(key);
      const value = readInput(panel, name, raw);
      if (value === null) found.problems.push({ code: "link_value", params: { key, value: raw } });
      else found.given[panel][name] = value;
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
  if (edits.size > 0) found.scenario.edits = Object.fromEntries(edits);
  return found;
}

/** A key at its first dot: a panel and one of its inputs. */
function split(key) {
  const dot = key.indexOf(".");
  return dot < 0 ? [key, ""] : [key.slice(0, dot), key.slice(dot + 1)];
}

function decode(raw) {
  try {
    return decodeURIComponent(raw);
  } catch {
    return raw;
  }
}
