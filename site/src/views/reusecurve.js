/** The hit rate over the size of the pool: the finding in a sentence, the chart, and its table. */

import { html } from "lit-html";
import { powers } from "../charts.js";
import { bytesText, integer, percent } from "../format.js";
import { lineChart } from "../linechart.js";
import { figure } from "./panel.js";

const ID = "reuse";
/** 0.95 -> "95%" */
export const shareText = (ratio) => percent(ratio).replace(/\.0%$/, "%");
/** Room at the sides of the line, as factors of its sizes. */
const BEFORE = 1.25;
const BEYOND = 2;
/** Room above the ceiling for the names of what is drawn. */
const ABOVE = 1.3;

/** What the pool finds of what there is to find. */
export function finding(app, answer) {
  const {
    t,
    view: { unit },
  } = app;
  const { pool, ceiling, knee, replicas } = answer;
  const [near] = knee;
  if (ceiling.hit_rate === 0) return t("reuse.finding_nothing");
  const params = {
    ceiling: percent(ceiling.hit_rate),
    share: shareText(near.share),
    knee: bytesText(near.budget_bytes, unit),
  };
  if (pool === null) return t("reuse.finding_no_pool", params);
  return t(pool.budget_bytes >= near.budget_bytes ? "reuse.finding_enough" : "reuse.finding", {
    ...params,
    pool: bytesText(pool.budget_bytes, unit),
    place: replicas === 1 ? t("reuse.place") : t("reuse.place_each", { count: integer(replicas) }),
    rate: percent(pool.hit_rate),
  });
}

/** All sizes that were answered, in their order. */
function sizes({ curve, knee, budgets, pool }) {
  const all = [...curve, ...knee, ...budgets, ...(pool === null ? [] : [pool])];
  const bySize = new Map(all.filter(({ budget_bytes: size }) => size > 0).map((point) => [point.budget_bytes, point]));
  return [...bySize.values()].sort((a, b) => a.budget_bytes - b.budget_bytes);
}

const placed = (point) => ({ ...point, x: point.budget_bytes, y: point.hit_rate });

/** Upright and level lines, dots: the own pool, the ceiling, the knees. */
function marks({ t, view: { unit } }, { pool, ceiling, knee }) {
  return {
    rules: pool === null || pool.budget_bytes <= 0 ? [] : [{ x: pool.budget_bytes, label: t("reuse.chart_pool", { size: bytesText(pool.budget_bytes, unit) }) }],
    levels: [{ y: ceiling.hit_rate, label: t("reuse.chart_ceiling", { rate: percent(ceiling.hit_rate) }) }],
    points: knee.map((point) => ({ ...placed(point), label: shareText(point.share) })),
    present: pool === null || pool.budget_bytes <= 0 ? null : { ...placed(pool), label: percent(pool.hit_rate) },
  };
}

function draw(app, answer, rows, labelledBy) {
  const {
    t,
    view: { unit },
    chartWidth: width,
  } = app;
  const [first, last] = [rows[0].x / BEFORE, rows.at(-1).x * BEYOND];
  // Doublings read as well in GB as in GiB.
  const one = unit === "gb" ? 1e9 : 2 ** 30;
  const size = (bytes) => bytesText(bytes, unit).replace(/\.0+ /, " ");
  return lineChart({
    // From the last size on nothing more is found.
    rows: [...rows, { ...rows.at(-1), x: last }],
    x: {
      type: "log",
      base: 2,
      domain: [first, last],
      ticks: powers(2, first / one, last / one, width < 520 ? 5 : 10).map((tick) => tick * one),
      tickFormat: size,
      label: t("reuse.column_budget_bytes"),
    },
    y: { domain: [0, ABOVE * answer.ceiling.hit_rate], tickFormat: shareText, label: t("reuse.axis") },
    ...marks(app, answer),
    title: ({ x, y }) => `${bytesText(x, unit)}\n${percent(y)}`,
    width,
    labelledBy,
  });
}

export function hitCurve(app, answer) {
  const {
    t,
    view: { unit },
  } = app;
  const rows = sizes(answer).map(placed);
  const said = finding(app, answer);
  if (answer.ceiling.hit_rate === 0 || rows.length === 0) return html`<p class="reuse-finding">${said}</p>`;
  const column = (name, text) => ({ name, label: t(`reuse.column_${name}`), text: (row) => text(row[name]), value: (row) => row[name] });
  const size = (bytes) => bytesText(bytes, unit);
  return figure(app, {
    id: ID,
    finding: said,
    drawnFrom: [answer],
    draw: (labelledBy) => draw(app, answer, rows, labelledBy),
    columns: [
      column("budget_bytes", size),
      column("cache_bytes", size),
      column("hit_rate", percent),
      column("saved_tokens", integer),
      column("evicted_bytes", size),
    ],
    rows,
  });
}
