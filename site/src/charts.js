/** Charts by Observable Plot, freed of inline styles so that the strict policy and a saved copy accept them. */

import { areaY, axisX, axisY, dot, gridY, lineY, plot, pointerX, ruleX, text, tip } from "@observablehq/plot";
import { bytesText, shortTokens } from "./format.js";

const KIB = 2 ** 10;

/** Powers of `base` between the two, thinned to at most `most`. */
function powers(base, low, high, most) {
  const first = Math.ceil(Math.log(low) / Math.log(base) - 1e-9);
  const last = Math.floor(Math.log(high) / Math.log(base) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  const ticks = [];
  for (let exponent = last; exponent >= first; exponent -= step) ticks.unshift(base ** exponent);
  return ticks;
}

/** The y axis: logarithmic, as caches span a thousandfold; linear only where there is a zero to show. */
function yScale(rows, unit) {
  const values = rows.flatMap(({ total, allocated }) => [total, allocated]).filter((value) => value !== undefined);
  const high = Math.max(...values);
  const low = Math.min(...values);
  const base = unit === "gb" ? 10 : 2;
  if (low <= 0) return { type: "linear", domain: [0, high || 1], ticks: 5, floor: 0 };
  const floor = base ** Math.floor(Math.log(low) / Math.log(base) - 1e-9);
  const ceiling = base ** Math.ceil(Math.log(high) / Math.log(base) + 0.15);
  return { type: "log", base, domain: [floor, ceiling], ticks: powers(base, floor, ceiling, 7), floor };
}

/**
 * KV cache against context.
 * @param {object} options
 * @param {Array<{tokens: number, total: number, allocated?: number}>} options.rows
 * @param {{tokens: number, total: number, allocated?: number}} options.present
 * @param {number|null} options.trained the trained limit in tokens
 * @returns {SVGSVGElement}
 */
export function curveChart({ rows, present, trained, width, unit, labels, labelledBy, interactive = true }) {
  const narrow = width < 520;
  const first = rows[0].tokens;
  const last = rows[rows.length - 1].tokens;
  const y = yScale(rows, unit);
  const both = rows.some(({ allocated }) => allocated !== undefined);
  const right = present.tokens > Math.sqrt(first * last);
  const inside = trained !== null && trained >= first && trained <= last;
  const trainedRight = inside && trained < Math.sqrt(first * last);
  const marks = [
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
      className: "chart-y",
    }),
    gridY({ ticks: y.ticks }),
    areaY(rows, { x: "tokens", y1: y.floor, y2: "total", className: "chart-area", fill: "currentColor" }),
    lineY(rows, { x: "tokens", y: "total", className: "chart-line", stroke: "currentColor", strokeWidth: 2.25 }),
  ];
  if (both) {
    marks.push(
      lineY(rows, {
        x: "tokens",
        y: "allocated",
        className: "chart-allocated",
        stroke: "currentColor",
        strokeWidth: 1.75,
        strokeDasharray: "5 4",
      }),
    );
  }
  if (inside) {
    marks.push(
      ruleX([trained], { className: "chart-limit", stroke: "currentColor", strokeDasharray: "2 3", strokeWidth: 1.25 }),
      text([trained], {
        x: (value) => value,
        frameAnchor: "bottom",
        text: () => labels.trained,
        className: "chart-limit-label",
        textAnchor: trainedRight ? "start" : "end",
        dx: trainedRight ? 6 : -6,
        dy: -8,
        fontSize: 13,
        fill: "currentColor",
      }),
    );
  }
  marks.push(
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
      fontSize: 14,
      textAnchor: right ? "end" : "start",
      dx: right ? -10 : 10,
      dy: right ? -12 : 14,
      lineAnchor: right ? "bottom" : "top",
      fill: "currentColor",
    }),
  );
  if (interactive) {
    marks.push(
      tip(
        rows,
        pointerX({
          x: "tokens",
          y: "total",
          className: "chart-tip",
          fontSize: 13,
          title: ({ tokens, total, allocated }) =>
            [
              labels.tokens(tokens),
              `${labels.logical} ${bytesText(total, unit)}`,
              ...(allocated === undefined ? [] : [`${labels.allocated} ${bytesText(allocated, unit)}`]),
            ].join("\n"),
          fill: "var(--surface)",
          stroke: "var(--line-strong)",
        }),
      ),
    );
  }
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
    marks,
  });
  return bare(chart, labelledBy);
}

/** Without Plot's style sheet and per-mark labels: the figure's caption names the whole. */
function bare(chart, labelledBy) {
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
