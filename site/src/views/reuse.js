/** How much of the prompts a cache of prefixes finds: in the pool of the plan, in any other, and without limit. */

import { html, nothing } from "lit-html";
import { bytesText, duration, integer, percent, quantity } from "../format.js";
import { warningText } from "../messages.js";
import { POLICIES, ROUTINGS } from "../reuse.js";
import { fact, isOld, panel, panelError } from "./panel.js";
import { choiceInput, fileInput, isAtField, progressLine, textInput } from "./panelfields.js";
import { finding, hitCurve, shareText } from "./reusecurve.js";

const ID = "reuse";
const ACCEPT = ".jsonl,.json,.ndjson,.gz,application/gzip";
/** What stands behind "Cache and replicas". */
const SETTINGS = ["policy", "retention", "replicas", "routing", "block_tokens", "tokens_per_second", "warmup", "budgets_gib"];

// What is asked ------------------------------------------------------------

/** Presets by what they resemble; the first holds while none is chosen. */
function presets(app, actions) {
  const { t, data, given } = app;
  const chosen = given[ID].preset ?? null;
  const isDefault = (id) => id === data.presets[0].id && id !== chosen;
  const choices = data.presets.map(({ id }) => ({ value: isDefault(id) ? null : id, label: t(`reuse.preset.${id}`) }));
  const preset = data.presets.find(({ id }) => id === (chosen ?? data.presets[0].id));
  return html`<div class="reuse-preset">
    ${choiceInput(app, actions, { id: ID, name: "preset", choices })}
    ${
      preset
        ? html`<p class="hint">
            ${t(preset.warmup > 0 ? "reuse.resembles_warm" : "reuse.resembles", {
              name: preset.resembles,
              tokens: integer(preset.prompt_mean),
              share: percent(preset.reuse),
              warmup: shareText(preset.warmup),
            })}
            ${t("reuse.source", { source: preset.source })}
          </p>`
        : nothing
    }
  </div>`;
}

function settings(app, actions, answer) {
  const { t, given, panels } = app;
  const values = given[ID];
  const { error } = panels[ID];
  const open = SETTINGS.some((name) => name in values) || (isAtField(app, ID) && SETTINGS.includes(error.params.argument));
  const choice = (name, known, usual) =>
    choiceInput(app, actions, {
      id: ID,
      name,
      choices: known.map((value) => ({
        value: value === usual && value !== values[name] ? null : value,
        label: t(`reuse.${name}_${value}`),
      })),
    });
  const text = (name, placeholder) => textInput(app, actions, { id: ID, name, placeholder });
  const known = (name) => (answer === null ? undefined : integer(answer[name]));
  return html`<details class="panel-data" id="reuse-settings" ?open=${open}>
    <summary>${t("reuse.settings")}</summary>
    <div class="panel-inputs">
      ${choice("policy", POLICIES, "lru")} ${values.policy === "priority" ? text("retention") : nothing}
      ${text("replicas", known("replicas"))} ${choice("routing", ROUTINGS, "random")}
      ${text("block_tokens", known("block_tokens"))} ${text("tokens_per_second")} ${text("warmup", "0")} ${text("budgets_gib")}
    </div>
  </details>`;
}

function inputs(app, actions, answer) {
  const file = app.panelFiles[ID] ?? null;
  return html`${file === null ? presets(app, actions) : nothing} ${fileInput(app, actions, { id: ID, accept: ACCEPT })}
    ${file === null ? nothing : html`<div class="panel-inputs">${textInput(app, actions, { id: ID, name: "trace_block_tokens" })}</div>`}
    ${settings(app, actions, answer)}`;
}

// What is found ------------------------------------------------------------

const traceName = ({ t }, { name }) => (t.has(`reuse.preset.${name}`) ? t(`reuse.preset.${name}`) : name);

/** Whether this is all of it: an estimate says so before anything else. */
function standing(app, answer, old) {
  const { t } = app;
  const { error, stopped } = app.panels[ID];
  const lines = [];
  if (old) lines.push(t(error !== null || stopped ? "reuse.earlier" : "levers.old"));
  if (!answer.exact) lines.push(t("reuse.estimate", { share: shareText(answer.read) }));
  return lines.map((line) => html`<p class="reuse-standing">${line}</p>`);
}

function facts(app, answer) {
  const {
    t,
    view: { unit },
  } = app;
  const { pool, ceiling, knee, running, policy } = answer;
  const size = (bytes) => bytesText(bytes, unit);
  const blocks = ({ evicted_blocks: count }) => (count === null ? nothing : t.count("reuse.blocks", count, { count: integer(count) }));
  const own =
    pool === null
      ? nothing
      : html`${fact(t("reuse.in_pool"), percent(pool.hit_rate), t("reuse.of_prompts"))}
          ${policy === "lru" ? nothing : fact(t("reuse.lru_in_pool"), percent(pool.lru_hit_rate))}
          ${fact(t("reuse.saved"), integer(pool.saved_tokens), t("reuse.of_tokens", { tokens: integer(answer.prompt_tokens) }))}
          ${fact(t("reuse.evicted"), size(pool.evicted_bytes), blocks(pool))}`;
  const requests = t.count("reuse.requests", running.requests, { count: quantity(running.requests) });
  return html`<dl class="panel-facts ${answer.exact ? "" : "estimated"}">
    ${own} ${fact(t("reuse.ceiling"), percent(ceiling.hit_rate), t("reuse.from", { size: size(ceiling.budget_bytes) }))}
    ${knee.map((point) => fact(t("reuse.knee", { share: shareText(point.share) }), size(point.budget_bytes), t("reuse.finds", { rate: percent(point.hit_rate) })))}
    ${fact(t("reuse.running"), size(running.bytes), requests)}
    ${pool === null ? nothing : fact(t("reuse.left"), size(pool.cache_bytes), t("reuse.of_pool", { pool: size(pool.budget_bytes) }))}
    ${fact(t("reuse.block", { tokens: integer(answer.block_tokens) }), size(answer.block_bytes))}
    ${answer.request_bytes > 0 ? fact(t("reuse.tail"), size(answer.request_bytes)) : nothing}
  </dl>`;
}

