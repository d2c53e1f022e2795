/**
 * A field with a list: an editable combobox (ARIA Authoring Practices), filtered as one types,
 * grouped by family. The model and the GPU are chosen this way.
 *
 * @typedef {object} Kind
 * @property {string} id of the input; its state is `app.combos[id]`
 * @property {(app: object, query: string) => Array<{id: string, name: string, family?: string}>} find
 * @property {(app: object) => string|null} current the id of what is chosen
 * @property {(app: object) => string} shown what the input says while nothing is typed
 * @property {(app: object, entry: object) => string} describe the facts beside an entry
 * @property {(app: object, family: string) => string} familyName
 * @property {string} label, showAll, none keys of its words
 */

import { html, nothing } from "lit-html";
import { guard } from "lit-html/directives/guard.js";
import { live } from "lit-html/directives/live.js";
import { byFamily } from "./search.js";

export const closed = { open: false, query: null, active: -1, groups: [], flat: [] };

const optionId = (kind, index) => `${kind.id}-option-${index}`;

/** The state of the open list for a query; `active` starts on what is chosen or the best hit. */
export function opened(app, kind, query) {
  const found = kind.find(app, query ?? "");
  const groups = byFamily(found);
  const flat = groups.flatMap(({ members }) => members);
  // What sends a request is chosen on purpose, not by a hasty Enter, unless there is nothing else.
  const likeliest = found.find(({ repository }) => !repository) ?? found[0];
  const best = query ? flat.indexOf(likeliest) : flat.findIndex(({ id }) => id === kind.current(app));
  return { open: true, query, active: flat.length > 0 ? Math.max(best, 0) : -1, groups, flat };
}

function list(app, actions, kind) {
  const combo = app.combos[kind.id];
  let index = -1;
  const option = (entry) => {
    index += 1;
    const position = index;
    return html`<li
      role="option"
      id=${optionId(kind, position)}
      data-id=${entry.id}
      aria-selected=${String(position === combo.active)}
      class=${entry.id === kind.current(app) ? "option current" : "option"}
      @click=${() => actions.pick(kind, position)}
    >
      <span class="option-name">${entry.name}</span> <span class="option-facts">${kind.describe(app, entry)}</span>
    </li>`;
  };
  return combo.groups.map(
    ({ family, members }, group) =>
      html`<ul role="group" class="option-group" aria-labelledby="${kind.id}-group-${group}">
        <li role="presentation" class="option-family" id="${kind.id}-group-${group}">
          ${kind.familyName(app, family)}
        </li>
        ${members.map(option)}
      </ul>`,
  );
}

function onKeydown(app, actions, kind, event) {
  const combo = app.combos[kind.id];
  const last = combo.flat.length - 1;
  const move = (position) => {
    event.preventDefault();
    actions.moveIn(kind, Math.min(Math.max(position, 0), last));
  };
  if (event.isComposing) return;
  switch (event.key) {
    case "ArrowDown":
      if (combo.open) move(combo.active + 1);
      else {
        event.preventDefault();
        actions.openList(kind);
      }
      break;
    case "ArrowUp":
      if (combo.open) move(combo.active - 1);
      else {
        event.preventDefault();
        actions.openList(kind);
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
        actions.pick(kind, combo.active);
      }
      break;
    case "Escape":
      if (combo.open) {
        event.preventDefault();
        actions.closeList(kind);
      }
      break;
    default:
  }
}

export function comboField(app, actions, kind, { describedBy, invalid }) {
  const { t } = app;
  const combo = app.combos[kind.id];
  const shown = combo.query ?? kind.shown(app);
  const listId = `${kind.id}-list`;
  return html`<div
    class="combo"
    @focusout=${(event) => {
      if (!event.currentTarget.contains(event.relatedTarget)) actions.closeList(kind);
    }}
  >
    <input
      id=${kind.id}
      type="text"
      role="combobox"
      autocomplete="off"
      autocapitalize="none"
      spellcheck="false"
      aria-autocomplete="list"
      aria-haspopup="listbox"
      aria-controls=${listId}
      aria-expanded=${String(combo.open)}
      aria-invalid=${String(invalid)}
      aria-activedescendant=${combo.open && combo.active >= 0 ? optionId(kind, combo.active) : nothing}
      aria-describedby=${describedBy}
      value=${shown}
      .value=${live(shown)}
      @focus=${(event) => event.target.select()}
      @click=${() => actions.openList(kind)}
      @input=${(event) => actions.typeInto(kind, event.target.value)}
      @keydown=${(event) => onKeydown(app, actions, kind, event)}
    />
    <button
      type="button"
      class="combo-button"
      tabindex="-1"
      aria-label=${t(kind.showAll)}
      aria-controls=${listId}
      aria-expanded=${String(combo.open)}
      @pointerdown=${(event) => event.preventDefault()}
      @click=${() => actions.toggleList(kind)}
    >
      <svg aria-hidden="true" width="12" height="12" viewBox="0 0 12 12"><path d="M2 4l4 4 4-4"></path></svg>
    </button>
    <div
      id=${listId}
      class="combo-list"
      role="listbox"
      tabindex="-1"
      aria-label=${t(kind.label)}
      ?hidden=${!combo.open || combo.flat.length === 0}
      @pointerdown=${(event) => event.preventDefault()}
    >
      ${
        combo.open
          ? guard([combo.groups, combo.active, kind.current(app), t], () => list(app, actions, kind))
          : nothing
      }
    </div>
    ${
      combo.open && combo.flat.length === 0
        ? html`<p class="combo-list combo-empty">${t(kind.none, { query: combo.query ?? "" })}</p>`
        : nothing
    }
  </div>`;
}

/** Keeps the active option in view; called after rendering. */
export function revealActive(app) {
  for (const [id, combo] of Object.entries(app.combos)) {
    if (combo.open) document.getElementById(optionId({ id }, combo.active))?.scrollIntoView({ block: "nearest" });
  }
}
