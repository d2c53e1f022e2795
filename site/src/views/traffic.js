/** Real traffic instead of one length: how full the pool is, how often too full, and which rate it stands. */

import { html, nothing } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { bytesText, duration, exactInteger, integer, quantity, share, statedShare } from "../format.js";
import { engineName, warningText } from "../messages.js";
import { assumed } from "../traffic.js";
import { useChart } from "../usechart.js";
import { fact, figure, isOld, panel, panelError } from "./panel.js";
import { fileInput, grouped, progressLine, textInput } from "./panelfields.js";
import { undo } from "./undo.js";

const ID = "traffic";
const LESS_ASKED = ["seconds_per_request", "prefill_tokens_per_second", "context"];
/** Odds of overflow that nobody will live to see. */
const NEVER = 1e-9;

const fileOf = ({ panelFiles }) => panelFiles[ID] ?? null;
const assumedHere = (app) => assumed({ given: app.given[ID], file: fileOf(app) }, app.data.lengths);

/** The published lengths that hold now, if any do. */
function likeNow(app) {
  const { prompt, output } = { ...assumedHere(app), ...app.given[ID] };
  return app.data.lengths.find((each) => each.prompt === prompt && each.output === output) ?? null;
}

function likeInput(app, actions) {
  const { t } = app;
  const now = likeNow(app);
  const choose = (id) => {
    const { prompt, output } = app.data.lengths.find((each) => each.id === id);
    actions.choosePanelInputs(ID, { prompt, output });
  };
  return html`<div class="field wide">
    <label for="traffic-like">${t("traffic.field_like")}</label>
    <select
      id="traffic-like"
      aria-describedby="traffic-like-hint"
      .value=${live(now?.id ?? "")}
      @change=${(event) => choose(event.target.value)}
    >
      ${now === null ? html`<option value="" selected>${t("traffic.own_lengths")}</option>` : nothing}
      ${app.data.lengths.map(({ id, resembles }) => html`<option value=${id} ?selected=${id === now?.id}>${resembles}</option>`)}
    </select>
    <span id="traffic-like-hint" class="hint">${now === null ? nothing : t("traffic.measured", { source: now.source })}</span>
  </div>`;
}

/** What is taken for granted, in words. */
function assumptions(app) {
  const { t, data } = app;
  const { prompt, output, arrival_rate: rate, tokens_per_second: pace } = assumedHere(app);
  const [{ resembles }] = data.lengths;
  const parts = [
    prompt && output ? t("traffic.assumed_lengths", { name: resembles }) : null,
    prompt && !output ? t("traffic.assumed_prompts", { name: resembles }) : null,
    output && !prompt ? t("traffic.assumed_outputs", { name: resembles }) : null,
    rate ? t("traffic.assumed_rate", { rate: quantity(rate) }) : null,
    pace ? t("traffic.assumed_pace", { rate: quantity(pace) }) : null,
  ].filter((part) => part !== null);
  if (parts.length === 0) return nothing;
  return html`<p class="hint" id="traffic-assumed">${t("traffic.assumed", { what: parts.join(", ") })}</p>`;
}

function inputs(app, actions, found) {
  const { t, asked, given } = app;
  const file = fileOf(app);
  const taken = assumedHere(app);
  const own = given[ID];
  const text = (name, placeholder) => textInput(app, actions, { id: ID, name, placeholder });
  const number = (value) => (value === undefined || value === null ? undefined : quantity(value));
  const open = LESS_ASKED.some((name) => name in own || app.panels[ID].error?.params?.argument === name);
  return html`<div class="panel-inputs">
      ${
        file === null
          ? html`${likeInput(app, actions)} ${text("prompt", grouped(taken.prompt ?? ""))} ${text("output", grouped(taken.output ?? ""))}`
          : nothing
      }
      ${text("arrival_rate", number(file === null ? taken.arrival_rate : found?.arrival_rate))}
      ${text("tokens_per_second", number(taken.tokens_per_second))} ${text("odds", number(found?.odds))}
      ${text("common_prefix", asked.shared_prefix ? integer(asked.shared_prefix) : undefined)}
    </div>
    ${fileInput(app, actions, { id: ID, accept: ".csv,.jsonl,.json,.txt,.gz" })}
    <details class="panel-data" id="traffic-more" ?open=${open}>
      <summary>${t("traffic.more")}</summary>
      <div class="panel-inputs">
        ${text("seconds_per_request")} ${text("prefill_tokens_per_second")}
        ${text("context", found === null ? undefined : integer(found.limit))}
      </div>
    </details>
    ${assumptions(app)}`;
}

