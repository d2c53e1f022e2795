/** Head and foot of the page. */

import { html, nothing } from "lit-html";
import { live } from "lit-html/directives/live.js";

import { homeAddress } from "../home.js";

const LANGUAGES = [
  ["en", "English"],
  ["ko", "한국어"],
];

function themeSwitch(app, actions) {
  const { t } = app;
  return html`<div class="segmented" role="group" aria-label=${t("theme.label")}>
    ${["auto", "light", "dark"].map(
      (theme) =>
        html`<button
          type="button"
          class="segment-button"
          aria-pressed=${String((app.view.theme ?? "auto") === theme)}
          @click=${() => actions.setTheme(theme)}
        >
          ${t(`theme.${theme}`)}
        </button>`,
    )}
  </div>`;
}

export function header(app, actions) {
  const { t } = app;
  return html`<header class="top">
    <div class="brand">
      <h1><span class="mark">kvcore</span> ${t("page.title")}</h1>
      <p class="privacy">${t("page.privacy")}</p>
    </div>
    <div class="top-controls">
      <label class="visually-hidden" for="language">${t("language.label")}</label>
      <select
        id="language"
        class="quiet"
        .value=${live(t.lang)}
        @change=${(event) => actions.setLanguage(event.target.value)}
      >
        ${LANGUAGES.map(([code, name]) => html`<option value=${code} lang=${code} ?selected=${t.lang === code}>${name}</option>`)}
      </select>
      ${themeSwitch(app, actions)}
    </div>
  </header>`;
}

export function footer(app) {
  const { t, data } = app;
  return html`<footer class="foot">
    ${otherPages(app)}
    <p>
      ${t("foot.version", {
        version: data.version,
        build: data.build_hash.slice(0, 12),
        date: data.catalog_date,
        count: data.models.length,
      })}${app.saved ? html` · <strong>${t("foot.saved")}</strong>` : nothing}
    </p>
    <p>${t("foot.units")}</p>
    <p class="print-only permalink">${app.link}</p>
  </footer>`;
}

/** Links to the other pages; none in a copy that does not know where they are. */
function otherPages({ t }) {
  const home = homeAddress();
  if (home === null) return nothing;
  return html`<p class="foot-links">
    <a href=${`${home}models/index.html`} hreflang="en">${t("foot.models")}</a>
    <a href=${`${home}evidence.html`} hreflang="en">${t("foot.evidence")}</a>
  </p>`;
}

/** On a phone: the total, once the answer has scrolled away. */
export function stickyBar(app, actions, { total, perToken, model, verdict }) {
  const { t } = app;
  return html`<button
    type="button"
    class="sticky"
    id="sticky"
    ?hidden=${!app.answerHidden}
    @click=${actions.showAnswer}
  >
    ${verdict ? html`<strong>${verdict}</strong>` : nothing}<span class="sticky-model">${model}</span><strong>${total}</strong
    ><span>${t("sticky.per_token", { bytes: perToken })}</span>
  </button>`;
}
