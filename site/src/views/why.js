/** Why this number: the formula with live numbers, the layers, the facts and where they come from. */

import { html, nothing } from "lit-html";
import { bytesText, exactInteger, integer, parameterCount } from "../format.js";
import { numeric, symbolic } from "../formula.js";
import { componentName, kindName } from "../messages.js";
import { textOf } from "../values.js";

const pieces = (parts) =>
  parts.map(
    ({ kind, text, title, space }) =>
      html`${space}${
        kind === "name"
          ? html`<var>${text}</var>`
          : kind === "number"
            ? html`<b title=${title ?? nothing}>${text}</b>`
            : kind === "call"
              ? html`<i>${text}</i>`
              : text
      }`,
  );

function formulaRow(app, row, last) {
  const {
    t,
    view: { unit },
  } = app;
  const kind = row.kind ? kindName(t, row.kind) : "";
  return html`<div class="formula">
    <h3>
      <svg class="swatch" aria-hidden="true" width="14" height="14">
        <rect class="segment ${row.component}" width="14" height="14"></rect>
      </svg>
      ${componentName(t, row.component)} ${kind ? html`<span class="formula-kind">${kind}</span>` : nothing}
    </h3>
    <p class="formula-line symbolic">${pieces(symbolic(row.expression))}</p>
    <p class="formula-line numeric">${pieces(numeric(row.expression, row.values))}</p>
    <p class="formula-result">
      = <b>${t("answer.exact", { bytes: exactInteger(row.bytes) })}</b>
      <span class="muted">= ${bytesText(row.bytes, unit)}</span>
    </p>
    ${last ? html`<p class="source">${t("why.source", { source: row.source })}</p>` : nothing}
  </div>`;
}

function formula(app) {
  const {
    t,
    view: { unit },
    answer: { estimate },
  } = app;
  const rows = estimate.formula;
  if (!rows) return html`<p class="muted">${t("why.waiting")}</p>`;
  // A source is named once, under the last of the rows that share it.
  return html`<div class="formulas">
    ${rows.map((row, index) => formulaRow(app, row, row.source !== rows[index + 1]?.source))}
    ${
      rows.length > 1
        ? html`<p class="formula formula-sum">
            <span>${t("why.sum")}</span> <b>${t("answer.exact", { bytes: exactInteger(estimate.total_bytes) })}</b>
            <span class="muted">= ${bytesText(estimate.total_bytes, unit)}</span>
          </p>`
        : nothing
    }
  </div>`;
}

/** "num_kv_heads 8 · head_dim 128": a layer's own numbers under their own names. */
function dimensions(spec) {
  return Object.entries(spec)
    .filter(
      ([name, value]) => typeof value === "number" || (typeof value === "string" && !["kind", "source"].includes(name)),
    )
    .map(
      ([name, value], index) =>
        html`${index ? " · " : ""}<span class="dimension"
            ><var>${name}</var>&nbsp;${typeof value === "number" ? integer(value) : String(value)}</span
          >`,
    );
}

function layerRows(app, layers, note = "") {
  const { t } = app;
  return layers.map(
    ({ count, specs }) =>
      html`<tr>
        <td class="count-cell">${integer(count)} ×</td>
        <td>
          ${
            specs.length === 0
              ? t("why.no_cache")
              : specs.map((spec, index) => html`${index ? html`<br />` : nothing}${kindName(t, spec.kind)}`)
          }${note ? html` <span class="muted">${note}</span>` : nothing}
        </td>
        <td>${specs.map((spec, index) => html`${index ? html`<br />` : nothing}${dimensions(spec)}`)}</td>
      </tr>`,
  );
}

function layers(app) {
  const { t, show } = app;
  if (!show) return html`<p class="muted">${t("why.waiting")}</p>`;
  return html`<div class="scroll" role="region" tabindex="0" aria-labelledby="layers-heading">
    <table class="layers">
      <thead>
        <tr>
          <th scope="col">${t("why.layers_count")}</th>
          <th scope="col">${t("why.layers_kind")}</th>
          <th scope="col">${t("why.layers_dimensions")}</th>
        </tr>
      </thead>
      <tbody>
        ${layerRows(app, show.layers)}${layerRows(app, show.draft_layers ?? [], t("why.draft"))}
      </tbody>
    </table>
  </div>`;
}

function factText(name, value) {
  if (typeof value === "number")
    return /parameters/.test(name) ? `${integer(value)} (${parameterCount(value)})` : integer(value);
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/** Only web addresses become links: a pasted config could name anything. */
const isWeb = (address) => typeof address === "string" && /^https:\/\//.test(address);

function facts(app) {
  const { t, show } = app;
  if (!show) return nothing;
  const address = [show.model_url, show.source_url].find(isWeb);
  const rows = Object.entries(show.facts ?? {}).filter(([, value]) => value !== null && typeof value !== "object");
  return html`<details class="facts" id="facts">
      <summary>${t("why.facts")}</summary>
      <dl class="fact-list">
        ${rows.map(
          ([name, value]) =>
            html`<div>
              <dt><code>${name}</code></dt>
              <dd>${factText(name, value)}</dd>
            </div>`,
        )}
      </dl>
    </details>
    ${
      address
        ? html`<p class="source">
            ${t.parts("why.config_source", {
              link: html`<a href=${address} rel="noopener">${show.hf_id ?? show.name}</a>`,
              origin: isWeb(show.source_url)
                ? html`<a href=${show.source_url} rel="noopener">${t("why.config_origin")}</a>`
                : t("why.config_origin"),
              date: show.retrieved ?? "–",
            })}
          </p>`
        : nothing
    }
    ${show.edited ? html`<p class="source">${t("why.edited", { fields: editsText(app.asked.edits) })}</p>` : nothing}`;
}

/** "num_key_value_heads = 4, head_dim = null" */
const editsText = (edits) =>
  Object.entries(edits)
    .map(([path, value]) => `${path} = ${value === null ? "null" : textOf(value)}`)
    .join(", ");

export function why(app) {
  const { t } = app;
  return html`<section class="why" aria-labelledby="why-heading">
    <h2 id="why-heading">${t("why.heading")}</h2>
    ${formula(app)}
    <h3 id="layers-heading">${t("why.layers")}</h3>
    ${layers(app)} ${facts(app)}
    <h3>${t("why.not_counted")}</h3>
    <ul class="prose">
      <li>${t(app.asked.gpu ? "why.not_weights_planned" : "why.not_weights")}</li>
      <li>${t("why.not_activations")}</li>
      <li>${app.answer.estimate.allocated ? t("why.allocated_counts") : t("why.not_engine")}</li>
    </ul>
  </section>`;
}
