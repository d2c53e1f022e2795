/** What files gave: a line under the model, what is wrong with them, and who drafts for whom. */

import { html, nothing } from "lit-html";
import { bytesText, exactInteger } from "../format.js";
import { errorText } from "../messages.js";

const bits = (value) => (Math.round(value * 100) / 100).toString();

/** "GGUF", "config.json and weights" */
const kindText = (t, { kind }) => t(`files.kind.${kind}`);

/** Bytes as the unit has them, exact on hover. */
const weightBytes = (app, bytes) =>
  html`<span title=${app.t("answer.exact", { bytes: exactInteger(bytes) })}>${app.t("files.weights", { bytes: bytesText(bytes, app.view.unit) })}</span>`;

/** The facts of one model's files, in the order in which they are looked for. */
function facts(app, info, weights) {
  const {
    t,
    view: { unit },
  } = app;
  const pieces = [];
  if (info) pieces.push(html`${kindText(t, info)} <span class="file-name">${info.name}</span>`);
  if (weights) {
    pieces.push(weightBytes(app, weights.total_bytes));
    if (weights.quantization) pieces.push(weights.quantization.toUpperCase());
    if (weights.bits_per_weight) pieces.push(t("files.bits", { bits: bits(weights.bits_per_weight) }));
  }
  if (info && info.read_bytes < info.total_bytes) {
    pieces.push(t("files.read_share", { read: bytesText(info.read_bytes, unit), total: bytesText(info.total_bytes, unit) }));
  }
  if (!info && weights) pieces.push(t("files.from_link"));
  return pieces.map((piece, index) => html`${index > 0 ? " · " : nothing}${piece}`);
}

function status(app, role) {
  const { t, importing } = app;
  if (importing === null || importing.role !== role) return nothing;
  if (importing.state === "reading") return html`<p class="hint">${t.count("files.reading", importing.count, { count: importing.count })}</p>`;
  return html`<p class="message error">${errorText(t, importing.error, app.view.unit)}</p>`;
}

/** Under the model: what its files gave. */
export function modelFiles(app) {
  const { scenario } = app;
  const info = scenario.model_text === null ? null : (app.imports.get(scenario.model_text) ?? null);
  const shown = info || scenario.weights ? facts(app, info, scenario.weights) : [];
  return html`<div id="model-files">
    ${shown.length > 0 ? html`<p class="hint file-facts">${shown}</p>` : nothing}${status(app, "target")}
  </div>`;
}
