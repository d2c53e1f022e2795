/**
 * The model field: an editable combobox with a list (ARIA Authoring Practices),
 * filtered as one types, grouped by family.
 */

import { html, nothing } from "lit-html";
import { guard } from "lit-html/directives/guard.js";
import { live } from "lit-html/directives/live.js";
import { parameterCount, shortTokens } from "./format.js";
import { attentionName } from "./messages.js";
import { byFamily } from "./search.js";

export const closed = { open: false, query: null, active: -1, groups: [], flat: [] };

const optionId = (index) => `model-option-${index}`;

/** The state of the open list for a query; `active` starts on `current` or the best hit. */
export function opened(app, query) {
  const found = app.search(query ?? "");
  const groups = byFamily(found);
  const flat = groups.flatMap(({ members }) => members);
  const best = query ? flat.indexOf(found[0]) : flat.findIndex((model) => model.id === app.scenario.model);
  return { open: true, query, active: flat.length > 0 ? Math.max(best, 0) : -1, groups, flat };
}

function describe(t, model) {
  const pieces = [];
  if (model.parameters) pieces.push(parameterCount(model.parameters));
  if (model.attention?.length) pieces.push(attentionName(t, model.attention));
  if (model.max_context) pieces.push(shortTokens(model.max_context));
  return pieces.join(" · ");
}

function list(app, actions) {
  const { t, combo } = app;
  let index = -1;
  const option = (model) => {
    index += 1;
    const position = index;
    return html`<li
      role="option"
      id=${optionId(position)}
      data-model=${model.id}
      aria-selected=${String(position === combo.active)}
      class=${model.id === app.scenario.model ? "option current" : "option"}
      @click=${() => actions.pickModel(position)}
    >
      <span class="option-name">${model.name}</span> <span class="option-facts">${describe(t, model)}</span>
    </li>`;
  };
  return combo.groups.map(
    ({ family, members }, group) =>
      html`<ul role="group" class="option-group" aria-labelledby="model-group-${group}">
        <li role="presentation" class="option-family" id="model-group-${group}">
          ${family || t("model.other_family")}
        </li>
        ${members.map(option)}
      </ul>`,
  );
}

function onKeydown(app, actions, event) {
  const { combo } = app;
  const last = combo.flat.length - 1;
  const move = (position) => {
    event.preventDefault();
    actions.moveModel(Math.min(Math.max(position, 0), last));
  };
  if (event.isComposing) return;
  switch (event.key) {
    case "ArrowDown":
      if (combo.open) move(combo.active + 1);
      else {
        event.preventDefault();
        actions.openModels();
      }
      break;
    case "ArrowUp":
      if (combo.open) move(combo.active - 1);
      else {
        event.preventDefault();
        actions.openModels();
      }
      break;
    case "PageDown":
      if (combo.open) move(combo.active + 8);
      break;
    case "PageUp":
      if (combo.open) move(combo.active - 8);
      break;
    case "Enter":
      if (combo.open && combo.active >= 0) {
        event.preventDefault();
        actions.pickModel(combo.active);
      }
      break;
    case "Escape":
      if (combo.open) {
        event.preventDefault();
        actions.closeModels();
      }
      break;
    default:
  }
}

export function modelField(app, actions, { describedBy, invalid }) {
  const { t, combo } = app;
  const shown = combo.query ?? app.modelName;
  return html`<div
    class="combo"
    @focusout=${(event) => {
      if (!event.currentTarget.contains(event.relatedTarget)) actions.closeModels();
    }}
  >
    <input
      id="model"
      type="text"
      role="combobox"
      autocomplete="off"
      autocapitalize="none"
      spellcheck="false"
      aria-autocomplete="list"
      aria-haspopup="listbox"
      aria-controls="model-list"
      aria-expanded=${String(combo.open)}
      aria-invalid=${String(invalid)}
      aria-activedescendant=${combo.open && combo.active >= 0 ? optionId(combo.active) : nothing}
      aria-describedby=${describedBy}
      value=${shown}
      .value=${live(shown)}
      @focus=${(event) => event.target.select()}
      @click=${() => actions.openModels()}
      @input=${(event) => actions.typeModel(event.target.value)}
      @keydown=${(event) => onKeydown(app, actions, event)}
    />
    <button
      type="button"
      class="combo-button"
      tabindex="-1"
      aria-label=${t("model.show_all")}
      aria-controls="model-list"
      aria-expanded=${String(combo.open)}
      @pointerdown=${(event) => event.preventDefault()}
      @click=${() => actions.toggleModels()}
    >
      <svg aria-hidden="true" width="12" height="12" viewBox="0 0 12 12"><path d="M2 4l4 4 4-4"></path></svg>
    </button>
    <div
      id="model-list"
      class="combo-list"
      role="listbox"
      tabindex="-1"
      aria-label=${t("model.label")}
      ?hidden=${!combo.open || combo.flat.length === 0}
      @pointerdown=${(event) => event.preventDefault()}
    >
      ${combo.open ? guard([combo.groups, combo.active, app.scenario.model, t], () => list(app, actions)) : nothing}
    </div>
    ${
      combo.open && combo.flat.length === 0
        ? html`<p class="combo-list combo-empty">${t("model.none", { query: combo.query ?? "" })}</p>`
        : nothing
    }
  </div>`;
}

/** Keeps the active option in view; called after rendering. */
export function revealActive(app) {
  if (!app.combo.open) return;
  document.getElementById(optionId(app.combo.active))?.scrollIntoView({ block: "nearest" });
}
