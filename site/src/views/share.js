/** Take it with you: link, frame, command line, Python, JSON, and the page itself. */

import { html, nothing } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { embedCode, embedPreview } from "../embed.js";
import { toParams, toPlanParams } from "../state.js";
import { textOf } from "../values.js";

export const TABS = ["link", "embed", "cli", "python", "json"];

/** Parameters that the command line takes as words, in its own order; each under its own name. */
const CLI_PARAMS = {
  estimate: [
    "tokens",
    "sequences",
    "kv_format",
    "indexer_format",
    "state_format",
    "encoder_tokens",
    "checkpoint_interval",
    "engine",
    "engine_version",
  ],
  plan: [
    "gpu",
    "gpus",
    "memory_mib",
    "engine",
    "engine_version",
    "tp",
    "pp",
    "dp",
    "dcp",
    "context",
    "concurrency",
    "kv_format",
    "indexer_format",
    "state_format",
    "weight_format",
    "weight_bytes",
    "block_tokens",
    "batched_tokens",
    "memory_fraction",
    "reserve_bytes",
    "pool_bytes",
    "shared_prefix",
  ],
};
const flagOf = (name) => `--${name.replace(/_/g, "-")}`;

/** What is asked of kvcore: a plan where there is a GPU. */
function question(scenario) {
  const plan = toPlanParams(scenario);
  return plan === null ? { method: "estimate", params: toParams(scenario) } : { method: "plan", params: plan };
}

const quoted = (value) =>
  /^[\w@%+=:,./-]+$/.test(String(value)) ? String(value) : `'${String(value).replace(/'/g, `'\\''`)}'`;

/** The file that a model's text came from, or would be in. */
const fileOf = (app, text) => app.imports.get(text)?.name ?? "config.json";

export function cliCommand(app) {
  const { method, params } = question(app.scenario);
  const { model_text: text, draft_model: draft, draft_model_text: draftText } = params;
  const words = [`python3 -m kvcore ${method}`, quoted(text === undefined ? params.model : fileOf(app, text))];
  if (draftText !== undefined) words.push(`--draft-model ${quoted(fileOf(app, draftText))}`);
  else if (draft !== undefined) words.push(`--draft-model ${quoted(draft)}`);
  for (const [path, value] of Object.entries(params.edits ?? {})) words.push(`--set ${quoted(`${path}=${textOf(value)}`)}`);
  for (const name of CLI_PARAMS[method]) {
    if (params[name] !== undefined) words.push(`${flagOf(name)} ${quoted(params[name])}`);
  }
  if (params.no_state) words.push("--no-state");
  if (params.draft) words.push("--draft");
  for (const [name, value] of Object.entries(params.engine_options ?? {}))
    words.push(`--engine-option ${quoted(`${name}=${value}`)}`);
  return words.join(" ");
}

/** JSON's literals in Python's words. */
const CONSTANTS = new Map([
  [true, "True"],
  [false, "False"],
  [null, "None"],
]);

function literal(value) {
  if (CONSTANTS.has(value)) return CONSTANTS.get(value);
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const pairs = Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)}: ${literal(inner)}`);
  return `{${pairs.join(", ")}}`;
}

const OF_FILES = ["model_text", "weights", "draft_model_text", "draft_weights"];

export function pythonSnippet(app) {
  const { method, params } = question(app.scenario);
  const { model_text: text, draft_model_text: draftText } = params;
  const rows = Object.entries(params)
    .filter(([key]) => !OF_FILES.includes(key))
    .map(([key, value]) => `    ${JSON.stringify(key)}: ${literal(value)},`);
  const opened = [];
  if (text !== undefined) rows.unshift("    **model,");
  if (draftText !== undefined) rows.push('    **{f"draft_{name}": value for name, value in draft.items()},');
  if (text !== undefined) opened.push(`model = files.model_params(${JSON.stringify(fileOf(app, text))})`);
  if (draftText !== undefined) opened.push(`draft = files.model_params(${JSON.stringify(fileOf(app, draftText))})`);
  return [
    opened.length === 0 ? "from kvcore import api" : "from kvcore import api, files",
    "",
    ...opened,
    `answer = api.call(${JSON.stringify(method)}, {`,
    ...rows,
    "})",
    `print(answer[${method === "plan" ? '"verdict"' : '"total_bytes"'}])`,
  ].join("\n");
}

