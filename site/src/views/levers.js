/** What to change first: the levers in their order, what each gains here, and the button that pulls it. */

import { html, nothing } from "lit-html";
import { bytesText, exactInteger, integer } from "../format.js";
import { leverChart } from "../leverchart.js";
import { changeTexts, figureText, shortcutText, sources } from "../levertexts.js";
import { patchOf } from "../levers.js";
import { errorText } from "../messages.js";
import { figure, isOld, panel, panelError } from "./panel.js";
import { undo } from "./undo.js";
import { ENDLESS, ICONS } from "./verdict.js";

const ID = "levers";

/** What can be shown now: the last whole answer if it is of this model and GPU, else what has come so far. */
export function shownLevers(app) {
  const { found, partial } = app.panels[ID];
  const { asked } = app;
  const same = found && ["model", "model_text", "gpu"].every((field) => found.subject.scenario[field] === asked[field]);
  return same ? found : partial;
}

function chip(t, verdict) {
  return html`<span class="chip-verdict ${verdict}"
    ><svg class="verdict-icon" aria-hidden="true" width="24" height="24" viewBox="0 0 24 24">${ICONS[verdict]}</svg>
    ${t(`chip.${verdict}`)}</span
  >`;
}

const count = (t, value, endless) => (value >= endless ? t("inverse.endless") : integer(value));

/** What is there now and then, in the words of the answer. */
function gains(app, plan, row) {
  const {
    t,
    view: { unit },
  } = app;
  const entry = (name, before, after, endless) =>
    html`<div class=${after > before ? "more" : after < before ? "less" : "same"}>
      <dt>${t(`levers.${name}`)}</dt>
      <dd>
        ${after === before ? nothing : html`<span class="muted">${count(t, before, endless)} →</span>`}
        <b>${count(t, after, endless)}</b>
      </dd>
    </div>`;
  const saved = row.saved_bytes;
  return html`<dl class="gains">
    ${entry("requests", plan.max_requests, row.max_requests, ENDLESS.requests)}
    ${entry("context", plan.max_context, row.max_context, ENDLESS.context)}
    <div class=${saved > 0 ? "more" : saved < 0 ? "less" : "same"}>
      <dt>${t("levers.per_gpu")}</dt>
      <dd><b>${saved === 0 ? "±0" : `${saved > 0 ? "−" : "+"}${bytesText(Math.abs(saved), unit)}`}</b></dd>
    </div>
  </dl>`;
}

function risk(app, row) {
  const { t } = app;
  const links = sources(t, row.source);
  return html`<p class="lever-risk">
    ${t("levers.risk", { risk: t(`lever_risk.${row.risk}`) })}
    ${links.map(({ name, address }, index) => html`${index ? ", " : ""}<a href=${address} rel="noopener">${name}</a>`)}
  </p>`;
}

function leverRow(app, actions, { plan, row, number, old }) {
  const { t } = app;
  const name = t(`lever.${row.lever}`);
  const id = `lever-${row.lever}`;
  return html`<li class="lever">
    <span class="lever-number" aria-hidden="true">${integer(number)}</span>
    <div class="lever-what">
      <h3 id="${id}-name">${name}</h3>
      <p class="lever-change">${changeTexts(app, plan, row.change).join(" · ")}</p>
    </div>
    <div class="lever-pull">
      ${chip(t, row.verdict)}
      ${
        patchOf(row) === null
          ? nothing
          : html`<button
              type="button"
              class="button"
              id=${id}
              aria-label=${t("levers.apply_named", { lever: name })}
              ?disabled=${old}
              @click=${() => actions.pullLever(row)}
            >
              ${t("levers.apply")}
            </button>`
      }
    </div>
    ${gains(app, plan, row)}
    ${patchOf(row) === null ? html`<p class="lever-risk">${t("levers.no_field")}</p>` : nothing} ${risk(app, row)}
  </li>`;
}

function lead(t, plan, levers) {
  if (levers.length === 0) return t(plan.verdict === "does_not_fit" ? "levers.none_fits" : "levers.none");
  if (plan.verdict !== "does_not_fit") return t("levers.lead");
  const fitting = levers.filter(({ verdict }) => verdict !== "does_not_fit").length;
  if (fitting === 0) return t("levers.lead_none");
  return t.count("levers.lead_some", fitting, { fitting: integer(fitting), count: integer(levers.length) });
}

function dropped(app, rows) {
  const {
    t,
    view: { unit },
  } = app;
  if (rows.length === 0) return nothing;
  return html`<details class="dropped">
    <summary>${t.count("levers.dropped", rows.length, { count: integer(rows.length) })}</summary>
    <dl>
      ${rows.map((row) => {
        const figures = figureText(t, row, unit);
        return html`<div>
          <dt>${t(`lever.${row.lever}`)}</dt>
          <dd>
            ${row.error ? errorText(t, row.error, unit) : t(`lever_reason.${row.reason}`)}
            ${figures ? html`<span class="muted">${figures}</span>` : nothing}
          </dd>
        </div>`;
      })}
    </dl>
  </details>`;
}

function shortcuts(app, found) {
  const {
    t,
    view: { unit },
  } = app;
  if (found.length === 0) return nothing;
  return html`<div class="shortcuts">
    <h3>${t("levers.shortcuts")}</h3>
    <ul>
      ${found.map((shortcut) => html`<li>“${t(`shortcut.${shortcut.shortcut}`)}” ${shortcutText(t, shortcut, unit)}</li>`)}
    </ul>
  </div>`;
}

