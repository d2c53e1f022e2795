/** What the reader should know and no input is to blame for. */

import { html, nothing } from "lit-html";
import { shownFieldOf } from "../fields.js";
import { clip, errorText, warningText } from "../messages.js";

function failure(app, actions) {
  const { t, engine } = app;
  if (engine.state !== "failed") return nothing;
  return html`<div class="notice failure" role="alert">
    <p><strong>${t("engine.failed")}</strong> ${t("engine.failed_hint")}</p>
    <details>
      <summary>${t("engine.details")}</summary>
      <pre tabindex="0">${engine.detail ?? t("engine.no_details")}</pre>
    </details>
    <p><button type="button" class="button" @click=${actions.retryEngine}>${t("engine.retry")}</button></p>
  </div>`;
}

function linkProblem(app, { code, params }) {
  const shown = Object.entries(params).map(([name, value]) => [name, typeof value === "string" ? clip(value) : value]);
  return html`<li class="notice warning">
    ${app.t(`notice.${code}`, Object.fromEntries(shown))}
    ${(params.suggestions ?? []).map(
      (model) =>
        html` <button
          type="button"
          class="link-button"
          data-model=${model.id}
          @click=${() => app.actions.setModel(model.id)}
        >
          ${model.name}
        </button>`,
    )}
  </li>`;
}

/** @param {boolean} all also those that are otherwise shown beside their input */
export function notices(app, actions, { all = false } = {}) {
  const {
    t,
    view: { unit },
    scenario,
  } = app;
  const elsewhere = (message, asked) => !all && shownFieldOf(app, message, asked) !== null;
  const warnings = app.warnings.filter((warning) => !elsewhere(warning, scenario));
  const errors = app.error && !elsewhere(app.error, app.errorScenario) ? [app.error] : [];
  const items = [
    ...errors.map((error) => html`<li class="notice error">${errorText(t, error, unit)}</li>`),
    ...app.problems.map((problem) => linkProblem(app, problem)),
    ...warnings.map((warning) => html`<li class="notice warning">${warningText(t, warning, unit)}</li>`),
  ];
  if (items.length === 0) return failure(app, actions);
  return html`${failure(app, actions)}
    <div class="notices">
      <ul aria-label=${t("notices.label")}>
        ${items}
      </ul>
      ${app.problems.length > 0 ? html`<button type="button" class="link-button" @click=${actions.dismissProblems}>${t("notice.dismiss")}</button>` : nothing}
    </div>`;
}