function table({ label, heads, rows }) {
  return html`<div class="scroll panel-table" role="region" tabindex="0" aria-label=${label}>
    <table>
      <caption>${label}</caption>
      <thead>
        <tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr>
      </thead>
      <tbody>
        ${rows.map(
          ({ own = false, cells: [first, ...others] }) =>
            html`<tr class=${own ? "own" : ""}>
              <th scope="row">${first}</th>
              ${others.map((cell) => html`<td>${cell}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** The pools somebody asked for beside their own. */
function budgets(app, answer) {
  const {
    t,
    view: { unit },
  } = app;
  if (answer.budgets.length === 0) return nothing;
  const size = (bytes) => bytesText(bytes, unit);
  return table({
    label: t("reuse.budgets"),
    heads: ["budget_bytes", "cache_bytes", "hit_rate", "saved_tokens", "evicted_bytes"].map((name) => t(`reuse.column_${name}`)),
    rows: answer.budgets.map((row) => ({
      cells: [size(row.budget_bytes), size(row.cache_bytes), percent(row.hit_rate), integer(row.saved_tokens), size(row.evicted_bytes)],
    })),
  });
}

/** The same traffic on fewer replicas, and dealt out the other way. */
function spread(app, answer) {
  const { t } = app;
  if (answer.spread.length < 2) return nothing;
  const own = answer.spread[0].pool === null ? [] : [t("reuse.in_pool")];
  return table({
    label: t("reuse.spread"),
    heads: [t("reuse.field_replicas"), t("reuse.field_routing"), ...own, t("reuse.ceiling")],
    rows: answer.spread.map(({ replicas, routing, pool, ceiling }) => ({
      own: replicas === answer.replicas && routing === answer.routing,
      cells: [
        integer(replicas),
        replicas === 1 ? t("reuse.alone") : t(`reuse.routing_${routing}`),
        ...(pool === null ? [] : [percent(pool.hit_rate)]),
        percent(ceiling),
      ],
    })),
  });
}

function statistics(app, { trace }) {
  const { t } = app;
  const lengths = ({ mean, p50, p95, p99 }) =>
    t("reuse.lengths", { mean: integer(mean), p50: integer(p50), p95: integer(p95), p99: integer(p99) });
  return html`<details class="panel-data" id="reuse-trace">
    <summary>${t("reuse.trace", { name: traceName(app, trace) })}</summary>
    <dl class="panel-facts">
      ${fact(t("reuse.trace_requests"), integer(trace.requests), trace.seconds === null ? nothing : t("reuse.in_time", { time: duration(trace.seconds) }))}
      ${fact(t("reuse.trace_prompt"), t("reuse.tokens", { count: integer(trace.prompt.mean) }), lengths(trace.prompt))}
      ${trace.output.p99 === 0 ? nothing : fact(t("reuse.trace_output"), t("reuse.tokens", { count: integer(trace.output.mean) }), lengths(trace.output))}
      ${fact(t("reuse.trace_blocks"), integer(trace.blocks), t("reuse.different", { count: integer(trace.unique_blocks) }))}
      ${fact(t("reuse.trace_block_tokens"), t("reuse.tokens", { count: integer(trace.block_tokens) }))}
    </dl>
  </details>`;
}

/** What there is to show: of the present question as far as it has come, else of the one before. */
function shown(app) {
  const { partial, found } = app.panels[ID];
  if (partial?.answer) return { answer: partial.answer, old: false };
  return found === null ? null : { answer: found.answer, old: isOld(app, ID) };
}

function results(app, { answer, old }) {
  const {
    t,
    view: { unit },
  } = app;
  const { running, error, stopped } = app.panels[ID];
  const busy = running || (old && error === null && !stopped);
  return html`<div class="panel-answer ${old ? "old" : ""}" id="reuse-answer" aria-busy=${String(busy)}>
    ${standing(app, answer, old)}
    ${answer.warnings.map((warning) => html`<p class="message warning">${warningText(t, warning, unit)}</p>`)}
    ${hitCurve(app, answer)} ${facts(app, answer)} ${budgets(app, answer)} ${spread(app, answer)} ${statistics(app, answer)}
    <p class="visually-hidden" role="status">${old || running || !answer.exact ? nothing : finding(app, answer)}</p>
  </div>`;
}

function content(app, actions) {
  const { t, plan } = app;
  if (plan?.error) return html`<p class="muted">${t("reuse.no_plan")}</p>`;
  const there = shown(app);
  const { error, stopped } = app.panels[ID];
  const waiting = there === null && error === null && !stopped;
  return html`<p>${t("reuse.lead")}</p>
    ${inputs(app, actions, there?.answer ?? null)} ${panelError(app, actions, ID)}
    ${progressLine(app, actions, ID)}
    ${waiting ? html`<p class="muted panel-room">${t("reuse.waiting")}</p>` : nothing}
    ${there === null ? nothing : results(app, there)}`;
}

export const reuse = (app, actions) =>
  panel(app, actions, { id: ID, heading: app.t("reuse.heading"), body: () => content(app, actions) });
