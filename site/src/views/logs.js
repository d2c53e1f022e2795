/** What an engine printed beside what kvcore says, and why they differ. */

import { html, nothing } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { bytesText, integer } from "../format.js";
import { engineName, errorText, formatName, warningText } from "../messages.js";

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
/** Characters of a line shown before its number. */
const BEFORE = 24;
const MAX_ALSO = 24;
/** Settings that stand elsewhere, or say nothing of the cache. */
const NOT_CHIPS = new Set(["model", "wording", "backend", "out_of_memory"]);
const COUNTS = new Set(["tokens", "blocks", "slots"]);

const busy = ({ state }) => state === "reading" || state === "explaining";

// Numbers ------------------------------------------------------------------------

const formats = new Map();

/** With as many digits after the point as the engine prints. */
function digits(value, decimals) {
  if (!formats.has(decimals)) {
    const fixed = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
    formats.set(decimals, new Intl.NumberFormat("en-US", fixed));
  }
  return formats.get(decimals).format(value);
}

/** A number with its unit in words where it is a count. */
function withUnit(t, value, unit, decimals) {
  const text = digits(value, decimals);
  if (unit === "x") return `${text}×`;
  if (unit === "%") return `${text}%`;
  return `${text} ${COUNTS.has(unit) ? t(`log.unit_${unit}`) : unit}`;
}

const theirs = (t, { theirs: value, unit, printed_unit: printed, decimals }) =>
  withUnit(t, value, printed ?? unit, decimals);
const ours = (t, { ours: value, unit, decimals }) => withUnit(t, value, unit, decimals);
const quantityName = (t, quantity) => t(`quantity.${quantity}`);
const isExact = (found) => digits(found.ours, found.decimals) === digits(found.theirs, found.decimals);

const lineName = (t, line) =>
  line > 0 ? t("log.line", { line: integer(line) }) : t("log.line_from_end", { line: integer(-line) });

function difference(t, found) {
  if (found.ours === null) return "–";
  const value = found.ours - found.theirs;
  const sign = value < 0 ? "−" : "+";
  const share = found.difference === null ? "" : ` (${sign}${digits(Math.abs(100 * found.difference), 2)}%)`;
  return `${sign}${withUnit(t, Math.abs(value), found.unit, found.decimals)}${share}`;
}

// Causes -------------------------------------------------------------------------

/** A cause's values as a reader wants them. */
function causeText(app, { code, params }) {
  const { t } = app;
  const shown = {};
  for (const [name, value] of Object.entries(params)) {
    if (typeof value === "boolean") shown[name] = t(value ? "log.on" : "log.off");
    else if (name === "percent") shown[name] = String(Math.abs(value));
    else if (name === "format") shown[name] = formatName(t, value);
    else if (name === "gpu") shown[name] = app.gpus.find(value)?.name ?? value;
    else if (typeof value === "number" && Number.isInteger(value)) shown[name] = integer(value);
    else shown[name] = String(value);
  }
  return t(`cause.${code}`, shown);
}

/** What has to hold at once to give the printed number. */
const together = (app, cause) => [cause, ...cause.and].map((each) => causeText(app, each));

const isOpen = (cause) => cause === undefined || ["unexplained", "not_computed"].includes(cause.code);

function causes(app, found) {
  const { t, log, view } = app;
  if (found.causes.length === 0) return html`<span class="muted">${t(busy(log) ? "log.looking" : "log.not_looked")}</span>`;
  const [first, ...others] = found.causes;
  const parts = (cause) =>
    together(app, cause).map(
      (text, index) => html`${index ? html` <b class="log-and">${t("log.and")}</b> ` : nothing}<span>${text}.</span>`,
    );
  return html`<span class="log-cause">${parts(first)}</span>
    ${found.error ? html`<span class="muted">${errorText(t, found.error, view.unit)}</span>` : nothing}
    ${
      others.length === 0
        ? nothing
        : html`<details class="log-others">
            <summary>${t.count("log.others", others.length, { count: others.length })}</summary>
            <ol start="2">
              ${others.map((cause) => html`<li>${parts(cause)}</li>`)}
            </ol>
          </details>`
    }`;
}

/** The part of a line that has the number, without the marks of time and place before it. */
function excerptOf({ text, theirs: value, decimals }) {
  const printed = [digits(value, decimals), value.toFixed(decimals)].map((form) => text.indexOf(form));
  const at = Math.max(...printed);
  if (at <= BEFORE) return text;
  const start = text.indexOf(" ", at - BEFORE);
  return `… ${text.slice(start >= 0 && start < at ? start + 1 : at)}`;
}

