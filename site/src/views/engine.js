/** The engine whose allocation is shown, with its own settings under their own names. */

import { html, nothing } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { messages } from "./fields.js";

function engineOption(app, actions, { name, type, choices, default: fallback }) {
  const { t, scenario } = app;
  const value = scenario.engine_options[name];
  const id = `option-${name}`;
  const set = (next) => actions.setEngineOption(name, next);
  const label = html`<label for=${id}><code>${name}</code></label>`;
  if (type === "flag") {
    const standard = t("option.default", {
      value: fallback === true ? t("option.on") : fallback === false ? t("option.off") : "–",
    });
    const shown = value === undefined ? "" : String(value);
    return html`<div class="field">
      ${label}<select
        id=${id}
        .value=${live(shown)}
        @change=${(event) => set(event.target.value === "" ? null : event.target.value)}
      >
        <option value="" ?selected=${shown === ""}>${standard}</option>
        <option value="true" ?selected=${shown === "true"}>${t("option.on")}</option>
        <option value="false" ?selected=${shown === "false"}>${t("option.off")}</option>
      </select>
    </div>`;
  }
  if (choices?.length) {
    return html`<div class="field">
      ${label}<select id=${id} .value=${live(value ?? "")} @change=${(event) => set(event.target.value || null)}>
        <option value="" ?selected=${value === undefined}>${t("option.default", { value: fallback ?? "–" })}</option>
        ${choices.map((choice) => html`<option value=${choice} ?selected=${value === String(choice)}>${choice}</option>`)}
      </select>
    </div>`;
  }
  return html`<div class="field">
    ${label}<input
      id=${id}
      type="text"
      autocomplete="off"
      spellcheck="false"
      inputmode=${type === "integer" ? "numeric" : nothing}
      placeholder=${fallback === null || fallback === undefined ? "" : String(fallback)}
      value=${value ?? ""}
      .value=${live(value ?? "")}
      @input=${(event) => set(event.target.value.trim() || null)}
    />
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
        ${engines.map(({ id }) => html`<option value=${id} ?selected=${scenario.engine === id}>${id}</option>`)}
        ${listed ? nothing : html`<option value=${scenario.engine} selected>${scenario.engine}</option>`}
      </select>
      <span id="engine-hint" class="hint">${t("hint.engine")}</span>${lines}
    </div>
    ${
      engine && engine.versions.length > 1
        ? html`<div class="field">
            <label for="engine_version">${t("field.engine_version")}</label>
            <select
              id="engine_version"
              .value=${live(scenario.engine_version ?? "")}
              @change=${(event) => actions.choose("engine_version", event.target.value || null)}
            >
              <option value="" ?selected=${scenario.engine_version === null}>${t("engine.latest")}</option>
              ${engine.versions.map((version) => html`<option value=${version} ?selected=${scenario.engine_version === version}>${version}</option>`)}
            </select>
          </div>`
        : nothing
    }
    ${
      engine && engine.options.length > 0
        ? html`<fieldset class="engine-options">
            <legend>${t("engine.options", { engine: engine.id })}</legend>
            ${engine.options.map((option) => engineOption(app, actions, option))}
            ${messages(app, "engine_options").lines}
          </fieldset>`
        : nothing
    }`;
}
