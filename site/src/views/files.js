/** What files gave: a line under the model, what is wrong with them, and who drafts for whom. */

import { html, nothing } from "lit-html";
import { comboField } from "../combobox.js";
import { bytesText, exactInteger } from "../format.js";
import { DRAFT } from "../kinds.js";
import { errorText, warningText } from "../messages.js";
import { messages } from "./fields.js";

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
  if (weights && weights.total_bytes > 0) {
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

export function importStatus(app, role) {
  const { t, importing } = app;
  if (importing === null || importing.role !== role) return nothing;
  if (importing.state === "empty") return html`<p class="message error">${t("files.empty")}</p>`;
  if (importing.state === "reading") return html`<p class="hint">${t.count("files.reading", importing.count, { count: importing.count })}</p>`;
  return html`<p class="message error">${errorText(t, importing.error, app.view.unit)}</p>`;
}

/** "Model: Llama 3.1 70B · Draft: Llama 3.2 1B", the other way round with a click. */
function pair(app, actions) {
  const { t, draftName, scenario } = app;
  if (draftName === null) return nothing;
  return html`<p class="hint draft-pair">
    <span>${t("draft.pair", { model: app.modelName, draft: draftName })}</span>
    <button type="button" class="link-button" @click=${actions.swapDraft}>${t("draft.swap")}</button>
    <button type="button" class="link-button" @click=${() => actions.chooseDraft(null)}>${t("draft.remove")}</button>
    ${scenario.gpu ? nothing : html`<span>${t("draft.needs_gpu")}</span>`}
  </p>`;
}

/** The field for the model that drafts: of the catalog, or of files. */
export function draftField(app, actions) {
  const { t } = app;
  const { invalid, describedBy, lines } = messages(app, DRAFT.id);
  const info = app.imports.get(app.scenario.draft_model_text);
  const { draft_weights: weights } = app.scenario;
  return html`<div class="field">
    <label for=${DRAFT.id}>${t("field.draft_model")}</label>
    ${comboField(app, actions, DRAFT, { invalid, describedBy })}
    <p id="draft_model-hint" class="hint">
      ${info || weights ? facts(app, info, weights) : t("hint.draft_model")}
    </p>
    ${importStatus(app, "draft")}${lines}
    <div class="paste-actions">${fileButton("draft-file", t("draft.choose"), (files) => actions.importFiles(files, { role: "draft" }))}</div>
  </div>`;
}

/** A button that asks for files; `folder` for all those in one. */
export const fileButton = (id, label, take, { folder = false } = {}) =>
  html`<label class="button file-button"
    >${label}<input
      id=${id}
      type="file"
      multiple
      ?webkitdirectory=${folder}
      class="visually-hidden"
      @change=${(event) => {
        take([...event.target.files]);
        event.target.value = "";
      }}
  /></label>`;

/** What was noticed of the files themselves; what the answer warns of too is said there. */
function remarks(app, info) {
  const said = new Set(app.warnings.map(({ code }) => code));
  const own = (info?.warnings ?? []).filter(({ code }) => !said.has(code));
  return own.map((warning) => html`<p class="message warning">${warningText(app.t, warning, app.view.unit)}</p>`);
}

/** Under the model: what its files gave. */
export function modelFiles(app, actions) {
  const { scenario } = app;
  const info = scenario.model_text === null ? null : (app.imports.get(scenario.model_text) ?? null);
  const shown = info || scenario.weights ? facts(app, info, scenario.weights) : [];
  return html`<div id="model-files">
    ${shown.length > 0 ? html`<p class="hint file-facts">${shown}</p>` : nothing}${remarks(app, info)}${importStatus(app, "target")}${pair(app, actions)}
  </div>`;
}
