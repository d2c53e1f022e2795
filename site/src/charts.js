/** Charts by Observable Plot, freed of inline styles so that the strict policy and a saved copy accept them. */

import { areaY, axisX, axisY, dot, gridY, lineY, plot, pointerX, ruleX, text, tip } from "@observablehq/plot";
import { bytesText, shortTokens } from "./format.js";

const KIB = 2 ** 10;
const UNITS = { gib: 2 ** 30, gb: 1e9 };
const STEPS = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

/** Powers of `base` between the two, thinned to at most `most`. */
export function powers(base, low, high, most) {
  const first = Math.ceil(Math.log(low) / Math.log(base) - 1e-9);
  const last = Math.floor(Math.log(high) / Math.log(base) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  const ticks = [];
  for (let exponent = last; exponent >= first; exponent -= step) ticks.unshift(base ** exponent);
  return ticks;
}

/** Round numbers of bytes from zero to `end`, at most about `most`. */
export function byteTicks(end, unit, most) {
  const step = (STEPS.find((each) => end / (each * UNITS[unit]) <= most) ?? STEPS.at(-1)) * UNITS[unit];
  return Array.from({ length: Math.floor(end / step) + 1 }, (_, index) => index * step);
}

/** The y axis: logarithmic, as caches span a thousandfold; linear only where there is a zero to show. */
function yScale(rows, capacity, unit) {
  const values = rows.flatMap(({ total, allocated }) => [total, allocated]).filter((value) => value !== undefined);
  if (capacity !== null) values.push(capacity.bytes);
  const high = Math.max(...values);
  const low = Math.min(...values);
  const base = unit === "gb" ? 10 : 2;
  if (low <= 0) return { type: "linear", domain: [0, high || 1], ticks: 5, floor: 0 };
  const floor = base ** Math.floor(Math.log(low) / Math.log(base) - 1e-9);
  const ceiling = base ** Math.ceil(Math.log(high) / Math.log(base) + 0.15);
  return { type: "log", base, domain: [floor, ceiling], ticks: powers(base, floor, ceiling, 7), floor };
}

function axes({ first, last, y, unit, narrow, labels }) {
  return [
    axisX({
      ticks: powers(2, first, last, narrow ? 5 : 11),
      tickFormat: shortTokens,
      label: labels.x,
      labelAnchor: "right",
      tickSize: 4,
    }),
    axisY({
      ticks: y.ticks,
      tickFormat: (bytes) => bytesText(bytes, unit).replace(/\.0+ /, " "),
      label: null,
      tickSize: 0,
    }),
    gridY({ ticks: y.ticks }),
  ];
}

function lines(rows, y) {
  const drawn = { x: "tokens", stroke: "currentColor" };
  const marks = [
    areaY(rows, { x: "tokens", y1: y.floor, y2: "total", className: "chart-area", fill: "currentColor" }),
    lineY(rows, { ...drawn, y: "total", className: "chart-line", strokeWidth: 2.25 }),
  ];
  if (!allocates(rows)) return marks;
  const dashed = { strokeWidth: 1.75, strokeDasharray: "5 4" };
  return [...marks, lineY(rows, { ...drawn, ...dashed, y: "allocated", className: "chart-allocated" })];
}

/** The room for the cache on one GPU: what lies above does not fit, and where the line crosses it. */
function room({ capacity, first, last, y, labels }) {
  if (capacity === null) return [];
  const { bytes, crossing } = capacity;
  const ceiling = y.domain[1];
  const across = [first, last];
  const marks = [
    areaY(across, { x: (value) => value, y1: bytes, y2: ceiling, className: "chart-over", fill: "currentColor" }),
    lineY(across, {
      x: (value) => value,
      y: bytes,
      className: "chart-capacity",
      stroke: "currentColor",
      strokeWidth: 1.75,
    }),
    text([first], {
      x: (value) => value,
      y: bytes,
      text: () => labels.capacity,
      className: "chart-capacity-label",
      textAnchor: "start",
      dx: 6,
      dy: -5,
      lineAnchor: "bottom",
      fill: "currentColor",
    }),
  ];
  if (crossing < first || crossing > last) return marks;
  const late = Math.log(crossing / first) / Math.log(last / first) > 0.45;
  return [
    ...marks,
    dot([crossing], {
      x: (value) => value,
      y: bytes,
      className: "chart-crossing",
      r: 4.5,
      fill: "currentColor",
      strokeWidth: 2,
    }),
    text([crossing], {
      x: (value) => value,
      y: bytes,
      text: () => labels.crossing,
      className: "chart-crossing-label",
      textAnchor: late ? "end" : "start",
      dx: late ? -9 : 9,
      dy: late ? -8 : 9,
      lineAnchor: late ? "bottom" : "top",
      fill: "currentColor",
    }),
  ];
}

/** The trained limit, named on the side that has more room. */
function limit({ trained, first, last, labels }) {
  if (trained === null || trained < first || trained > last) return [];
  const left = trained < Math.sqrt(first * last);
  return [
    ruleX([trained], {
      className: "chart-limit",
      stroke: "currentColor",
      strokeDasharray: "2 3",
      strokeWidth: 1.25,
    }),
    text([trained], {
      x: (value) => value,
      frameAnchor: "bottom",
      text: () => labels.trained,
      className: "chart-limit-label",
      textAnchor: left ? "start" : "end",
      dx: left ? 6 : -6,
      dy: -8,
      fill: "currentColor",
    }),
  ];
}

/** The present point; its label keeps clear of the lines, which rise to the right. */
function presentPoint({ rows, present, capacity, first, last, labels }) {
  const position = Math.log(present.tokens / first) / Math.log(last / first);
  // Above the line are the names of what else is drawn there.
  const room = capacity !== null && present.total <= capacity.bytes;
  const below = capacity === null ? position < (allocates(rows) ? 0.87 : 0.5) : room && position < 0.87;
  return [
    dot([present], {
      x: "tokens",
      y: "total",
      className: "chart-present",
      r: 5.5,
      fill: "currentColor",
      strokeWidth: 2,
    }),
    text([present], {
      x: "tokens",
      y: "total",
      text: () => labels.present,
      className: "chart-present-label",
      textAnchor: below ? "start" : "end",
      dx: below ? 10 : -10,
      dy: below ? 14 : -12,
      lineAnchor: below ? "top" : "bottom",
      fill: "currentColor",
    }),
  ];
}

function hover({ rows, unit, labels }) {
  const title = ({ tokens, total, allocated }) =>
    [
      labels.tokens(tokens),
      `${labels.logical} ${bytesText(total, unit)}`,
      ...(allocated === undefined ? [] : [`${labels.allocated} ${bytesText(allocated, unit)}`]),
    ].join("\n");
  return [tipOf(rows, { x: "tokens", y: "total", title })];
}

/** What hovering tells of the row at hand; drawn anew with each move, so it must not name itself as `bare` undoes it. */
export function tipOf(rows, options) {
  const drawn = { className: "chart-tip", fontSize: 13, fill: "var(--surface)", stroke: "var(--line-strong)" };
  const mark = tip(rows, pointerX({ ...options, ...drawn }));
  mark.ariaLabel = null;
  return mark;
}

const allocates = (rows) => rows.some(({ allocated }) => allocated !== undefined);

/**
 * KV cache against context.
 * @param {object} options
 * @param {Array<{tokens: number, total: number, allocated?: number}>} options.rows
 * @param {{tokens: number, total: number, allocated?: number}} options.present
 * @param {number|null} options.trained the trained limit in tokens
 * @param {{bytes: number, crossing: number}|null} options.capacity the room for what is drawn, and the tokens that fill it
 * @returns {SVGSVGElement}
 */
export function curveChart({ rows, present, trained, capacity = null, width, unit, labels, labelledBy }) {
  const narrow = width < 520;
  const first = rows[0].tokens;
  const last = rows[rows.length - 1].tokens;
  const y = yScale(rows, capacity, unit);
  const chart = plot({
    width,
    height: narrow ? 260 : 320,
    marginLeft: 62,
    marginRight: 16,
    marginTop: 18,
    marginBottom: 42,
    className: "plot",
    x: { type: "log", base: 2, domain: [first, last] },
    y: { type: y.type, base: y.base, domain: y.domain },
    marks: [
      ...axes({ first, last, y, unit, narrow, labels }),
      ...room({ capacity, first, last, y, labels }),
      ...lines(rows, y),
      ...limit({ trained, first, last, labels }),
      ...presentPoint({ rows, present, capacity, first, last, labels }),
      ...hover({ rows, unit, labels }),
    ],
  });
  return bare(chart, labelledBy);
}

/** Without Plot's style sheet and per-mark labels: the figure's caption names the whole. */
export function bare(chart, labelledBy) {
  chart.querySelector("style")?.remove();
  for (const node of chart.querySelectorAll("[style]")) node.removeAttribute("style");
  for (const node of chart.querySelectorAll("[aria-label]")) node.removeAttribute("aria-label");
  for (const node of chart.querySelectorAll("[aria-description]")) node.removeAttribute("aria-description");
  chart.setAttribute("class", "chart");
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-labelledby", labelledBy);
  return chart;
}

const STEPS_PER_OCTAVE = 4;

/** Contexts at which the curve is asked for: from 1K to the power of two at or past twice the trained limit. */
export function curvePoints(tokens, trained) {
  const last = Math.max(2 ** 17, 2 * (trained ?? 0), tokens);
  const top = 2 ** Math.ceil(Math.log2(last));
  const lowest = Math.min(KIB, 2 ** Math.floor(Math.log2(Math.max(tokens, 1))));
  const points = new Set();
  const octaves = Math.log2(top / lowest);
  for (let step = 0; step <= octaves * STEPS_PER_OCTAVE; step += 1) {
    points.add(Math.round(lowest * 2 ** (step / STEPS_PER_OCTAVE)));
  }
  if (trained !== null && trained >= lowest && trained <= top) points.add(trained);
  return [...points].sort((a, b) => a - b);
}

export const isPowerOfTwo = (value) => Number.isInteger(Math.log2(value));
