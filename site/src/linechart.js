/** One line over another quantity, with the point where one stands. */

import { areaY, axisX, axisY, dot, gridY, lineY, plot, ruleX, ruleY, text } from "@observablehq/plot";
import { bare, tipOf } from "./charts.js";

/**
 * @param {object} options
 * @param {Array<{x: number, y: number}>} options.rows in the order of x
 * @param {object} options.x scale and axis of Plot: {type, base, domain, ticks, tickFormat, label}
 * @param {object} options.y the same, from zero
 * @param {{x: number, y: number, label: string}|null} [options.present]
 * @param {Array<{x: number, label: string}>} [options.rules] upright lines with their names
 * @param {Array<{y: number, label: string}>} [options.levels] level lines with theirs, written above them away from the rules
 * @param {Array<{x: number, y: number, label: string}>} [options.points] of a rising line, named below it
 * @param {(row: object) => string} options.title what hovering tells of a row
 * @param {string} [options.curve] of Plot
 * @returns {SVGSVGElement}
 */
export function lineChart({ rows, x, y, present = null, rules = [], levels = [], points = [], title, curve = "linear", width, labelledBy }) {
  const [first, last] = x.domain;
  const along = (value) =>
    x.type === "log" ? Math.log(value / first) / Math.log(last / first) : (value - first) / (last - first);
  const left = { textAnchor: "end", dx: -10 };
  const right = { textAnchor: "start", dx: 10 };
  const aside = (value) => (along(value) > 0.5 ? left : right);
  // Beside the line, not on it: a falling one leaves room at its right.
  const clear = rows.at(-1).y < rows[0].y ? (along(present?.x) > 0.8 ? left : right) : along(present?.x) < 0.2 ? right : left;
  const away = rules.some((rule) => along(rule.x) > 0.5) ? "left" : "right";
  const drawn = { x: "x", y: "y", fill: "currentColor" };
  const chart = plot({
    width,
    height: width < 520 ? 240 : 290,
    marginLeft: 62,
    marginRight: 24,
    marginTop: 24,
    marginBottom: 42,
    className: "plot",
    x: { type: x.type, base: x.base, domain: x.domain },
    y: { domain: y.domain, nice: true },
    marks: [
      axisX({ ticks: x.ticks, tickFormat: x.tickFormat, label: x.label, labelAnchor: "right", tickSize: 4 }),
      axisY({ ticks: y.ticks ?? 5, tickFormat: y.tickFormat, label: y.label, labelArrow: "none", tickSize: 0 }),
      gridY({ ticks: y.ticks ?? 5 }),
      areaY(rows, { ...drawn, y1: 0, y2: "y", y: undefined, className: "chart-area", curve }),
      lineY(rows, { x: "x", y: "y", stroke: "currentColor", className: "chart-line", strokeWidth: 2.25, curve }),
      ...rules.flatMap((rule, index) => [
        ruleX([rule], { x: "x", className: "chart-capacity", stroke: "currentColor", strokeWidth: 1.75 }),
        text([rule], {
          x: "x",
          frameAnchor: "top",
          text: "label",
          className: "chart-capacity-label",
          fill: "currentColor",
          dy: 4 + 18 * index,
          ...aside(rule.x),
        }),
      ]),
      ...levels.flatMap((level) => [
        ruleY([level], { y: "y", className: "chart-level", stroke: "currentColor", strokeWidth: 1.5, strokeDasharray: "5 4" }),
        text([level], {
          y: "y",
          frameAnchor: away,
          text: "label",
          className: "chart-level-label",
          fill: "currentColor",
          textAnchor: away === "left" ? "start" : "end",
          lineAnchor: "bottom",
          dx: away === "left" ? 6 : -6,
          dy: -5,
        }),
      ]),
      ...points.flatMap((point, index) => [
        dot([point], { ...drawn, className: "chart-point", r: 4, strokeWidth: 2 }),
        text([point], {
          ...drawn,
          text: "label",
          className: "chart-point-label",
          textAnchor: "start",
          lineAnchor: "top",
          dx: 4,
          dy: 9 + 16 * index,
        }),
      ]),
      ...(present === null
        ? []
        : [
            dot([present], { ...drawn, className: "chart-present", r: 5.5, strokeWidth: 2 }),
            text([present], {
              ...drawn,
              text: "label",
              className: "chart-present-label",
              dy: -8,
              lineAnchor: "bottom",
              ...clear,
            }),
          ]),
      tipOf(rows, { x: "x", y: "y", title }),
    ],
  });
  return bare(chart, labelledBy);
}