// The table ----------------------------------------------------------------------

function row(app, found, previous) {
  const { t } = app;
  const excerpt =
    previous?.line === found.line ? nothing : html` <code class="log-excerpt">${excerptOf(found)}</code>`;
  const meant = found.printed_unit ? html` <span class="muted">${t("log.meant", { unit: found.unit })}</span>` : nothing;
  return html`<tr role="row" class=${found.agrees ? "agrees" : "differs"}>
    <th role="rowheader" scope="row">${quantityName(t, found.quantity)}</th>
    <td role="cell" class="log-number" data-label=${t("log.theirs")}><span>${theirs(t, found)}${meant}</span></td>
    <td role="cell" class="log-number" data-label=${t("log.ours")}><span>${found.ours === null ? "–" : ours(t, found)}</span></td>
    <td role="cell" class="log-number" data-label=${t("log.difference")}>
      <span>${found.agrees && isExact(found) ? t("log.none") : difference(t, found)}</span>
    </td>
    <td role="cell" class="log-where"><span class="log-line">${lineName(t, found.line)}</span>${excerpt}</td>
    <td role="cell" class="log-why" data-label=${found.agrees || isOpen(found.causes[0]) ? nothing : t("log.cause")}>
      <div>${found.agrees ? agreement(t, found) : causes(app, found)}</div>
    </td>
  </tr>`;
}

function agreement(t, found) {
  const how = !isExact(found) ? "log.within" : found.unit === "B" ? "log.to_the_byte" : "log.exact";
  return html`<span class="log-agrees"
    ><svg class="tick" aria-hidden="true" width="14" height="14" viewBox="0 0 14 14">
      <path d="M2 7.5 5.5 11 12 3.5" fill="none" stroke="currentColor" stroke-width="2"></path></svg
    >${t(how)}</span
  >`;
}

function table(app, comparisons) {
  const { t } = app;
  if (comparisons.length === 0) return nothing;
  const column = (key, hidden) =>
    html`<th role="columnheader" scope="col"><span class=${hidden ? "visually-hidden" : nothing}>${t(key)}</span></th>`;
  return html`<table role="table" class="log-table" aria-label=${t("log.table")}>
    <thead role="rowgroup">
      <tr role="row">
        ${["log.number", "log.theirs", "log.ours", "log.difference"].map((key) => column(key, false))}
        ${["log.where", "log.cause"].map((key) => column(key, true))}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${comparisons.map((found, index) => row(app, found, comparisons[index - 1]))}
    </tbody>
  </table>`;
}

/** Numbers that were read and that kvcore has none beside. */
function alsoRead(app, { numbers, comparisons }) {
  const { t } = app;
  const compared = new Set(comparisons.map(({ quantity, line }) => `${quantity} ${line}`));
  const others = numbers.filter(({ quantity, line }) => !compared.has(`${quantity} ${line}`)).slice(0, MAX_ALSO);
  if (others.length === 0) return nothing;
  return html`<div class="log-also">
    <h3>${t(comparisons.length > 0 ? "log.also" : "log.numbers")}</h3>
    <ul>
      ${others.map(
        ({ quantity, value, unit, printed_unit: printed, decimals, line }) =>
          html`<li>
            ${quantityName(t, quantity)} <b>${withUnit(t, value, printed ?? unit, decimals)}</b>
            <span class="log-line">${lineName(t, line)}</span>
          </li>`,
      )}
    </ul>
  </div>`;
}

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

/** A file dropped on the box is a log, whatever it is called. */
function drops(actions) {
  const carriesFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  return {
    over(event) {
      if (!carriesFile(event)) return;
      event.preventDefault();
      event.stopPropagation();
      actions.setDragging(false);
      actions.dragOverLog(true);
    },
    leave(event) {
      if (!event.currentTarget.contains(event.relatedTarget)) actions.dragOverLog(false);
    },
    drop(event) {
      if (!carriesFile(event)) return;
      event.preventDefault();
      event.stopPropagation();
      actions.dragOverLog(false);
      actions.readLog(event.dataTransfer.files[0]);
    },
  };
}

export function logBox(app, actions) {
  const { t, log } = app;
  const { over, leave, drop } = drops(actions);
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
