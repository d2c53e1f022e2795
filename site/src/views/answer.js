/** The answer: one sentence, three numbers, the bar, and what plain attention would take. */

import { html, nothing } from "lit-html";
import { bytesText, exactInteger, integer, percent, scaleBytes, shortTokens } from "../format.js";
import { answeredName, engineName, formatName } from "../messages.js";
import { bar } from "./bar.js";
import { emptyGpuBar, gpuBar } from "./gpubar.js";
import { notices } from "./notices.js";
import { toFit } from "./tofit.js";
import { account, confidence, engineLines, inverse, setup, verdict } from "./verdict.js";

const strong = (content) => html`<strong>${content}</strong>`;

function sentenceParams(app, mark) {
  const {
    t,
    view: { unit },
    answer: { estimate },
  } = app;
  return {
    model: mark(answeredName(app)),
    total: mark(bytesText(estimate.total_bytes, unit)),
    sequences: t.count("count.sequences", estimate.sequences, { count: integer(estimate.sequences) }),
    tokens: t.count("count.tokens", estimate.tokens, { count: integer(estimate.tokens) }),
    format: formatName(t, estimate.formats?.kv ?? "auto"),
  };
}

const sentenceKey = (estimate) => (estimate.sequences === 1 ? "answer.sentence.one" : "answer.sentence.other");

/** The sentence as plain text, for the status region, the title of a frame and copies. */
export function sentenceText(app) {
  const text = app.t(
    sentenceKey(app.answer.estimate),
    sentenceParams(app, (plain) => plain),
  );
  const { allocated } = app.answer.estimate;
  if (!allocated || app.asked.gpu) return text;
  return `${text} ${app.t("answer.sentence.allocated", {
    engine: engineName(allocated.engine),
    bytes: bytesText(allocated.bytes_per_rank, app.view.unit),
  })}`;
}

function number(app, { kind, label, bytes, note }) {
  const scaled = scaleBytes(bytes, app.view.unit);
  return html`<div class="number ${kind}">
    <dt>${label}${note ? html` <span class="number-note">${note}</span>` : nothing}</dt>
    <dd>
      <span class="value">${scaled.number}</span> <span class="unit">${scaled.unit}</span>
      <span class="exact">${app.t("answer.exact", { bytes: exactInteger(bytes) })}</span>
    </dd>
  </div>`;
}

/** What of the total one GPU holds, once there is a plan. */
function perGpu(app) {
  const { t, plan, asked, view } = app;
  if (!asked.gpu || plan === null || plan.error) return "";
  return t("answer.per_gpu", { bytes: bytesText(plan.allocated.bytes_per_rank, view.unit) });
}

function numbers(app) {
  const {
    t,
    answer: { estimate },
  } = app;
  return html`<dl class="numbers">
    ${number(app, { kind: "total", label: t("answer.total"), bytes: estimate.total_bytes, note: perGpu(app) })}
    ${number(app, { kind: "sequence", label: t("answer.per_sequence"), bytes: estimate.bytes_per_sequence })}
    ${number(app, { kind: "token", label: t("answer.per_token"), bytes: estimate.marginal_bytes_per_token })}
  </dl>`;
}

/** "1/8" where it is one, else a percentage. */
export function fraction(part, whole) {
  const times = whole / part;
  const near = Math.round(times);
  return near >= 2 && Math.abs(times - near) / near < 0.001 ? `1/${integer(near)}` : percent(part / whole);
}

/**
 * What plain multi-head attention would take. Said only where the two figures are about the same
 * layers: while a window is still filling, the growth is that of windowed layers too.
 */
function comparison(app) {
  const {
    t,
    view: { unit },
    answer: { estimate },
  } = app;
  const full = estimate.mha_equivalent_bytes_per_token;
  const own = estimate.marginal_bytes_per_token;
  if (!full || own >= full || own === 0 || windowFilling(estimate)) return nothing;
  const share = (100 * own) / full;
  return html`<p class="comparison">
    <svg class="ratio" aria-hidden="true" width="96" height="10">
      <rect class="track" width="100%" height="100%"></rect>
      <rect class="segment kv" width=${`${share.toFixed(2)}%`} height="100%"></rect>
    </svg>
    <span
      >${t.parts("answer.comparison", {
        kind: app.show?.facts?.num_kv_heads === 1 ? "MQA" : "GQA",
        fraction: strong(fraction(own, full)),
        own: bytesText(own, unit),
        full: bytesText(full, unit),
      })}</span
    >
  </p>`;
}

const windowFilling = (estimate) =>
  (estimate.formula ?? []).some(({ values }) => (values.window ?? values.chunk ?? 0) >= estimate.tokens);

/** A line that never moves the page: why the numbers are not (yet) those of the inputs. */
function stateLine(app) {
  const { t } = app;
  let text = "";
  if (app.answer.stale) text = t("answer.last_valid");
  else if (app.pending && app.behind && app.engine.state !== "ready" && app.engine.slow) text = t("engine.starting");
  return html`<p class="state-line">${text}</p>`;
}

function unitSwitch(app, actions) {
  const {
    t,
    view: { unit },
  } = app;
  const choice = (value, label, title) =>
    html`<button
      type="button"
      class="segment-button"
      aria-pressed=${String(unit === value)}
      title=${title}
      @click=${() => actions.setView({ unit: value })}
    >
      ${label}
    </button>`;
  return html`<div class="segmented" role="group" aria-label=${t("unit.label")}>
    ${choice("gib", "GiB", t("unit.gib"))}${choice("gb", "GB", t("unit.gb"))}
  </div>`;
}

/** The scenario in one line, where the inputs themselves are not shown. */
export function summaryLine(app) {
  const {
    t,
    answer: { estimate },
  } = app;
  const pieces = [
    answeredName(app),
    `${formatName(t, estimate.formats?.kv ?? "auto")} KV`,
    `${shortTokens(estimate.tokens)} × ${integer(estimate.sequences)}`,
  ];
  if (app.asked.gpu) pieces.push(setup(app));
  else if (estimate.allocated) pieces.push(engineName(estimate.allocated.engine));
  return pieces.join(" · ");
}

/** The bar of one GPU where there is one; else the bar of the cache alone. */
export function answerBar(app) {
  if (!app.asked.gpu) return bar(app);
  if (app.plan === null) return emptyGpuBar();
  return app.plan.error ? nothing : gpuBar(app);
}

export function answer(app, actions, { embedded = false, quiet = false } = {}) {
  const {
    t,
    answer: { estimate },
  } = app;
  const stale = app.answer.stale || (app.pending && app.behind && app.slowAnswer);
  return html`<section class="answer ${stale ? "stale" : ""}" aria-labelledby=${quiet ? nothing : "answer-heading"}>
    ${quiet ? nothing : html`<h2 id="answer-heading" class="visually-hidden">${t("answer.heading")}</h2>`}
    ${verdict(app, actions, { fixed: embedded })} ${embedded ? nothing : toFit(app, actions)}
    <div class="answer-head">
      <p class="sentence">${t.parts(sentenceKey(estimate), sentenceParams(app, strong))}</p>
      ${embedded ? nothing : unitSwitch(app, actions)}
    </div>
    ${numbers(app)} ${answerBar(app)} ${inverse(app, actions, { fixed: embedded })}
    ${embedded || !app.asked.gpu ? nothing : html`${engineLines(app, actions)} ${account(app)} ${confidence(app)}`}
    ${embedded && app.asked.gpu ? nothing : comparison(app)} ${quiet ? nothing : stateLine(app)}
    ${notices(app, actions, { all: embedded })}
  </section>`;
}
