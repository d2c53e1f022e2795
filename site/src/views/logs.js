/** The box for what an engine printed: what was read of it, and what came of that. */

import { html, nothing } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { bytesText, integer } from "../format.js";
import { engineName, errorText, warningText } from "../messages.js";
import { drops } from "./drops.js";
import { alsoRead, busy, isOpen, table, together } from "./logtable.js";

/** One short line of each engine, of our own making. */
export const EXAMPLES = [
  ["vllm", "Available KV cache memory: 47.31 GiB"],
  ["sglang", "KV Cache is allocated. #tokens: 300000, K size: 18.31 GB, V size: 18.31 GB"],
  ["tensorrt_llm", "[MemUsageChange] Allocated 54.00 GiB for max tokens in paged KV cache (442368)."],
  ["llama_cpp", "llama_context: KV self size  = 1088.00 MiB, K (q8_0):  544.00 MiB, V (q8_0):  544.00 MiB"],
  ["ollama", 'time=2026-01-01T10:00:00Z level=INFO source=server.go:1 cmd="ollama runner --ctx-size 16384 --parallel 4"'],
  ["tgi", "KV-cache blocks: 43808, size: 1"],
  ["lmdeploy", "[TM][INFO] [BlockManager] block_size = 8 MB"],
  ["mlx", "KV Caches: 1 seq, 0.67 GB, latest user cache 5000 tokens"],
  [null, "CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity of 79.15 GiB"],
];
const MAX_CHIPS = 24;
/** Settings that stand elsewhere, or say nothing of the cache. */
const NOT_CHIPS = new Set(["model", "wording", "backend", "out_of_memory"]);

// What was read ------------------------------------------------------------------

function chips(app, answer) {
  const { t } = app;
  const { engine, engine_version: version, model_printed: printed, gpus_printed: gpus, settings } = answer;
  const facts = [
    ...(engine ? [[t("field.engine"), `${engineName(engine)} ${version ?? ""}`.trim()]] : []),
    ...(printed ? [[t("field.model"), printed]] : []),
    ...gpus.slice(0, 4).map((name) => ["GPU", name]),
  ];
  const told = Object.entries(settings).filter(([name]) => !NOT_CHIPS.has(name));
  if (facts.length + told.length === 0) return nothing;
  const shown = (value) => (typeof value === "boolean" ? t(value ? "log.on" : "log.off") : String(value));
  return html`<ul class="log-chips" aria-label=${t("log.read")}>
    ${facts.map(([name, value]) => html`<li><span class="muted">${name}</span> <b>${value}</b></li>`)}
    ${told.slice(0, MAX_CHIPS).map(([name, value]) => html`<li><code>${name}</code> <b>${shown(value)}</b></li>`)}
  </ul>`;
}

/** Whose model the numbers are compared with, and the way to change that. */
function comparedModel(app, actions, answer) {
  const { t, log } = app;
  if (answer.model === null || answer.engine === null) return nothing;
  const page = html`<b>${app.modelName}</b>`;
  const change = (source, key) =>
    html`<button type="button" class="link-button" @click=${() => actions.compareWith(source)}>${t(key)}</button>`;
  if (log.source === "page") {
    return html`<p class="log-model">
      ${t.parts(log.preferPage ? "log.model_chosen" : "log.model_of_page", { model: page })}
      ${
        log.preferPage
          ? change("log", "log.use_log")
          : html`<button type="button" class="link-button" @click=${() => document.getElementById("model")?.focus()}>
              ${t("log.choose_model")}
            </button>`
      }
    </p>`;
  }
  const { model: id } = answer.form;
  const name = (typeof id === "string" && app.resolve(id)?.name) || answer.model_printed || answer.model;
  const same = app.scenario.model !== null && app.scenario.model === id;
  return html`<p class="log-model">
    ${t.parts(same ? "log.model_same" : "log.model_of_log", { model: html`<b>${name}</b>`, page })}
    ${same ? nothing : change("page", "log.use_page")}
  </p>`;
}

/** What would help where nothing explains a number. */
function missing(app, answer) {
  const { t } = app;
  const lost = answer.comparisons.some(({ agrees, causes: [first] }) => !agrees && first?.code === "unexplained");
  if (!lost) return nothing;
  const few = Object.keys(answer.settings).length < 6;
  const wanted = [
    ...(answer.engine_version === null ? [t("log.tell_version")] : []),
    ...(few ? [t("log.tell_settings")] : []),
    ...(answer.gpu === null ? [t("log.tell_gpu")] : []),
  ];
  return html`<div class="log-missing">
    <p>${t(wanted.length > 0 ? "log.tell" : "log.tell_nothing")}</p>
    <ul class="prose">
      ${wanted.map((text) => html`<li>${text}</li>`)}
    </ul>
  </div>`;
}

function warnings(app, answer) {
  const { t, view } = app;
  // What the box says itself, in its own words and with the way out.
  const said = app.log.source === "page" ? ["log_model_unknown", "log_model_missing"] : [];
  const shown = answer.warnings.filter(({ code }) => code !== "log_not_understood" && !said.includes(code));
  if (shown.length === 0) return nothing;
  return html`<ul class="log-warnings">
    ${shown.map((warning) => html`<li class="notice warning">${warningText(t, warning, view.unit)}</li>`)}
  </ul>`;
}

const understood = ({ warnings: all }) => !all.some(({ code }) => code === "log_not_understood");

