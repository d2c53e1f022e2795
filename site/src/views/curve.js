/** KV cache against context: the finding, the chart, and the same as a table. */

import { html, nothing } from "lit-html";
import { guard } from "lit-html/directives/guard.js";
import { curveChart, isPowerOfTwo } from "../charts.js";
import { bytesText, exactInteger, factor, integer } from "../format.js";
import { engineName } from "../messages.js";

const toRow = ({ tokens, total_bytes: total, allocated_bytes: allocated }) => ({ tokens, total, allocated });

/** What the curve shows, in a sentence: how much more memory how much more context takes. */
function finding(app, rows) {
  const {
    t,
    answer: { estimate },
  } = app;
  const low = rows[0];
  const high = rows[rows.length - 1];
  if (high.total === low.total) {
    return high.total === 0 ? t("curve.nothing") : t("curve.constant", { bytes: bytesText(high.total, app.view.unit) });
  }
  if (low.total === 0)
    return t("curve.from_zero", { tokens: integer(high.tokens), bytes: bytesText(high.total, app.view.unit) });
  const context = high.tokens / low.tokens;
  const memory = high.total / low.total;
  const params = {
    context: factor(context),
    memory: factor(memory),
    from: integer(low.tokens),
    to: integer(high.tokens),
    model: estimate.name ?? estimate.model,
  };
  return t(Math.abs(memory / context - 1) < 0.005 ? "curve.in_step" : "curve.slower", params);
}

function table(app, rows) {
  const {
    t,
    view: { unit },
  } = app;
  const both = rows.some(({ allocated }) => allocated !== undefined);
  const shown = rows.filter(({ tokens }) => isPowerOfTwo(tokens) || tokens === app.curve.max_context);
  const cell = (bytes) =>
    html`<td>${bytesText(bytes, unit)}</td>
      <td class="muted">${exactInteger(bytes)}</td>`;
  return html`<details class="chart-data">
    <summary>${t("curve.table")}</summary>
    <div class="scroll" role="region" tabindex="0" aria-label=${t("curve.table")}>
      <table>
        <thead>
          <tr>
            <th scope="col">${t("curve.tokens")}</th>
            <th scope="col">${t("bar.logical")}</th>
            <th scope="col">${t("curve.bytes")}</th>
            ${
              both
                ? html`<th scope="col">${t("curve.allocated")}</th>
                    <th scope="col">${t("curve.bytes")}</th>`
                : nothing
            }
          </tr>
        </thead>
        <tbody>
          ${shown.map(
            (row) =>
              html`<tr>
                <th scope="row">${integer(row.tokens)}</th>
                ${cell(row.total)}${
                  both
                    ? row.allocated === undefined
                      ? html`<td>–</td>
                          <td>–</td>`
                      : cell(row.allocated)
                    : nothing
                }
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </details>`;
}

export function curve(app, { prefix = "", embedded = false } = {}) {
  const {
    t,
    view: { unit },
    answer: { estimate },
  } = app;
  const captionId = `${prefix}curve-caption`;
  const heading = html`<h2 id="${prefix}curve-heading">${t("curve.heading")}</h2>`;
  if (!app.curve)
    return html`<section class="curve">
      ${embedded ? nothing : heading}
      <p class="muted chart-room">${t("why.waiting")}</p>
    </section>`;
  const rows = app.curve.points.map(toRow);
  const trained = app.curve.max_context ?? null;
  const present = {
    tokens: estimate.tokens,
    total: estimate.total_bytes,
    allocated: estimate.allocated?.bytes_per_rank,
  };
  const inRange = present.tokens >= rows[0].tokens && present.tokens <= rows[rows.length - 1].tokens;
  const labels = {
    x: t("curve.x"),
    trained: trained === null ? "" : t("curve.trained", { tokens: integer(trained) }),
    present: bytesText(present.total, unit),
    logical: t("bar.logical"),
    allocated: t("curve.allocated"),
    tokens: (tokens) => t.count("count.tokens", tokens, { count: integer(tokens) }),
  };
  const draw = () =>
    curveChart({
      rows,
      trained,
      unit,
      labels,
      width: app.chartWidth,
      labelledBy: captionId,
      present: inRange ? present : rows[rows.length - 1],
    });
  return html`<section class="curve" aria-labelledby=${embedded ? captionId : `${prefix}curve-heading`}>
    ${embedded ? nothing : heading}
    <figure>
      <figcaption id=${captionId}>${finding(app, rows)}</figcaption>
      <div class="chart-room">${guard([app.curve, estimate, unit, t, app.chartWidth], draw)}</div>
      ${
        estimate.allocated
          ? html`<ul class="chart-key">
              <li>
                <svg aria-hidden="true" width="28" height="10">
                  <line class="key-line" x1="0" x2="28" y1="5" y2="5"></line></svg
                >${t("bar.logical")}
              </li>
              <li>
                <svg aria-hidden="true" width="28" height="10">
                  <line class="key-allocated" x1="0" x2="28" y1="5" y2="5"></line></svg
                >${t("bar.allocated", { engine: engineName(estimate.allocated.engine) })}
              </li>
            </ul>`
          : nothing
      }
    </figure>
    ${table(app, rows)}
  </section>`;
}
