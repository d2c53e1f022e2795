/** How fast decoding can be at most, what it costs at least, and why long contexts are slow. */

import { html, nothing } from "lit-html";
import { powers } from "../charts.js";
import { bytesText, dollars, duration, exactInteger, integer, quantity, shortTokens } from "../format.js";
import { lineChart } from "../linechart.js";
import { warningText } from "../messages.js";
import { fact, figure, isOld, panel, panelError } from "./panel.js";
import { textInput } from "./panelfields.js";

const ID = "speed";

function facts(app, found) {
  const {
    t,
    view: { unit },
  } = app;
  const { step, tokens_per_second: rates, prefill, crossover_requests: crossover } = found;
  const rate = (value) => (value === null ? t("speed.unknown") : t("speed.rate", { rate: quantity(value) }));
  const time = (value) => (value === null ? t("speed.unknown") : duration(value));
  return html`<dl class="panel-facts">
    ${fact(t("speed.per_request"), rate(rates.request))}
    ${fact(t("speed.in_all"), rate(rates.total))}
    ${fact(t("speed.step"), time(step.seconds), step.bound === null ? nothing : t(`speed.bound_${step.bound}`))}
    ${fact(t("speed.first_token"), time(prefill.seconds), t("speed.of_prompt", { tokens: integer(prefill.tokens) }))}
    ${fact(t("speed.reads_weights"), bytesText(step.weight_bytes, unit))}
    ${fact(t("speed.reads_cache"), bytesText(step.cache_bytes, unit))}
    ${crossover === null ? nothing : fact(t("speed.crossover"), t.count("speed.crossover_value", crossover, { count: integer(crossover) }))}
  </dl>`;
}

/** The arithmetic of a step with the live numbers. */
function arithmetic(app, found) {
  const { t } = app;
  const { step, bandwidth_bytes_per_second: bandwidth, flops_per_second: peak, experts } = found;
  if (step.seconds === null) return nothing;
  const lines = [
    step.bandwidth_seconds === null
      ? null
      : t("speed.formula_read", {
          weights: exactInteger(step.weight_bytes),
          cache: exactInteger(step.cache_bytes),
          bandwidth: exactInteger(bandwidth),
          time: duration(step.bandwidth_seconds),
        }),
    step.compute_seconds === null
      ? null
      : t("speed.formula_compute", {
          flops: exactInteger(step.flops),
          peak: exactInteger(peak),
          time: duration(step.compute_seconds),
        }),
    experts === null
      ? null
      : t("speed.formula_experts", {
          expression: experts.expression,
          values: Object.entries(experts.values)
            .map(([name, value]) => `${name} = ${quantity(value)}`)
            .join(", "),
          share: quantity(100 * experts.share),
        }),
  ];
  return html`<details class="panel-data">
    <summary>${t("speed.formula")}</summary>
    ${lines.filter((line) => line !== null).map((line) => html`<p class="panel-formula">${line}</p>`)}
  </details>`;
}

/** What a cache is for, in a line. */
function withoutCache(app, { without_cache: without }) {
  const { t } = app;
  if (without.times_slower === null) return nothing;
  return html`<p>${t("speed.without_cache", { time: duration(without.seconds), times: integer(Math.round(without.times_slower)) })}</p>`;
}

function chart(app, found) {
  const {
    t,
    view: { unit },
  } = app;
  const points = found.curve.filter(({ request }) => request !== null);
  if (points.length < 2) return nothing;
  const rows = points.map((point) => ({ ...point, x: point.context, y: point.request }));
  const [first, last] = [rows[0], rows.at(-1)];
  const present = rows.find(({ context }) => context === found.context);
  const rate = (value) => t("speed.rate", { rate: quantity(value) });
  return figure(app, {
    id: ID,
    finding: t("speed.finding", {
      from: quantity(first.y),
      to: quantity(last.y),
      first: shortTokens(first.x),
      last: shortTokens(last.x),
      requests: t.count("levers.note", found.concurrency, { count: integer(found.concurrency) }),
    }),
    drawnFrom: [found],
    draw: (labelledBy) =>
      lineChart({
        rows,
        x: {
          type: "log",
          base: 2,
          domain: [first.x, last.x],
          ticks: powers(2, first.x, last.x, app.chartWidth < 520 ? 5 : 11),
          tickFormat: shortTokens,
          label: t("curve.x"),
        },
        y: { domain: [0, first.y], tickFormat: quantity, label: t("speed.axis") },
        present: present ? { ...present, label: rate(present.y) } : null,
        title: (row) => `${integer(row.context)}\n${rate(row.request)}`,
        width: app.chartWidth,
        labelledBy,
      }),
    columns: [
      { name: "context", label: t("speed.column_context"), text: (row) => integer(row.context), value: (row) => row.context },
      ...["request", "total"].map((name) => ({
        name: `tokens_per_second_${name}`,
        label: t(`speed.column_${name}`),
        text: (row) => quantity(row[name]),
        value: (row) => row[name],
      })),
      ...["weight_bytes", "cache_bytes"].map((name) => ({
        name,
        label: t(`speed.column_${name}`),
        text: (row) => bytesText(row[name], unit),
        value: (row) => row[name],
      })),
      { name: "bound", label: t("speed.column_bound"), text: (row) => t(`speed.bound_${row.bound}`), value: (row) => row.bound },
    ],
    rows,
  });
}

