/** What all panels are made of: a heading that opens, a chart, its table behind it, and both as files. */

import { html, nothing } from "lit-html";
import { guard } from "lit-html/directives/guard.js";
import { saveCsv, savePng, saveSvg } from "../downloads.js";
import { errorText } from "../messages.js";
import { isAtField } from "./panelfields.js";

/**
 * A part of the page that opens and closes; what is closed is neither drawn nor computed.
 * @param {object} options
 * @param {string} options.id of the panel in `app.panels`
 * @param {unknown} options.heading
 * @param {() => unknown} options.body called only while it is open
 */
export function panel(app, actions, { id, heading, body }) {
  const { open } = app.panels[id];
  return html`<section class="fold" id=${id} aria-labelledby="${id}-heading">
    <h2 id="${id}-heading">
      <button
        type="button"
        class="fold-button"
        id="${id}-toggle"
        aria-expanded=${String(open)}
        aria-controls="${id}-body"
        @click=${() => actions.togglePanel(id)}
      >
        <svg class="fold-mark" aria-hidden="true" width="12" height="12" viewBox="0 0 12 12"><path d="M3.5 1.5L8.5 6l-5 4.5z"></path></svg>
        <span>${heading}</span>
      </button>
    </h2>
    <div class="fold-body" id="${id}-body" ?hidden=${!open}>${open ? body() : nothing}</div>
  </section>`;
}

/** Whether what a panel shows answers older inputs than those on screen. */
export function isOld(app, id) {
  const { found, subject } = app.panels[id];
  return found !== null && (found.subject !== subject || app.behind || app.answer.stale || !app.planCurrent);
}

/** A figure with its name, and what else is to be said of it. */
export const fact = (label, value, note = nothing) =>
  html`<div><dt>${label}</dt><dd><b>${value}</b> ${note === nothing ? nothing : html`<span class="muted">${note}</span>`}</dd></div>`;

/** Why there is no new answer, with a way to ask again; nothing where there is one, or where a field says it. */
export function panelError(app, actions, id) {
  const {
    t,
    view: { unit },
  } = app;
  const { error } = app.panels[id];
  if (error === null || isAtField(app, id)) return nothing;
  return html`<p class="message error panel-error">
    ${error === "failed" ? t("panel.failed") : errorText(t, error, unit)}
    <button type="button" class="link-button" @click=${() => actions.retryPanel(id)}>${t("panel.retry")}</button>
  </p>`;
}

/**
 * A table of what a chart shows.
 * @param {object} options
 * @param {string} options.labelledBy id of what names it: a page may show several
 * @param {Array<{name: string, label: string, text: (row: object) => unknown, value: (row: object) => string|number|null}>}
 *   options.columns `name` heads the column in a file, `label` on the page; `value` is what a file holds
 * @param {object[]} options.rows
 */
function dataTable({ labelledBy, columns, rows }) {
  const [first, ...others] = columns;
  return html`<div class="scroll" role="region" tabindex="0" aria-labelledby=${labelledBy}>
    <table>
      <thead>
        <tr>
          ${columns.map((column) => html`<th scope="col">${column.label}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr>
              <th scope="row">${first.text(row)}</th>
              ${others.map((column) => html`<td>${column.text(row)}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** A frame may be forbidden to save files: only the page itself offers them. */
function downloads(app, { id, title, columns, rows }) {
  if (app.view.embed) return nothing;
  const { t } = app;
  const file = (kind) => app.fileName.replace(/\.html$/, `-${id}.${kind}`);
  const chart = () => document.querySelector(`#${id}-chart svg.chart`);
  const table = () => [columns.map(({ name }) => name), ...rows.map((row) => columns.map(({ value }) => value(row)))];
  const button = (kind, action) =>
    html`<button type="button" class="chip" id="${id}-${kind}" @click=${action}>
      <span class="visually-hidden">${t("panel.download")}</span> ${kind.toUpperCase()}
    </button>`;
  return html`<div class="downloads" role="group" aria-label=${t("panel.downloads")}>
    <span aria-hidden="true">${t("panel.download")}</span>
    ${button("csv", () => saveCsv(table(), file("csv")))}
    ${button("svg", () => saveSvg(chart(), title, file("svg")))}
    ${button("png", () => savePng(chart(), title, file("png")))}
  </div>`;
}

/**
 * A chart under its finding, with the same as a table and as files.
 * @param {object} options
 * @param {string} options.id unique on the page; also the end of the files' names
 * @param {string} options.finding what the chart shows, in a sentence
 * @param {(labelledBy: string) => SVGSVGElement} options.draw
 * @param {unknown[]} options.drawnFrom what the drawing depends on beside width, unit and language
 * @param {unknown} [options.key] the legend
 * @param {object[]} options.columns and `rows`: see `dataTable`
 */
export function figure(app, { id, finding, draw, drawnFrom, key = nothing, columns, rows }) {
  const { t } = app;
  const captionId = `${id}-caption`;
  const changes = [...drawnFrom, app.view.unit, t.lang, app.chartWidth];
  return html`<figure class="panel-figure" id="${id}-chart">
      <figcaption id=${captionId}>${finding}</figcaption>
      <div class="panel-chart">${guard(changes, () => draw(captionId))}</div>
      ${key}
    </figure>
    <div class="behind">
      <details class="panel-data">
        <summary>${t("panel.table")}</summary>
        ${dataTable({ labelledBy: captionId, columns, rows })}
      </details>
      ${downloads(app, { id, title: finding, columns, rows })}
    </div>`;
}
