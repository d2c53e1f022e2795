/** What makes it fit, beside the verdict: the first levers that do, and the way back from one that was pulled. */

import { html, nothing } from "lit-html";
import { patchOf } from "../levers.js";
import { shownLevers } from "./levers.js";
import { isOld } from "./panel.js";

const LIFTED = 3;

function applied(app, actions, undoable) {
  const { t } = app;
  const name = t(undoable.name);
  return html`<p class="to-fit" id="to-fit">
    <span>${t("levers.applied", { lever: name })}</span>
    <button
      type="button"
      class="chip"
      id="to-fit-undo"
      aria-label=${t("levers.undo_named", { lever: name })}
      @click=${() => actions.undoLever("to-fit")}
    >
      ${t("levers.undo")}
    </button>
  </p>`;
}

/** Nothing where it fits: the levers below say how to serve more. */
export function toFit(app, actions) {
  const { t, plan, undoable } = app;
  if (undoable !== null) return applied(app, actions, undoable);
  if (plan?.verdict !== "does_not_fit") return nothing;
  // The line stays where it is, so that nothing moves.
  if (!app.panels.levers.open)
    return html`<p class="to-fit" id="to-fit">
      <button type="button" class="link-button" @click=${() => actions.togglePanel("levers")}>${t("levers.heading_does_not_fit")}</button>
    </p>`;
  const now = shownLevers(app);
  const rows = (now?.answer.levers ?? []).filter((row) => row.verdict !== "does_not_fit" && patchOf(row) !== null);
  const whole = now !== null && now === app.panels.levers.found;
  const old = whole && isOld(app, "levers");
  if (rows.length === 0) return html`<p class="to-fit" id="to-fit">${t(whole && !old ? "levers.to_fit_none" : "levers.to_fit_waiting")}</p>`;
  return html`<p class="to-fit ${old ? "old" : ""}" id="to-fit">
    <span>${t("levers.to_fit")}</span>
    ${rows.slice(0, LIFTED).map(
      (row) =>
        html`<button
          type="button"
          class="chip"
          id="to-fit-${row.lever}"
          aria-label=${t("levers.apply_named", { lever: t(`lever.${row.lever}`) })}
          ?disabled=${old}
          @click=${() => actions.pullLever(row, "to-fit")}
        >
          ${t(`lever.${row.lever}`)}
        </button>`,
    )}
  </p>`;
}