function cost(app, found) {
  const { t } = app;
  if (found.cost === null) return nothing;
  const { price_per_hour, per_million_output_tokens: output, per_million_context_token_hours: kept, per_million_context_token_hours_when_full: full } = found.cost;
  const amount = (value) => (value === null ? t("speed.unknown") : t("speed.at_least", { amount: dollars(value) }));
  return html`<dl class="panel-facts">
    ${fact(t("speed.cost_hour"), dollars(price_per_hour), t.count("speed.gpus", found.gpus, { count: integer(found.gpus) }))}
    ${fact(t("speed.cost_output"), amount(output))}
    ${fact(t("speed.cost_context"), kept === null ? t("speed.does_not_fit") : dollars(kept))}
    ${full === null ? nothing : fact(t("speed.cost_context_full"), dollars(full))}
  </dl>`;
}

/** What providers asked for such a GPU, each a click away from the price. */
function prices(app, actions, { prices: listed, currency }) {
  const { t } = app;
  if (listed.length === 0) return html`<p class="hint">${t("speed.no_prices")}</p>`;
  return html`<details class="panel-data" id="speed-prices">
    <summary>${t.count("speed.prices", listed.length, { count: integer(listed.length), currency })}</summary>
    <div class="scroll" role="region" tabindex="0" aria-label=${t("speed.prices_table")}>
      <table>
        <thead>
          <tr>
            ${["price", "provider", "kind", "date"].map((name) => html`<th scope="col">${t(`speed.price_${name}`)}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${listed.map(
            (row) =>
              html`<tr>
                <th scope="row">
                  <button type="button" class="link-button" @click=${() => actions.choosePanelInput(ID, "price", row.price_per_hour)}>
                    ${dollars(row.price_per_hour)}
                  </button>
                </th>
                <td>${row.provider}</td>
                <td>${[row.kind, row.region, row.note].filter(Boolean).join(", ")}</td>
                <td title=${row.source}>${row.date}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </details>`;
}

function inputs(app, actions, found) {
  const { t } = app;
  const rate = (name) => textInput(app, actions, { id: ID, name, placeholder: found?.[name] ? quantity(found[name]) : undefined });
  const given = app.given[ID];
  const rates = ["bandwidth_bytes_per_second", "flops_per_second"];
  const open = rates.some((name) => name in given || found?.[name] === null);
  return html`<div class="panel-inputs">
      ${textInput(app, actions, { id: ID, name: "price" })}
      ${textInput(app, actions, { id: ID, name: "prompt_tokens", placeholder: integer(app.asked.tokens) })}
    </div>
    <details class="panel-data" id="speed-device" ?open=${open}>
      <summary>${t("speed.device")}</summary>
      <div class="panel-inputs">${rates.map(rate)}</div>
    </details>`;
}

function content(app, actions) {
  const {
    t,
    plan,
    view: { unit },
  } = app;
  const { found, error } = app.panels[ID];
  if (plan?.error) return html`<p class="muted">${t("speed.no_plan")}</p>`;
  const answer = found?.answer ?? null;
  if (answer === null)
    return html`${inputs(app, actions, null)}${panelError(app, actions, ID)}
      ${error === null ? html`<p class="muted panel-room">${t("speed.waiting")}</p>` : nothing}`;
  const old = isOld(app, ID);
  return html`<p>${t("speed.lead")}</p>
    ${inputs(app, actions, answer)}${panelError(app, actions, ID)}
    <div class="panel-answer ${old ? "old" : ""}" aria-busy=${String(old)}>
      ${old ? html`<p class="levers-old">${t("levers.old")}</p>` : nothing}
      ${answer.warnings.map((warning) => html`<p class="message warning">${warningText(t, warning, unit)}</p>`)}
      ${facts(app, answer)} ${withoutCache(app, answer)} ${chart(app, answer)} ${arithmetic(app, answer)} ${cost(app, answer)}
      ${prices(app, actions, answer)}
    </div>`;
}

export function speed(app, actions) {
  const { t, asked } = app;
  if (!asked.gpu) return nothing;
  return panel(app, actions, { id: ID, heading: t("speed.heading"), body: () => content(app, actions) });
}
