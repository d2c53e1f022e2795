/** The inputs of panels: texts, choices, and a file. */

import { html, nothing } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { bytesText, integer } from "../format.js";
import { errorText } from "../messages.js";
import { PANEL_INPUTS } from "../panelinputs.js";
import { drops } from "./drops.js";

const NAMED_BY = { invalid_argument: "argument", missing_field: "field", unsupported_option: "option" };

/** The parameter of the api that an error is about, which may be one of the panel's own. */
const argumentOf = (error) => error?.params?.[NAMED_BY[error.code]] ?? null;

/** Whether an error stands beside one of a panel's own fields. */
export function isAtField({ panels }, id) {
  const name = argumentOf(panels[id].error);
  return name !== null && Object.hasOwn(PANEL_INPUTS[id] ?? {}, name);
}

/** Tokens for reading: "6909/39551" -> "6,909/39,551". */
export const grouped = (value) =>
  String(value)
    .split("/")
    .map((part) => (/^\d+$/.test(part) ? integer(Number(part)) : part))
    .join("/");

function messagesOf(app, { id, name }) {
  const {
    t,
    view: { unit },
  } = app;
  const entry = app.panelEntries[`${id}.${name}`];
  const refused = app.panels[id].error;
  const lines = [];
  if (entry?.error) lines.push(t(`entry.${entry.error.code}`));
  else if (argumentOf(refused) === name) {
    const missing = refused.code === "missing_field";
    lines.push(missing ? t("inputs.missing", { field: t(`${id}.field_${name}`) }) : errorText(t, refused, unit));
  }
  return lines;
}

/**
 * A field for text. Its words are `ID.field_NAME` and, where there is one, `ID.hint_NAME`.
 * @param {object} options
 * @param {string} options.id of the panel
 * @param {string} options.name of the input in `PANEL_INPUTS`
 * @param {string} [options.placeholder] what holds while nothing is typed
 */
export function textInput(app, actions, { id, name, placeholder }) {
  const { t } = app;
  const key = `${id}-${name}`;
  const entry = app.panelEntries[`${id}.${name}`];
  const value = app.given[id][name] ?? null;
  const written = PANEL_INPUTS[id][name].plain ? String : grouped;
  const shown = entry?.text ?? (value === null ? "" : written(value));
  const lines = messagesOf(app, { id, name });
  return html`<div class="field">
    <label for=${key}>${t(`${id}.field_${name}`)}</label>
    <input
      id=${key}
      type="text"
      autocomplete="off"
      spellcheck="false"
      placeholder=${placeholder ?? nothing}
      .value=${live(shown)}
      aria-invalid=${String(lines.length > 0)}
      aria-describedby="${key}-hint ${key}-messages"
      @input=${(event) => actions.typePanelInput(id, name, event.target.value)}
      @blur=${() => actions.settlePanelInput(id, name)}
    />
    <span id="${key}-hint" class="hint">${t.has(`${id}.hint_${name}`) ? t(`${id}.hint_${name}`) : nothing}</span>
    <div id="${key}-messages" class="messages">${lines.map((line) => html`<p class="message error">${line}</p>`)}</div>
  </div>`;
}

/**
 * A field with choices.
 * @param {object} options
 * @param {Array<{value: string|null, label: string}>} options.choices null: what holds while nothing is chosen
 */
export function choiceInput(app, actions, { id, name, choices }) {
  const { t } = app;
  const key = `${id}-${name}`;
  const chosen = app.given[id][name] ?? null;
  const lines = messagesOf(app, { id, name });
  return html`<div class="field">
    <label for=${key}>${t(`${id}.field_${name}`)}</label>
    <select
      id=${key}
      aria-invalid=${String(lines.length > 0)}
      aria-describedby="${key}-hint ${key}-messages"
      .value=${live(chosen === null ? "" : String(chosen))}
      @change=${(event) => actions.choosePanelInput(id, name, event.target.value || null)}
    >
      ${choices.map(
        ({ value, label }) =>
          html`<option value=${value ?? ""} ?selected=${value === chosen}>${label}</option>`,
      )}
    </select>
    <span id="${key}-hint" class="hint">${t.has(`${id}.hint_${name}`) ? t(`${id}.hint_${name}`) : nothing}</span>
    <div id="${key}-messages" class="messages">${lines.map((line) => html`<p class="message error">${line}</p>`)}</div>
  </div>`;
}

/**
 * The place for a file: dropped, or chosen. Words: `ID.file`, `ID.file_hint`.
 * @param {object} options
 * @param {string} options.accept as of an `<input type="file">`
 */
export function fileInput(app, actions, { id, accept }) {
  const {
    t,
    view: { unit },
  } = app;
  const file = app.panelFiles[id] ?? null;
  const refused = app.panelRefused[id] ?? null;
  const { over, leave, drop } = drops(actions, {
    mark: (over) => actions.dragOverPanel(over ? id : null),
    take: (file) => actions.givePanelFile(id, file),
  });
  return html`<div
    class="panel-file ${app.panelDragged === id ? "dragged" : ""}"
    id="${id}-drop"
    @dragover=${over}
    @dragleave=${leave}
    @drop=${drop}
  >
    <label class="button" for="${id}-file">${t(`${id}.file`)}</label>
    <input
      id="${id}-file"
      class="visually-hidden"
      type="file"
      accept=${accept}
      aria-invalid=${String(refused !== null)}
      aria-describedby="${id}-file-hint ${id}-file-messages"
      @change=${(event) => {
        const [chosen] = event.target.files;
        if (chosen) actions.givePanelFile(id, chosen);
        // The same file chosen again is read again.
        event.target.value = "";
      }}
    />
    <span id="${id}-file-hint" class="hint">
      ${
        file === null
          ? t(`${id}.file_hint`)
          : html`<span class="file-name">${file.name}</span> · ${bytesText(file.size, unit)} · ${t("panel.file_stays")}
              <button type="button" class="link-button" id="${id}-file-remove" @click=${() => actions.givePanelFile(id, null)}>
                ${t("panel.file_remove")}
              </button>`
      }
    </span>
    <div id="${id}-file-messages" class="messages">
      ${refused === null ? nothing : html`<p class="message error">${errorText(t, refused, unit)}</p>`}
    </div>
  </div>`;
}

/**
 * How far a long question is, with the button that stops it; how it was stopped, with the one that asks again.
 * Where it has phases, `ID.phase_NAME` is said before their share.
 */
export function progressLine(app, actions, id) {
  const { t } = app;
  const { partial, stopped, running } = app.panels[id];
  if (stopped)
    return html`<p class="panel-progress">
      ${t("panel.stopped")}
      <button type="button" class="link-button" id="${id}-again" @click=${() => actions.retryPanel(id)}>${t("panel.again")}</button>
    </p>`;
  if (!running) return nothing;
  const share = Math.round(100 * (partial?.progress ?? 0));
  return html`<p class="panel-progress">
    <progress max="100" value=${share} aria-label=${t("panel.progress")}></progress>
    <span>${partial?.phase ? t(`${id}.phase_${partial.phase}`) : nothing} ${t("panel.share", { share })}</span>
    <button type="button" class="button" id="${id}-stop" @click=${() => actions.stopPanel(id)}>${t("panel.stop")}</button>
  </p>`;
}
