/** The whole page as one template. */

import { html, nothing } from "lit-html";
import { embedded } from "./embed.js";
import { bytesText } from "./format.js";
import { answeredName } from "./messages.js";
import { answer } from "./views/answer.js";
import { footer, header, stickyBar } from "./views/chrome.js";
import { curve } from "./views/curve.js";
import { inputs } from "./views/inputs.js";
import { levers } from "./views/levers.js";
import { logBox } from "./views/logs.js";
import { reuse } from "./views/reuse.js";
import { share } from "./views/share.js";
import { speed } from "./views/speed.js";
import { traffic } from "./views/traffic.js";
import { shortVerdict } from "./views/verdict.js";
import { why } from "./views/why.js";

function dropZone(app) {
  return html`<div class="drop" ?hidden=${!app.dragging} aria-hidden="true"><p>${app.t("paste.drop")}</p></div>`;
}

function calculator(app, actions) {
  return html`<main class="layout">
    <div class="first">${answer(app, actions)}</div>
    <div class="side">${inputs(app, actions)}</div>
    <div class="rest">${levers(app, actions)}${traffic(app, actions)}${reuse(app, actions)}${speed(app, actions)}${curve(app)}${why(app)}${app.view.embed ? nothing : html`${logBox(app, actions)}${share(app, actions)}`}</div>
  </main>`;
}

export function page(app, actions) {
  const {
    view,
    answer: { estimate },
  } = app;
  if (view.embed && view.view !== "full") {
    return html`<main class="frame">${embedded(app, actions, view.view)}</main>`;
  }
  if (view.embed) return html`${calculator(app, actions)}${dropZone(app)}`;
  return html`${header(app, actions)}${calculator(app, actions)}${footer(app)}${stickyBar(app, actions, {
    model: answeredName(app),
    total: bytesText(estimate.total_bytes, view.unit),
    verdict: shortVerdict(app),
    perToken: bytesText(estimate.marginal_bytes_per_token, view.unit),
  })}${dropZone(app)}`;
}
