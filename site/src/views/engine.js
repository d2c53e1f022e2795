/** The engine whose allocation is shown, with its own settings under their own names. */

import { html, nothing } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { engineName } from "../messages.js";
import { messages } from "./fields.js";

/** What stands for "not said": the engine's default, by value where it has one. */
function unsaid(t, fallback) {
  if (fallback === null || fallback === undefined) return t("option.default_own");
  return t("option.default", {
    value: typeof fallback === "boolean" ? t(fallback ? "option.on" : "option.off") : fallback,
  });
}

/** The values a select offers for a setting, with their labels; none where it is typed. */
function choicesOf(t, { type, choices }) {
  if (type === "flag") {
    return [
      ["true", t("option.on")],
      ["false", t("option.off")],
    ];
  }
  return (choices ?? []).map((choice) => [String(choice), choice]);
}

function engineOption(app, actions, option) {
  const { t, scenario } = app;
  const { name, type, default: fallback } = option;
  const id = `option-${name}`;
  const value = scenario.engine_options[name] ?? "";
  const set = (text) => actions.setEngineOption(name, text.trim() || null);
  const { invalid, lines } = messages(app, id);
  const choices = choicesOf(t, option);
  const control =
    choices.length > 0
      ? html`<select
          id=${id}
          aria-invalid=${String(invalid)}
          aria-describedby="${id}-messages"
          .value=${live(value)}
          @change=${(event) => set(event.target.value)}
        >
          <option value="" ?selected=${value === ""}>${unsaid(t, fallback)}</option>
          ${choices.map(([id, label]) => html`<option value=${id} ?selected=${value === id}>${label}</option>`)}
        </select>`
      : html`<input
          id=${id}
          type="text"
          autocomplete="off"
          spellcheck="false"
          inputmode=${type === "integer" ? "numeric" : nothing}
          placeholder=${unsaid(t, fallback)}
          aria-invalid=${String(invalid)}
          aria-describedby="${id}-messages"
          value=${value}
          .value=${live(value)}
          @input=${(event) => set(event.target.value)}
        />`;
  return html`<div class="field">
    <label for=${id}><code>${name}</code></label
    >${control}${lines}
  </div>`;
}

export function engineFields(app, actions) {
  const { t, scenario, options } = app;
  const engines = options?.engines ?? [];
  const engine = engines.find(({ id }) => id === scenario.engine);
  const { invalid, describedBy, lines } = messages(app, "engine");
  const listed = engines.some(({ id }) => id === scenario.engine) || scenario.engine === null;
  return html`<div class="field">
      <label for="engine">${t("field.engine")}</label>
      <select
        id="engine"
        aria-invalid=${String(invalid)}
        aria-describedby=${describedBy}
        .value=${live(scenario.engine ?? "")}
        @change=${(event) => actions.chooseEngine(event.target.value || null)}
      >
        <option value="" ?selected=${scenario.engine === null}>${t("engine.none")}</option>
        ${engines.map(({ id }) => html`<option value=${id} ?selected=${scenario.engine === id}>${engineName(id)}</option>`)}
        ${listed ? nothing : html`<option value=${scenario.engine} selected>${scenario.engine}</option>`}
      </select>
      <span id="engine-hint" class="hint">${t("hint.engine")}</span>${lines}
    </div>
    ${engine && engine.versions.length > 1 ? versionField(app, actions, engine) : nothing}
    ${engine && engine.options.length > 0 ? settings(app, actions, engine) : nothing}`;
}

function versionField(app, actions, { versions }) {
  const { t, scenario } = app;
  const value = scenario.engine_version;
  const offered = value === null || versions.includes(value) ? versions : [value, ...versions];
  return html`<div class="field">
    <label for="engine_version">${t("field.engine_version")}</label>
    <select
      id="engine_version"
      .value=${live(value ?? "")}
      @change=${(event) => actions.choose("engine_version", event.target.value || null)}
    >
      <option value="" ?selected=${value === null}>${t("engine.latest", { version: versions[0] })}</option>
      ${offered.map((version) => html`<option value=${version} ?selected=${value === version}>${version}</option>`)}
    </select>
  </div>`;
}

function settings(app, actions, engine) {
  const changed = Object.keys(app.scenario.engine_options).length > 0;
  return html`<details class="engine-options" ?open=${changed}>
    <summary>${app.t("engine.options", { engine: engineName(engine.id), count: engine.options.length })}</summary>
    <div class="engine-fields">${engine.options.map((option) => engineOption(app, actions, option))}</div>
  </details>`;
}
