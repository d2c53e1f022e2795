/** One GPU's memory under each lever, as bars on the scale of the limit. */

import { axisX, barX, gridX, plot, ruleX, text } from "@observablehq/plot";
import { bare, byteTicks } from "./charts.js";
import { bytesText } from "./format.js";

const ROW = 30;
const ROW_UNDER_NAME = 46;
const NAMES_WIDTH = 214;
const NOTES_WIDTH = 108;

/** Where each part of a row begins and ends. */
function laidOut(rows) {
  return rows.flatMap(({ parts }, index) => {
    let start = 0;
    return parts.map(([part, bytes]) => {
      start += bytes;
      return { part, index, from: start - bytes, to: start };
    });
  });
}

/**
 * @param {object} options
 * @param {Array<{name: string, note: string, parts: Array<[string, number]>}>} options.rows the first is the present
 * @param {number} options.limit bytes of one GPU that weights, reserve and cache may take
 * @param {string} options.limitLabel
 * @returns {SVGSVGElement}
 */
export function leverChart({ rows, limit, limitLabel, width, unit, labelledBy }) {
  const narrow = width < 600;
  const bars = laidOut(rows);
  const end = 1.02 * Math.max(limit, ...bars.map(({ to }) => to));
  const ticks = byteTicks(end, unit, narrow ? 4 : 7);
  const row = narrow ? ROW_UNDER_NAME : ROW;
  const insets = narrow ? { insetTop: 24, insetBottom: 6 } : { insetTop: 6, insetBottom: 6 };
  const label = { y: (_, index) => index, fill: "currentColor", lineAnchor: "middle", dy: narrow ? -11 : 0 };
  const marginLeft = narrow ? 8 : NAMES_WIDTH;
  const marginRight = narrow ? 8 : NOTES_WIDTH;
  const chart = plot({
    width,
    height: rows.length * row + 60,
    marginLeft,
    marginRight,
    marginTop: 26,
    marginBottom: 34,
    className: "plot",
    x: { domain: [0, end] },
    y: { type: "band", domain: rows.map((_, index) => index), padding: 0, axis: null },
    marks: [
      gridX({ ticks }),
      axisX({ ticks, tickFormat: (bytes) => bytesText(bytes, unit).replace(/\.0+ /, " "), label: null, tickSize: 0 }),
      ...["fixed", "used", "over"].map((part) =>
        barX(
          bars.filter((bar) => bar.part === part),
          { x1: "from", x2: "to", y: "index", className: `chart-part ${part}`, fill: "currentColor", ...insets },
        ),
      ),
      ruleX([limit], { className: "chart-capacity", stroke: "currentColor", strokeWidth: 1.75 }),
      text([limit], {
        x: (bytes) => bytes,
        frameAnchor: "top",
        text: () => limitLabel,
        className: "chart-capacity-label",
        textAnchor: limit > end / 2 ? "end" : "start",
        dy: -16,
        fill: "currentColor",
      }),
      text(rows, {
        ...label,
        text: "name",
        frameAnchor: "left",
        textAnchor: "start",
        dx: narrow ? 0 : -NAMES_WIDTH,
        className: "chart-name",
      }),
      text(rows, {
        ...label,
        text: "note",
        frameAnchor: "right",
        textAnchor: "end",
        dx: narrow ? 0 : NOTES_WIDTH,
        className: "chart-note",
      }),
    ],
  });
  return bare(chart, labelledBy);
}
