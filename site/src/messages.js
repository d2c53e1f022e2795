/** Errors and warnings in the reader's language. */

import { bytesText, integer } from "./format.js";

/** Sizes of parallelism go by their initials. */
const PARALLEL = new Set(["tp", "pp", "dp", "dcp"]);

/** Parameters as a reader wants them: numbers grouped, lists joined, bytes with a unit. */
function readable(t, params, unit) {
  const shown = {};
  for (const [name, value] of Object.entries(params ?? {})) {
    // A limit is of bytes where something is too many of them.
    if (typeof value === "number" && (/bytes|ram/.test(name) || (name === "limit" && "bytes" in params))) shown[name] = bytesText(value, unit);
    else if (typeof value === "number") shown[name] = Number.isInteger(value) ? integer(value) : String(value);
    else if (name === "engines") shown[name] = value.map(engineName).join(", ");
    else if (Array.isArray(value)) shown[name] = value.map(String).join(", ") || t("list.none");
    else if (name === "argument" && PARALLEL.has(value)) shown[name] = value.toUpperCase();
    else if (name === "engine") shown[name] = engineName(value);
    else if (value === null) shown[name] = t("value.absent");
    else if (typeof value === "object") shown[name] = JSON.stringify(value);
    else shown[name] = clip(String(value));
  }
  return shown;
}

// Names and values come from pasted files: a whole file is no use in a sentence.
export const clip = (value) => (value.length > 160 ? `${value.slice(0, 157)}…` : value);

function worded(kind, t, { code, params, message }, unit) {
  const input = `field.${params?.field}`;
  if (code === "missing_field" && t.has(input)) return t("inputs.missing", { field: t(input) });
  const key = `${kind}.${code}`;
  if (t.has(key)) return t(key, readable(t, params, unit));
  if (message) return message;
  return t(`${kind}.other`, { code, details: JSON.stringify(params ?? {}) });
}

/** The model that the answer on screen is about. */
export function answeredName({ t, asked, answer: { estimate } }) {
  const name = asked.hub ?? estimate.name ?? estimate.model;
  return estimate.edited ? t("model.edited", { name }) : name;
}

export const errorText = (t, error, unit) => worded("error", t, error, unit);
export const warningText = (t, warning, unit) => worded("warning", t, warning, unit);

/** A short name, "BF16" or "FP8 + scale per token and head"; unknown ids as they are. */
export function formatName(t, id) {
  const key = `format.${id}`;
  if (t.has(key)) return t(key);
  return /^(fp|bf|int|nvfp|mxfp)\d+$/.test(id) ? id.toUpperCase() : id;
}

export function attentionName(t, kinds) {
  return kinds.map((kind) => kindName(t, kind)).join(" + ");
}

export function kindName(t, kind) {
  return t.has(`kind.${kind}`) ? t(`kind.${kind}`) : kind.replace(/_/g, " ");
}

export function componentName(t, component) {
  return t.has(`component.${component}`) ? t(`component.${component}`) : component;
}

const ENGINES = {
  vllm: "vLLM",
  sglang: "SGLang",
  tensorrt_llm: "TensorRT-LLM",
  llama_cpp: "llama.cpp",
  ollama: "Ollama",
  lm_studio: "LM Studio",
  transformers: "Transformers",
  mlx: "MLX",
  tgi: "TGI",
  lmdeploy: "LMDeploy",
};

/** An engine by the name its makers write. */
export const engineName = (id) => ENGINES[id] ?? id;

/** What an engine adds to the logical bytes, largest first: "window reserve 6.51 GiB". */
export function itemTexts(t, items, unit) {
  return Object.entries(items ?? {})
    .sort(([, a], [, b]) => Math.abs(b) - Math.abs(a))
    .map(([item, bytes]) => {
      const name = t.has(`item.${item}`) ? t(`item.${item}`) : item.replace(/_/g, " ");
      return `${name} ${bytes < 0 ? "−" : ""}${bytesText(Math.abs(bytes), unit)}`;
    });
}