/** The outcome in a sentence or two, for the eye and for the ear. */
export function summary(app) {
  const { t, log } = app;
  const { answer, error, state } = log;
  if (state === "failed") return t("log.failed");
  if (error) return errorText(t, error, app.view.unit);
  if (answer === null) return "";
  if (!understood(answer)) return t("log.not_understood");
  const { comparisons } = answer;
  const total = comparisons.length;
  if (total === 0) return t(answer.engine === null ? "log.no_engine" : "log.nothing_compared");
  const open = comparisons.filter(({ agrees }) => !agrees);
  if (open.length === 0) return t.count("log.all_agree", total, { count: total });
  const some =
    open.length === total
      ? t.count("log.all_differ", total, { count: total })
      : t.count("log.some_differ", open.length, { agree: total - open.length, total, differ: open.length });
  if (!answer.complete) return some;
  const cause = open.map(({ causes: [first] }) => first).find((first) => !isOpen(first));
  const why = cause ? t("log.because", { cause: together(app, cause).join(` ${t("log.and")} `) }) : t("log.unexplained");
  return `${some} ${why}`;
}

// The box ------------------------------------------------------------------------

function examples(app) {
  const { t } = app;
  return html`<dl class="log-examples">
    ${EXAMPLES.map(
      ([engine, line]) =>
        html`<div>
          <dt>${engine === null ? t("log.out_of_memory") : engineName(engine)}</dt>
          <dd><code>${line}</code></dd>
        </div>`,
    )}
  </dl>`;
}

function progress(app, actions) {
  const { t, log } = app;
  if (!busy(log)) return nothing;
  const text = log.state === "explaining" ? t("log.explaining", { count: integer(log.answer.asked) }) : t("log.reading");
  return html`<div class="log-progress">
    <progress aria-label=${text}></progress> <span>${text}</span>
    ${log.state === "explaining" ? html`<button type="button" class="link-button" @click=${actions.stopLog}>${t("log.stop")}</button>` : nothing}
  </div>`;
}

function failure(app, actions) {
  const { t, log } = app;
  if (log.state !== "failed" && log.error === null) return nothing;
  return html`<p class="message error">${summary(app)}</p>
    ${log.state === "failed" ? html`<p><button type="button" class="button" @click=${actions.retryLog}>${t("engine.retry")}</button></p>` : nothing}`;
}

function result(app, actions) {
  const { t, log } = app;
  const { answer } = log;
  if (answer === null) return nothing;
  if (!understood(answer)) {
    return html`<p class="log-summary">${t("log.not_understood")}</p>
      <p class="hint">${t("log.understood")}</p>
      ${examples(app)}`;
  }
  const agrees = answer.comparisons.length > 0 && answer.comparisons.every((found) => found.agrees);
  return html`<p class="log-summary ${agrees ? "good" : ""}">${summary(app)}</p>
    ${comparedModel(app, actions, answer)} ${chips(app, answer)} ${warnings(app, answer)}
    ${table(app, answer.comparisons)} ${missing(app, answer)} ${alsoRead(app, answer)} ${fillButton(app, actions, answer)}`;
}

function fillButton(app, actions, { form }) {
  const { t, log, gpu } = app;
  if (Object.keys(form).length === 0) return nothing;
  const kept = form.gpu || !gpu ? "" : t("log.gpu_kept", { gpu: gpu.name });
  return html`<p class="log-fill">
    <button type="button" class="button primary" id="log-fill" @click=${actions.fillFromLog}>${t("log.fill")}</button>
    <span class="hint">${log.filled ? t("log.filled") : `${t("log.fill_hint")} ${kept}`}</span>
  </p>`;
}

function source(app, actions) {
  const { t, log } = app;
  if (log.file !== null) {
    return html`<p class="log-file" id="log-file-name">
      <b>${log.file.name}</b> <span class="muted">${bytesText(log.file.size, app.view.unit)}</span>
    </p>`;
  }
  return html`<label for="log-text">${t("log.label")}</label>
    <textarea
      id="log-text"
      rows="7"
      spellcheck="false"
      autocomplete="off"
      autocapitalize="none"
      wrap="off"
      aria-describedby="log-hint"
      .value=${live(log.text)}
      @input=${(event) => actions.typeLog(event.target.value)}
      @paste=${(event) => actions.pasteLog(event.clipboardData.getData("text/plain")) && event.preventDefault()}
    ></textarea>`;
}

export function logBox(app, actions) {
  const { t, log } = app;
  const { over, leave, drop } = drops(actions, { mark: actions.dragOverLog, take: actions.readLog });
  const empty = log.file === null && log.text === "";
  return html`<section
    class="log ${log.dragging ? "dragged" : ""}"
    aria-labelledby="log-heading"
    @dragover=${over}
    @dragleave=${leave}
    @drop=${drop}
  >
    <details id="log-box" ?open=${log.open} @toggle=${(event) => actions.toggleLog(event.target.open)}>
      <summary>
        <h2 id="log-heading">${t("log.heading")}</h2>
        <span class="summary-note">${t("log.note")}</span>
      </summary>
      <div class="log-body" data-private>
        <div class="field">
          ${source(app, actions)}
          <span id="log-hint" class="hint">${t("log.hint")}</span>
          <div class="paste-actions">
            <label class="button file-button"
              >${t("log.choose_file")}<input
                id="log-file"
                type="file"
                class="visually-hidden"
                accept=".log,.txt,text/plain"
                @change=${(event) => {
                  actions.readLog(event.target.files[0]);
                  event.target.value = "";
                }}
            /></label>
            ${empty ? nothing : html`<button type="button" class="link-button" id="log-clear" @click=${actions.clearLog}>${t("log.clear")}</button>`}
          </div>
        </div>
        ${
          empty
            ? html`<details class="log-understood">
                <summary>${t("log.understood")}</summary>
                ${examples(app)}
              </details>`
            : nothing
        }
        ${progress(app, actions)} ${failure(app, actions)}
        <div id="log-result" class=${log.state === "reading" ? "old" : ""}>${result(app, actions)}</div>
      </div>
    </details>
  </section>`;
}
