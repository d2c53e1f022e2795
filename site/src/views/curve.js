/** KV cache against context: the finding, the chart, and the same as a table. */

import { html, nothing } from "lit-html";
import { guard } from "lit-html/directives/guard.js";
import { curveChart, isPowerOfTwo } from "../charts.js";
import { bytesText, exactInteger, factor, integer } from "../format.js";
import { answeredName, engineName } from "../messages.js";

/** What is drawn: one GPU's share where an engine says what that is, else the logical bytes and the allocated. */
function drawn({ points, plan }) {
  const onGpu = plan && points.every((point) => point.allocated_bytes !== undefined);
  if (onGpu) return points.map(({ tokens, allocated_bytes: total }) => ({ tokens, total }));
  return points.map(toRow);
}

/** The room for what is drawn; none where a plan is about another measure. */
function capacityOf({ points, plan }, estimate) {
  if (!plan) return null;
  const same = plan.allocated.bytes_per_rank === estimate.total_bytes;
  if (!same && points.some((point) => point.allocated_bytes === undefined)) return null;
  return plan.rank.pool_bytes > 0 ? { bytes: plan.rank.pool_bytes, crossing: plan.max_context } : null;
}

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
    model: answeredName(app),
  };
  return t(Math.abs(memory / context - 1) < 0.005 ? "curve.in_step" : "curve.slower", params);
}

/** Where the cache outgrows its room, in a sentence. */
function limits(app, rows, capacity) {
  const {
    t,
    view: { unit },
    curve: { plan },
  } = app;
  if (capacity === null) return "";
  const params = {
    requests: integer(plan.concurrency),
    room: bytesText(capacity.bytes, unit),
    tokens: integer(capacity.crossing),
  };
  if (capacity.crossing === 0) return t.count("curve.never", plan.concurrency, params);
  return t.count(capacity.crossing > rows[rows.length - 1].tokens ? "curve.always" : "curve.until", plan.concurrency, params);
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
            <th scope="col">${t(app.curve.plan && !both ? "curve.on_gpu" : "bar.logical")}</th>
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
  const { plan } = app.curve;
  const rows = drawn(app.curve);
  const capacity = capacityOf(app.curve, estimate);
  const shared = plan && rows[0].allocated === undefined && app.curve.points[0].allocated_bytes !== undefined;
  const trained = app.curve.max_context ?? null;
  const present = shared
    ? { tokens: plan.context, total: plan.allocated.bytes_per_rank }
    : {
        tokens: estimate.tokens,
        total: estimate.total_bytes,
        allocated: rows[0].allocated === undefined ? undefined : estimate.allocated?.bytes_per_rank,
      };
  const inRange = present.tokens >= rows[0].tokens && present.tokens <= rows[rows.length - 1].tokens;
  const labels = {
    x: t("curve.x"),
    trained: trained === null ? "" : t("curve.trained", { tokens: integer(trained) }),
    present: bytesText(present.total, unit),
    logical: t(shared ? "curve.on_gpu" : "bar.logical"),
    capacity: capacity === null ? "" : t("curve.capacity", { bytes: bytesText(capacity.bytes, unit) }),
    crossing: capacity === null ? "" : t.count("count.tokens", capacity.crossing, { count: integer(capacity.crossing) }),
    allocated: t("curve.allocated"),
    tokens: (tokens) => t.count("count.tokens", tokens, { count: integer(tokens) }),
  };
  const draw = () =>
    curveChart({
      rows,
      trained,
      unit,
      labels,
      capacity,
      width: app.chartWidth,
      labelledBy: captionId,
      present: inRange ? present : rows[rows.length - 1],
    });
  return html`<section class="curve" aria-labelledby=${embedded ? captionId : `${prefix}curve-heading`}>
    ${embedded ? nothing : heading}
    <figure>
      <figcaption id=${captionId}>${[limits(app, rows, capacity), finding(app, rows)].filter(Boolean).join(" ")}</figcaption>
      <div class="chart-room">${guard([app.curve, estimate, unit, t, app.chartWidth], draw)}</div>
      ${
        rows[0].allocated !== undefined && estimate.allocated
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
