/** The fields of the model that matter, each to be changed by hand and to be had back. */

import { html, nothing } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { errorText } from "../messages.js";
import { currentOf, entryOf, isAbsent, shownRows, textOf } from "../values.js";
import { messages } from "./fields.js";

const LONG = 24;
const clipped = (text) => (text.length > LONG ? `${text.slice(0, LONG - 1)}…` : text);

/** "text_config.head_dim", breakable between its words, its container softer than its name. */
function fieldName(path) {
  const cut = path.lastIndexOf(".") + 1;
  const words = (text) => text.split(/(?<=[._])/).map((word) => html`${word}<wbr />`);
  return html`<span class="field-place">${words(path.slice(0, cut))}</span>${words(path.slice(cut))}`;
}

function control(app, actions, row, { text, describedBy, invalid }) {
  const { t } = app;
  const id = entryOf(row.path);
  const type = (event) => actions.typeEdit(row.path, event.target.value);
  const settle = () => actions.settleEdit(row.path);
  const hint = row.assumed === null ? t("fields.not_said") : t("fields.assumed", { value: textOf(row.assumed) });
  if (row.kind === "flag" && ["", "true", "false"].includes(text)) {
    return html`<select
      id=${id}
      aria-invalid=${String(invalid)}
      aria-describedby=${describedBy}
      .value=${live(text)}
      @change=${type}
    >
      <option value="" ?selected=${text === ""}>${hint}</option>
      ${["true", "false"].map((value) => html`<option value=${value} ?selected=${text === value}>${value}</option>`)}
    </select>`;
  }
  if (row.kind === "list" || row.kind === "object") {
    return html`<textarea
      id=${id}
      rows="2"
      spellcheck="false"
      autocapitalize="none"
      placeholder=${hint}
      aria-invalid=${String(invalid)}
      aria-describedby=${describedBy}
      .value=${live(text)}
      @input=${type}
      @blur=${settle}
    ></textarea>`;
  }
  return html`<input
    id=${id}
    type="text"
    class=${row.kind === "integer" || row.kind === "number" ? "numeric" : ""}
    inputmode=${row.kind === "integer" ? "numeric" : nothing}
    autocomplete="off"
    autocapitalize="none"
    spellcheck="false"
    placeholder=${hint}
    aria-invalid=${String(invalid)}
    aria-describedby=${describedBy}
    .value=${live(text)}
    @input=${type}
    @blur=${settle}
  />`;
}

/** What the model's own description says, and the way back to it. */
function original(app, actions, row) {
  const { t } = app;
  const said = !isAbsent(row.original);
  const text = textOf(row.original);
  const known = app.fields.of !== null;
  return html`<p class="field-was">
    ${known ? html`<span>${said ? t("fields.was", { value: clipped(text) }) : t("fields.was_absent")}</span>` : nothing}
    <button
      type="button"
      class="link-button"
      data-revert=${row.path}
      aria-label=${said ? t("fields.revert_label", { field: row.path, value: text }) : t("fields.remove_label", { field: row.path })}
      @click=${() => actions.revertEdit(row.path)}
    >
      ${said ? t("fields.revert") : t("fields.remove")}
    </button>
  </p>`;
}

function fieldRow(app, actions, row) {
  const id = entryOf(row.path);
  const { text, changed } = currentOf(app, row);
  const { invalid, lines } = messages(app, id);
  const wide = row.kind === "list" || row.kind === "object" ? " wide" : "";
  return html`<li class="model-field${wide}${changed ? " changed" : ""}">
    <label for=${id}><code>${fieldName(row.path)}</code></label>
    ${control(app, actions, row, { text, describedBy: `${id}-messages`, invalid })}
    ${changed ? original(app, actions, row) : nothing} ${lines}
  </li>`;
}

function addition(app, actions) {
  const { t, adding, fields } = app;
  const onEnter = (event) => {
    if (event.key === "Enter") actions.addField();
  };
  const input = (id, key, label) =>
    html`<input
      id=${id}
      type="text"
      list=${key === "name" ? "addable" : nothing}
      autocomplete="off"
      autocapitalize="none"
      spellcheck="false"
      aria-label=${label}
      placeholder=${label}
      .value=${live(adding[key])}
      @input=${(event) => actions.typeNew({ [key]: event.target.value })}
      @keydown=${onEnter}
    />`;
  return html`<div class="field-addition" role="group" aria-label=${t("fields.add_label")}>
    ${input("add-name", "name", t("fields.add_name"))} ${input("add-value", "value", t("fields.add_value"))}
    <button type="button" class="button" id="add-field" @click=${actions.addField}>${t("fields.add")}</button>
    <datalist id="addable">${fields.addable.map((path) => html`<option value=${path}></option>`)}</datalist>
  </div>`;
}

function content(app, actions, rows, changed) {
  const { t, fields } = app;
  if (fields.error) return html`<p class="message error">${errorText(t, fields.error, app.view.unit)}</p>`;
  return html`<p class="hint">${t(fields.of === null ? "fields.waiting" : "fields.hint")}</p>
    <ul class="model-field-list">
      ${rows.map((row) => fieldRow(app, actions, row))}
    </ul>
    ${addition(app, actions)}
    ${
      changed > 0
        ? html`<p class="fields-foot">
            <button type="button" class="link-button" id="revert-all" @click=${actions.revertAll}>
              ${t("fields.revert_all")}
            </button>
          </p>`
        : nothing
    }`;
}

export function modelFields(app, actions) {
  const { t } = app;
  const rows = shownRows(app);
  const changed = rows.filter((row) => currentOf(app, row).changed).length;
  const wrong = Object.keys(app.entryErrors).some((field) => field.startsWith("edit-"));
  const note = wrong ? t("fields.wrong") : changed > 0 ? t.count("fields.changed", changed, { count: changed }) : "";
  return html`<details
    class="paste model-fields"
    id="fields"
    ?open=${app.open.fields}
    @toggle=${(event) => actions.toggleFields(event.target.open)}
  >
    <summary>${t("fields.summary")}${note ? html` <span class="summary-note">${note}</span>` : nothing}</summary>
    ${app.open.fields ? content(app, actions, rows, changed) : nothing}
  </details>`;
}
