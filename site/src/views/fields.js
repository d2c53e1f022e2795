/** One input with its label, hint and what is wrong with it. */

import { html, nothing } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { fieldOf, kvRoles } from "../fields.js";
import { integer, readerOf } from "../format.js";
import { errorText, formatName, warningText } from "../messages.js";

/** Error and warning lines of one field, with the ids that describe it. */
export function messages(app, field) {
  const {
    t,
    view: { unit },
    scenario,
  } = app;
  const entry = app.entryErrors[field];
  const errors = [];
  if (entry) errors.push(entry.message ? errorText(t, entry, unit) : t(`entry.${entry.code}`, entry.params));
  if (app.error && fieldOf(app.error, app.errorScenario) === field) errors.push(errorText(t, app.error, unit));
  // What is wrong with the model as a whole is in the verdict.
  const refusal = app.planCurrent && field !== "model" ? app.planned.plan?.error : null;
  if (refusal && fieldOf(refusal, app.asked) === field) errors.push(errorText(t, refusal, unit));
  const warnings = app.answer.stale
    ? []
    : app.warnings
        .filter((warning) => fieldOf(warning, scenario) === field)
        .map((warning) => warningText(t, warning, unit));
  return {
    invalid: errors.length > 0,
    describedBy: `${field}-hint ${field}-messages`,
    lines: html`<div id="${field}-messages" class="messages">
      ${errors.map((text) => html`<p class="message error">${text}</p>`)}
      ${warnings.map((text) => html`<p class="message warning">${text}</p>`)}
      ${field === "model" ? suggestions(app) : nothing}
    </div>`,
  };
}

function suggestions(app) {
  if (app.error?.code !== "unknown_model") return nothing;
  return (app.error.params?.suggestions ?? []).map(
    (id) => html`<button type="button" class="link-button" @click=${() => app.actions.setModel(id)}>${id}</button> `,
  );
}

export function countField(app, actions, { field, chips = [], chipLabel = integer, optional = false, hint, placeholder, name }) {
  const { t } = app;
  const { invalid, describedBy, lines } = messages(app, field);
  const typed = app.typed[field];
  const value = app.scenario[field];
  const read = typed === undefined ? null : readerOf(field)(typed);
  const echoKey = `echo.${field}.other`;
  // What was understood, where it isn't what stands there already.
  const echo =
    read !== null && typed.trim() !== integer(read) && typed.trim() !== String(read)
      ? t.has(echoKey)
        ? t.count(`echo.${field}`, read, { count: integer(read) })
        : `= ${integer(read)}`
      : (hint ?? "");
  const shown = typed ?? (value === null ? "" : integer(value));
  return html`<div class="field">
    <label for=${field}>${t(`field.${field}`)}${name ? html` <code>${name}</code>` : nothing}</label>
    <div class="count">
      <input
        id=${field}
        type="text"
        inputmode="numeric"
        autocomplete="off"
        spellcheck="false"
        placeholder=${optional ? (placeholder ?? t(`placeholder.${field}`)) : nothing}
        value=${shown}
        .value=${live(shown)}
        aria-invalid=${String(invalid)}
        aria-describedby=${describedBy}
        @input=${(event) => actions.typeCount(field, event.target.value, optional)}
        @blur=${() => actions.settleCount(field)}
      />
      <span id="${field}-hint" class="hint">${echo}</span>
    </div>
    ${lines}
    ${
      chips.length === 0
        ? nothing
        : html`<div class="chips" role="group" aria-label=${t(`chips.${field}`)}>
            ${chips.map(
              (count) =>
                html`<button
                  type="button"
                  class="chip"
                  aria-pressed=${String(value === count)}
                  @click=${() => actions.chooseCount(field, count)}
                >
                  ${chipLabel(count)}
                </button>`,
            )}
          </div>`
    }
  </div>`;
}

/** Kinds of layers, from the layers themselves or, before they are known, from the catalog. */
export const layerKinds = ({ ownShow: show, model }) =>
  show ? [...new Set(show.layers.flatMap(({ specs }) => specs.map(({ kind }) => kind)))] : (model?.attention ?? []);

/** Formats that can hold what this model keeps; the scenario's own value is always among them. */
function formatOptions(app, field, part) {
  const { t, scenario, options } = app;
  const value = scenario[field];
  const roles = { kv: kvRoles(layerKinds(app)), indexer: ["indexer"], state: ["recurrent"] }[part];
  const known = (options?.formats ?? []).filter(
    (format) =>
      roles.every((role) => format.roles.includes(role)) &&
      (roles.length > 0 || format.roles.some((role) => role === "key" || role === "latent")),
  );
  const own = app.answer.estimate.formats?.[part];
  const automatic = own && value === null ? t("format.auto_is", { format: formatName(t, own) }) : t("format.auto");
  const option = (id, label) => html`<option value=${id} ?selected=${value === id}>${label}</option>`;
  const bits = ({ id, bits_per_element: width }) =>
    width === null ? formatName(t, id) : t("format.with_bits", { format: formatName(t, id), bits: width });
  return html`<option value="" ?selected=${value === null}>${automatic}</option>
    ${known.map((format) => option(format.id, bits(format)))}
    ${value !== null && !known.some((format) => format.id === value) ? option(value, formatName(t, value)) : nothing}`;
}

export function formatField(app, actions, field, part) {
  const { t } = app;
  const { invalid, describedBy, lines } = messages(app, field);
  return html`<div class="field">
    <label for=${field}>${t(`field.${field}`)}</label>
    <select
      id=${field}
      aria-invalid=${String(invalid)}
      aria-describedby=${describedBy}
      .value=${live(app.scenario[field] ?? "")}
      @change=${(event) => actions.choose(field, event.target.value || null)}
    >
      ${formatOptions(app, field, part)}
    </select>
    <span id="${field}-hint" class="hint" hidden></span>
    ${lines}
  </div>`;
}

/** A share of memory, under the engine's own name for it. */
export function fractionField(app, actions, { field, name }) {
  const { t } = app;
  const { invalid, describedBy, lines } = messages(app, field);
  const shown = app.typed[field] ?? app.scenario[field] ?? "";
  return html`<div class="field">
    <label for=${field}>${t(`field.${field}`)}${name ? html` <code>${name}</code>` : nothing}</label>
    <input
      id=${field}
      type="text"
      inputmode="decimal"
      autocomplete="off"
      spellcheck="false"
      placeholder=${t(`placeholder.${field}`)}
      value=${shown}
      .value=${live(String(shown))}
      aria-invalid=${String(invalid)}
      aria-describedby=${describedBy}
      @input=${(event) => actions.typeFraction(field, event.target.value)}
      @blur=${() => actions.settleCount(field)}
    />
    <span id="${field}-hint" class="hint" hidden></span>
    ${lines}
  </div>`;
}

export function checkField(app, actions, field, { checked, onChange }) {
  const { describedBy, lines, invalid } = messages(app, field);
  return html`<div class="field check">
    <label
      ><input
        id=${field}
        type="checkbox"
        ?checked=${checked}
        .checked=${live(checked)}
        aria-invalid=${String(invalid)}
        aria-describedby=${describedBy}
        @change=${(event) => onChange(event.target.checked)}
      />
      ${app.t(`field.${field}`)}</label
    >
    <span id="${field}-hint" class="hint">${app.t(`hint.${field}`)}</span>
    ${lines}
  </div>`;
}
