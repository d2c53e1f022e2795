/** Levers in words: what is changed, what else is known of it, and by whose word. */

import { bytesText, factor, integer, percent } from "./format.js";
import { engineName, formatName } from "./messages.js";

const PARALLEL = new Set(["tp", "pp", "dp", "dcp"]);
const SIZES = ["gpus", ...PARALLEL];
const LENGTHS = { context: "tokens", concurrency: "sequences" };

/** What a lever sets, old and new, in the order people think of it; what stays is not said. */
export function changeTexts(app, plan, change) {
  const { t } = app;
  const texts = [];
  const say = (field, from, to) => {
    const name = PARALLEL.has(field) ? field.toUpperCase() : t(`field.${field}`);
    texts.push(`${name} ${from} → ${to}`);
  };
  const has = (name) => Object.hasOwn(change, name);
  if (has("engine")) {
    say("engine", engineName(plan.engine), engineName(change.engine));
    return [...texts, t("lever_change.defaults")];
  }
  if (change.model) texts.push(app.resolve(change.model)?.name ?? change.model);
  if (change.kv_format) say("kv_format", formatName(t, plan.formats.kv), formatName(t, change.kv_format));
  if (change.weight_format) say("weight_format", formatName(t, plan.formats.weights), formatName(t, change.weight_format));
  for (const size of SIZES.filter(has)) {
    const to = change[size] ?? 1;
    if (to !== plan[size]) say(size, integer(plan[size]), integer(to));
  }
  for (const [length, field] of Object.entries(LENGTHS)) {
    if (has(length) && change[length] !== plan[length]) say(field, integer(plan[length]), integer(change[length]));
  }
  if (change.shared_prefix) say("shared_prefix", integer(app.asked.shared_prefix ?? 0), integer(change.shared_prefix));
  if (change.draft_model) texts.push(app.resolve(change.draft_model)?.name ?? change.draft_model);
  if (has("engine_options")) texts.push(...optionTexts(app, change.engine_options ?? {}));
  return texts;
}

/** Options of the engine that are set or taken away. */
function optionTexts({ asked, t }, options) {
  const before = asked.engine_options;
  const set = Object.entries(options).filter(([name, value]) => String(value) !== before[name]);
  const gone = Object.keys(before).filter((name) => !Object.hasOwn(options, name));
  return [
    ...set.map(([name, value]) => `${name} = ${value}`),
    ...gone.map((name) => t("lever_change.without", { option: name })),
  ];
}

const HOMES = {
  vLLM: "https://github.com/vllm-project/vllm/blob/",
  SGLang: "https://github.com/sgl-project/sglang/blob/",
};
const PAPER = /arXiv:? ?(\d{4}\.\d{5})/g;
const PAGE = /(vLLM|SGLang) (docs\/[\w./-]+) @([0-9a-f]{7,40})/g;

/** Links to what a source names; what names nothing to follow gives none. */
export function sources(t, text) {
  const papers = [...text.matchAll(PAPER)].map(([, number]) => ({
    name: `arXiv ${number}`,
    address: `https://arxiv.org/abs/${number}`,
  }));
  const pages = [...text.matchAll(PAGE)].map(([, project, path, commit]) => ({
    name: t("levers.docs", { project }),
    address: `${HOMES[project]}${commit}/${path}`,
  }));
  return [...pages, ...papers];
}

/** What is known of a lever that is not pulled, where that says something. */
export function figureText(t, { lever, figures }, unit) {
  const key = `lever_figure.${lever}`;
  if (!t.has(key)) return "";
  const texts = Object.fromEntries(
    Object.entries(figures)
      .filter(([, value]) => typeof value === "number")
      .map(([name, value]) => [name, /bytes/.test(name) ? bytesText(value, unit) : integer(value)]),
  );
  return Object.keys(texts).length === 0 ? "" : t(key, texts);
}

/** What a rule of thumb says beside what is exact. */
export function shortcutText(t, shortcut, unit) {
  const params = {};
  for (const [name, value] of Object.entries(shortcut)) {
    if (typeof value !== "number") continue;
    if (/bytes/.test(name)) params[name] = bytesText(value, unit);
    else if (/percent/.test(name)) params[name] = percent(value / 100);
    else params[name] = name === "ratio" ? factor(value) : integer(value);
  }
  const less = shortcut.shortcut === "mha_formula" && shortcut.says_bytes < shortcut.exact_bytes;
  return t(`shortcut_says.${shortcut.shortcut}${less ? "_less" : ""}`, params);
}