function content(app, tab) {
  if (tab === "link") return app.link;
  if (tab === "embed") return embedCode(app);
  if (tab === "cli") return cliCommand(app);
  if (tab === "python") return pythonSnippet(app);
  return JSON.stringify(app.asked.gpu ? app.planned.plan : app.answer.estimate, null, 2);
}

function copyButton(app, actions, tab) {
  const { t } = app;
  const done = app.share.copied === tab;
  return html`<button
    type="button"
    class="button primary"
    id="copy-${tab}"
    @click=${() => actions.copy(tab, content(app, tab))}
  >
    ${done ? t("share.copied") : t(`share.copy_${tab}`)}
  </button>`;
}

function embedSettings(app, actions) {
  const { t, share } = app;
  const select = (name, values) =>
    html`<div class="field inline">
      <label for="embed-${name}">${t(`share.embed_${name}`)}</label>
      <select
        id="embed-${name}"
        .value=${live(share.embed[name])}
        @change=${(event) => actions.setEmbed({ [name]: event.target.value })}
      >
        ${values.map((value) => html`<option value=${value} ?selected=${share.embed[name] === value}>${t(`share.embed_${name}.${value}`)}</option>`)}
      </select>
    </div>`;
  return html`<div class="embed-settings">
    ${select("view", ["answer", "bar", "curve", "full"])}${select("theme", [
      "auto",
      "light",
      "dark",
    ])}${select("lang", ["en", "ko"])}
    <div class="field check">
      <label
        ><input
          type="checkbox"
          id="embed-resize"
          ?checked=${share.embed.resize}
          .checked=${live(share.embed.resize)}
          @change=${(event) => actions.setEmbed({ resize: event.target.checked })}
        />
        ${t("share.embed_resize")}</label
      >
    </div>
  </div>`;
}

function onTabKey(actions, event, tab) {
  const step = { ArrowRight: 1, ArrowLeft: -1, Home: -TABS.length, End: TABS.length }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const position = Math.min(Math.max(TABS.indexOf(tab) + step, 0), TABS.length - 1);
  actions.setTab(TABS[position]);
  document.getElementById(`tab-${TABS[position]}`)?.focus();
}

function panel(app, actions, tab) {
  const { t } = app;
  const text = content(app, tab);
  const rows = Math.min(Math.max(text.split("\n").length, tab === "json" ? 12 : 2), 16);
  return html`<div role="tabpanel" id="panel" aria-labelledby="tab-${tab}" class="panel">
    ${tab === "embed" ? embedSettings(app, actions) : nothing}
    <textarea
      class="code"
      id="share-text"
      readonly
      rows=${rows}
      spellcheck="false"
      aria-label=${t(`share.tab_${tab}`)}
      .value=${text}
    >
${text}</textarea>
    <div class="panel-actions">
      ${copyButton(app, actions, tab)}<span class="hint"
        >${tab === "link" && app.cfgTooLong ? t("notice.cfg_too_long") : t(`share.hint_${tab}`)}</span
      >
    </div>
    ${app.share.refused ? html`<p class="message warning">${t("share.refused")}</p>` : nothing}
    ${tab === "embed" ? embedPreview(app) : nothing}
  </div>`;
}

export function share(app, actions) {
  const { t } = app;
  const tab = app.share.tab;
  return html`<section class="share" aria-labelledby="share-heading">
    <h2 id="share-heading">${t("share.heading")}</h2>
    <div role="tablist" class="tabs" aria-labelledby="share-heading">
      ${TABS.map(
        (name) =>
          html`<button
            type="button"
            role="tab"
            id="tab-${name}"
            aria-selected=${String(name === tab)}
            aria-controls=${name === tab ? "panel" : nothing}
            tabindex=${name === tab ? "0" : "-1"}
            @click=${() => actions.setTab(name)}
            @keydown=${(event) => onTabKey(actions, event, tab)}
          >
            ${t(`share.tab_${name}`)}
          </button>`,
      )}
    </div>
    ${panel(app, actions, tab)}
    ${
      app.saved
        ? nothing
        : html`<p class="save">
            <a class="button" id="save" href="index.html" download=${app.fileName} @click=${actions.saveOffline}
              >${t("share.save")}</a
            >
            <span class="hint">${t("share.save_hint")}</span>
          </p>`
    }
  </section>`;
}