/** What one GPU holds: what does not depend on the cache, the cache that has room, and the rest of it. */
function parts(row) {
  const { weight_bytes: weights, reserve_bytes: reserve, used_bytes: used, pool_bytes: pool } = row;
  const found = [
    ["fixed", weights + reserve],
    ["used", Math.min(used, pool)],
    ["over", Math.max(used - pool, 0)],
  ];
  return found.filter(([, bytes]) => bytes > 0);
}

const now = ({ verdict, max_requests, max_context, rank }) => ({ lever: null, verdict, max_requests, max_context, saved_bytes: 0, ...rank });

function chart(app, plan, levers) {
  const {
    t,
    view: { unit },
  } = app;
  const rows = [now(plan), ...levers];
  const name = ({ lever }) => (lever === null ? t("levers.now") : t(`lever.${lever}`));
  const { rank } = plan;
  const fixed = rank.weight_bytes + rank.reserve_bytes;
  const limit = rank.pool_bytes > 0 ? fixed + rank.pool_bytes : rank.usable_bytes;
  const bytes = (column) => ({
    name: column,
    label: t(`levers.column_${column}`),
    text: (row) => bytesText(row[column], unit),
    value: (row) => row[column],
  });
  const plain = (column, text = (row) => exactInteger(row[column])) => ({
    name: column,
    label: t(`levers.column_${column}`),
    text,
    value: (row) => row[column],
  });
  const best = levers.reduce((most, row) => (row.max_requests > most.max_requests ? row : most));
  return figure(app, {
    id: ID,
    finding:
      best.max_requests < ENDLESS.requests
        ? t("levers.finding", { lever: name(best), requests: integer(best.max_requests) })
        : t("levers.finding_endless"),
    drawnFrom: [levers, plan],
    draw: (labelledBy) =>
      leverChart({
        rows: rows.map((row, index) => ({
          name: index === 0 ? name(row) : `${integer(index)}  ${name(row)}`,
          note: row.max_requests < ENDLESS.requests ? t.count("levers.note", row.max_requests, { count: integer(row.max_requests) }) : "",
          parts: parts(row),
        })),
        limit,
        limitLabel: t("gpubar.limit", { limit: bytesText(limit, unit) }),
        width: app.chartWidth,
        unit,
        labelledBy,
      }),
    key: html`<ul class="panel-key">
      ${["fixed", "used", "over"]
        .filter((part) => part !== "over" || rows.some((row) => row.used_bytes > row.pool_bytes))
        .map(
          (part) =>
            html`<li>
              <svg class="swatch" aria-hidden="true" width="14" height="14"><rect class="key-part ${part}" width="14" height="14"></rect></svg>
              ${t(`levers.part_${part}`)}
            </li>`,
        )}
    </ul>`,
    columns: [
      { name: "lever", label: t("levers.column_lever"), text: name, value: ({ lever }) => lever ?? "now" },
      {
        name: "change",
        label: t("levers.column_change"),
        text: ({ change }) => (change ? changeTexts(app, plan, change).join(" · ") : ""),
        value: ({ change }) => (change ? JSON.stringify(change) : ""),
      },
      plain("verdict", ({ verdict }) => t(`chip.${verdict}`)),
      plain("max_requests"),
      plain("max_context"),
      bytes("saved_bytes"),
      bytes("weight_bytes"),
      bytes("reserve_bytes"),
      bytes("used_bytes"),
      bytes("pool_bytes"),
    ],
    rows,
  });
}

/** The levers, or why there are none to show. */
function content(app, actions) {
  const { t, plan: current } = app;
  const state = app.panels[ID];
  const now = shownLevers(app);
  if (current?.error) return html`<p class="muted">${t("levers.no_plan")}</p>`;
  if (now === null || current === null)
    return html`${panelError(app, actions, ID)}
      <p class="muted levers-room">${state.error === null ? t("levers.waiting") : ""}</p>`;
  const whole = now === state.found;
  const old = whole && isOld(app, ID);
  const { answer } = now;
  const plan = answer.plan ?? app.data.default_answer.plan;
  return html`${panelError(app, actions, ID)}
    <div class="levers ${old ? "old" : ""}" aria-busy=${String(!whole || old)}>
      <p class="levers-lead">
        ${whole ? lead(t, plan, answer.levers) : t("levers.waiting")}
        ${old ? html`<span class="levers-old">${t("levers.old")}</span>` : nothing}
      </p>
      <ol class="lever-list">
        ${answer.levers.map((row, index) => leverRow(app, actions, { plan, row, number: index + 1, old }))}
      </ol>
      ${
        whole
          ? html`${answer.levers.length > 0 ? chart(app, plan, answer.levers) : nothing} ${dropped(app, answer.dropped)}
            ${shortcuts(app, answer.shortcuts)}`
          : nothing
      }
    </div>`;
}

export function levers(app, actions) {
  const { t, plan, asked } = app;
  if (!asked.gpu) return nothing;
  const kind = plan === null || plan.error ? "open" : plan.verdict;
  return panel(app, actions, { id: ID, heading: t(`levers.heading_${kind}`), body: () => html`${undo(app, actions, ID)}${content(app, actions)}` });
}