function between(t, { low, high }, format) {
  const bounds = { low: format(low), high: format(high) };
  return bounds.low === bounds.high ? nothing : t("traffic.between", bounds);
}

const rate = (value) => quantity(value);

function facts(app, found) {
  const {
    t,
    view: { unit },
  } = app;
  const { overflow, rate_at_odds: most, requests_in_flight: flight, lengths, use, use_of_pool: shares } = found;
  const quantiles = ({ p95, p99 }) => t("traffic.quantiles", { p95: integer(p95), p99: integer(p99) });
  const ofPool = (name) => (shares[name] === null ? nothing : t("traffic.of_pool", { share: share(shares[name]) }));
  const used = (name) => fact(t(`traffic.use_${name}`), bytesText(use[name].estimate, unit), ofPool(name));
  return html`<dl class="panel-facts">
    ${fact(t("traffic.overflow"), share(overflow.estimate), between(t, overflow, share))}
    ${fact(t("traffic.most_rate", { odds: statedShare(found.odds) }), t("traffic.rate", { rate: rate(most.estimate) }), between(t, most, rate))}
    ${fact(t("traffic.pool"), bytesText(found.pool, unit))}
    ${used("p50")} ${used("p95")} ${used("p99")}
    ${fact(t("traffic.in_flight"), quantity(flight.mean), quantiles(flight))}
    ${fact(t("traffic.held"), integer(found.held_tokens_per_request))}
    ${fact(t("traffic.whole"), integer(lengths.total.mean), quantiles(lengths.total))}
    ${fact(t("traffic.stay"), duration(found.seconds_per_request))}
  </dl>`;
}

function finding(app, found) {
  const { t } = app;
  const { overflow, rate_at_odds: most } = found;
  if (most.estimate === 0) return t("traffic.finding_no_room");
  return t(overflow.high < NEVER ? "traffic.finding_never" : "traffic.finding", {
    rate: rate(found.arrival_rate),
    overflow: share(overflow.estimate),
    odds: statedShare(found.odds),
    most: rate(most.estimate),
  });
}

function chart(app, found) {
  const {
    t,
    view: { unit },
  } = app;
  const bytes = (value) => bytesText(value, unit);
  const { distribution, pool, use } = found;
  const over = distribution.some((bin) => bin.use > pool);
  const column = (name, text) => ({ name, label: t(`traffic.column_${name}`), text: (row) => text(row[name]), value: (row) => row[name] });
  return figure(app, {
    id: ID,
    finding: finding(app, found),
    drawnFrom: [found],
    draw: (labelledBy) =>
      useChart({
        bins: distribution,
        edge: { x: pool, label: t("traffic.mark_pool", { bytes: bytes(pool) }) },
        marks: ["p50", "p95", "p99"].map((name) => ({ x: use[name].estimate, label: `${name} ${bytes(use[name].estimate)}` })),
        title: (bin) =>
          [`${bytes(bin.from)} – ${bytes(bin.use)}`, t("traffic.of_time", { share: share(bin.probability) }), t("traffic.more_use", { share: share(bin.more) })].join("\n"),
        axis: t("traffic.axis"),
        width: app.chartWidth,
        unit,
        labelledBy,
      }),
    key: html`<ul class="panel-key">
      ${["used", "over"]
        .filter((part) => part === "used" || over)
        .map(
          (part) =>
            html`<li>
              <svg class="swatch" aria-hidden="true" width="14" height="14"><rect class="key-part ${part}" width="14" height="14"></rect></svg>
              ${t(`traffic.part_${part}`)}
            </li>`,
        )}
    </ul>`,
    columns: [column("from", bytes), column("use", bytes), column("probability", share), column("more", share)],
    rows: distribution,
  });
}

