/** What was set last by a panel, what came of it, and the way back. */

import { html, nothing } from "lit-html";
import { explanation, verdictKind } from "./verdict.js";

/** @param {string} id of the panel in which it is shown */
export function undo(app, actions, id) {
  const { t, undoable, plan } = app;
  if (undoable === null) return nothing;
  const lever = t(undoable.name);
  return html`<div class="undo">
    <p>
      ${t("levers.applied", { lever })}
      ${
        plan === null || !app.planCurrent || app.behind
          ? nothing
          : html`<strong>${t(`verdict.${verdictKind(plan)}`)}</strong> <span class="undo-why">${explanation(app, plan)}</span>`
      }
    </p>
    <button type="button" class="button" id="${id}-undo" aria-label=${t("levers.undo_named", { lever })} @click=${() => actions.undoLever(id)}>
      ${t("levers.undo")}
    </button>
  </div>`;
}
