/** What became of a look-up on the Hugging Face Hub, below the model's field. */

import { html, nothing } from "lit-html";
import { lookUpOf } from "../hub.js";
import { errorText, warningText } from "../messages.js";

const away = (url, text) =>
  html`<a href=${url} target="_blank" rel="noopener noreferrer" referrerpolicy="no-referrer">${text}</a>`;

const button = (text, onClick) =>
  html`<button type="button" class="link-button" @click=${onClick}>${text}</button>`;

function asking({ t }, actions, { query }) {
  return html`<p>${t("hub.asking", { repo: query })}</p>
    <p class="hub-actions">${button(t("hub.cancel"), actions.leaveHub)}</p>`;
}

function failed({ t, view, modelName }, actions, { query, error }) {
  const url = error.params?.url;
  return html`<p class="message error">${errorText(t, error, view.unit)}</p>
    <p class="hub-actions">
      ${url ? away(url, t("hub.open")) : nothing} ${button(t("hub.paste"), actions.showPaste)}
      ${button(t("hub.again"), () => actions.lookUp(query))}
      ${button(t("hub.back", { model: modelName }), actions.leaveHub)}
    </p>`;
}

function found({ t, view }, { origin, warnings, at }) {
  const time = new Intl.DateTimeFormat(t.lang, { timeStyle: "short" }).format(at);
  return html`<p title=${origin.commit ?? nothing}>
      ${t.parts("hub.from", { repo: away(origin.page_url, origin.name), time })}
    </p>
    ${warnings.map((warning) => html`<p class="message warning">${warningText(t, warning, view.unit)}</p>`)}`;
}

/** A link only says what its config was called. */
function linked({ t, scenario }, actions) {
  return html`<p>${t("hub.linked", { repo: scenario.hub })}</p>
    <p class="hub-actions">${button(t("hub.now"), () => actions.lookUp(scenario.hub))}</p>`;
}

const STATES = { asking, failed, found: (app, _, hub) => found(app, hub) };

/** Always there, so that the field it describes can name it. */
export function hubStatus(app, actions) {
  const hub = lookUpOf(app);
  const content = hub ? STATES[hub.state](app, actions, hub) : app.scenario.hub ? linked(app, actions) : null;
  return html`<div id="model-hub" class="hub" ?hidden=${content === null}>${content ?? nothing}</div>`;
}