/** Tokens and requests of the form from the traffic: both at once, or one at a time. */
function setting(app, actions, { as_plan: { context, concurrency } }, old) {
  const { t, asked } = app;
  const set = (change) => actions.pullLever({ lever: "set", name: "traffic.in_the_form", change }, ID);
  const isSet = ({ context: tokens = asked.tokens, concurrency: requests = asked.sequences }) =>
    tokens === asked.tokens && requests === asked.sequences;
  const tokens = (which) => t("traffic.set_tokens", { tokens: integer(context[which]), which: t(`traffic.${which}`) });
  const requests = (which) =>
    t.count("traffic.set_requests", concurrency[which], { count: integer(concurrency[which]), which: t(`traffic.${which}`) });
  const button = (id, kind, change, label) =>
    html`<button type="button" class=${kind} id=${id} ?disabled=${old || isSet(change)} @click=${() => set(change)}>${label}</button>`;
  const single = (name, values, words) =>
    Object.keys(values).map((which) => button(`traffic-set-${name}-${which}`, "chip", { [name]: values[which] }, words(which)));
  const { p95, p99 } = context;
  const { mean, p95: most } = concurrency;
  return html`<div class="traffic-set" role="group" aria-labelledby="traffic-set-heading">
    <h3 id="traffic-set-heading">${t("traffic.set_heading")}</h3>
    <p>
      ${button("traffic-set", "button", { context: p99, concurrency: most }, html`${tokens("p99")} × ${requests("p95")}`)}
    </p>
    <p class="traffic-set-one">
      <span>${t("traffic.set_one")}</span>
      ${single("context", { p95, p99 }, tokens)} ${single("concurrency", { mean, p95: most }, requests)}
    </p>
    <p class="hint">${t("traffic.set_hint")}</p>
  </div>`;
}

function method(app, found) {
  const {
    t,
    asked,
    view: { unit },
  } = app;
  const engine = asked.engine === null ? t("traffic.no_engine") : engineName(asked.engine);
  return html`<details class="panel-data">
    <summary>${t("traffic.method")}</summary>
    <p>${t("traffic.method_text", { cell: bytesText(found.method.cell, unit), bytes: exactInteger(found.method.cell), engine })}</p>
  </details>`;
}

function answered(app, actions, answer) {
  const {
    t,
    view: { unit },
  } = app;
  const old = isOld(app, ID);
  return html`<div class="panel-answer ${old ? "old" : ""}" aria-busy=${String(old)}>
    ${old ? html`<p class="levers-old">${t("levers.old")}</p>` : nothing}
    ${answer.warnings.map((warning) => html`<p class="message warning">${warningText(t, warning, unit)}</p>`)}
    ${answer.replicas > 1 ? html`<p class="hint">${t("traffic.replicas", { count: integer(answer.replicas) })}</p>` : nothing}
    ${chart(app, answer)} ${facts(app, answer)} ${setting(app, actions, answer, old)} ${method(app, answer)}
    <p class="visually-hidden" role="status">${old ? nothing : finding(app, answer)}</p>
  </div>`;
}

function content(app, actions) {
  const { t, plan } = app;
  const { found, error, stopped } = app.panels[ID];
  if (plan?.error) return html`<p class="muted">${t("traffic.no_plan")}</p>`;
  const answer = found?.answer ?? null;
  return html`<p>${t("traffic.lead")}</p>
    ${inputs(app, actions, answer)} ${panelError(app, actions, ID)} ${progressLine(app, actions, ID)}
    ${
      answer === null
        ? html`<p class="muted panel-room">${error === null && !stopped ? t("traffic.waiting") : nothing}</p>`
        : answered(app, actions, answer)
    }`;
}

export function traffic(app, actions) {
  const { t, asked, undoable } = app;
  if (!asked.gpu) return nothing;
  const here = undoable !== null && undoable.place === ID;
  return panel(app, actions, {
    id: ID,
    heading: t("traffic.heading"),
    body: () => html`${here ? undo(app, actions, ID) : nothing}${content(app, actions)}`,
  });
}
