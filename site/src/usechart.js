/** How full the pool is, as shares of the time, with its edge and what lies beyond. */

import { axisX, axisY, gridY, plot, rectY, ruleX, text } from "@observablehq/plot";
import { bare, byteTicks, tipOf } from "./charts.js";
import { bytesText, percent } from "./format.js";

/** How many times the use shown a pool may be for its edge still to be drawn. */
const FAR = 6;
/** Heights of a name's row, and the width it may take. */
const LABEL = 17;
const NAME = 130;

/** Each bin once, and one that the edge cuts as two of the same height. */
function parts(bins, edge) {
  return bins.flatMap((bin) => {
    if (bin.use <= edge) return [{ ...bin, part: "used" }];
    if (bin.from >= edge) return [{ ...bin, part: "over" }];
    return [
      { ...bin, use: edge, part: "used" },
      { ...bin, from: edge, part: "over" },
    ];
  });
}

/** Marks with a row each for their names, which stand to the right where there is room: none crosses a line then. */
function placed(marks, last) {
  const ascending = [...marks].sort((one, other) => one.x - other.x);
  const clear = ascending.filter(({ x }) => x <= last);
  const tight = ascending.filter(({ x }) => x > last).reverse();
  return [
    ...clear.map((mark) => ({ ...mark, anchor: "start", dx: 6 })),
    ...tight.map((mark) => ({ ...mark, anchor: "end", dx: -6 })),
  ].map((mark, row) => ({ ...mark, row }));
}

/**
 * @param {object} options
 * @param {Array<{from: number, use: number, probability: number}>} options.bins in ascending order
 * @param {{x: number, label: string}} options.edge of the pool
 * @param {Array<{x: number, label: string}>} options.marks other uses with their names
 * @param {(bin: object) => string} options.title what hovering tells of a bin
 * @param {string} options.axis what the height is
 * @returns {SVGSVGElement}
 */
export function useChart({ bins, edge, marks, title, axis, width, unit, labelledBy }) {
  const last = Math.max(bins.at(-1).use, ...marks.map(({ x }) => x));
  const near = edge.x <= FAR * last;
  const end = 1.03 * (near ? Math.max(last, edge.x) : last);
  const rows = placed([...marks, ...(near ? [{ ...edge, edge: true }] : [])], end * (1 - NAME / width));
  const high = Math.max(...bins.map(({ probability }) => probability));
  const ticks = byteTicks(end, unit, width < 520 ? 4 : 8);
  const drop = (row) => LABEL * (rows.length - row);
  const beyond = near ? [] : [{ ...edge, label: `${edge.label} →` }];
  const marginTop = LABEL * (rows.length + beyond.length) + 14;
  const chart = plot({
    width,
    height: marginTop + (width < 520 ? 190 : 220),
    marginLeft: 56,
    marginRight: 20,
    marginTop,
    marginBottom: 34,
    className: "plot",
    x: { domain: [0, end] },
    y: { domain: [0, high], nice: true },
    marks: [
      axisX({ ticks, tickFormat: (bytes) => bytesText(bytes, unit).replace(/\.0+ /, " "), label: null, tickSize: 4 }),
      axisY({ ticks: 4, tickFormat: percent, label: axis, labelArrow: "none", tickSize: 0 }),
      gridY({ ticks: 4 }),
      ...["used", "over"].map((part) =>
        rectY(
          parts(bins, edge.x).filter((bin) => bin.part === part),
          {
            x1: "from",
            x2: "use",
            y1: 0,
            y2: "probability",
            className: `chart-part ${part}`,
            fill: "currentColor",
            shapeRendering: "crispEdges",
          },
        ),
      ),
      ...rows.flatMap((mark) => [
        ruleX([mark], {
          x: "x",
          insetTop: -drop(mark.row) + 4,
          className: mark.edge ? "chart-capacity" : "chart-mark",
          stroke: "currentColor",
          strokeWidth: mark.edge ? 2 : 1.25,
          strokeDasharray: mark.edge ? undefined : "4 3",
        }),
      ]),
      ...rows.map((mark) =>
        text([mark], {
          x: "x",
          frameAnchor: "top",
          text: "label",
          className: mark.edge ? "chart-capacity-label" : "chart-mark-label",
          fill: "currentColor",
          textAnchor: mark.anchor,
          dx: mark.dx,
          dy: -drop(mark.row) - 2,
        }),
      ),
      text(beyond, {
        frameAnchor: "top-right",
        text: "label",
        className: "chart-capacity-label",
        fill: "currentColor",
        dy: -LABEL * (rows.length + 1) - 2,
      }),
      tipOf(bins, { x1: "from", x2: "use", y: "probability", title }),
    ],
  });
  return bare(chart, labelledBy);
}
