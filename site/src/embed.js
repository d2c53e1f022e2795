/** The page inside another page: what it shows there, how it says its height, and the code to put it there. */

import { html, nothing } from "lit-html";
import { answeredName } from "./messages.js";
import { serialize } from "./state.js";
import { answer, answerBar, sentenceText, summaryLine } from "./views/answer.js";
import { curve } from "./views/curve.js";
import { verdict } from "./views/verdict.js";

/** Heights that hold without a listener in the parent page. */
const HEIGHTS = { answer: 400, bar: 240, curve: 500, full: 1200 };
const HEIGHTS_WITH_GPU = { ...HEIGHTS, answer: 640, bar: 380, curve: 540 };

const escapeAttribute = (text) =>
  text.replace(/&/g, "&amp;").replace(/"/g, "&quot;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

/** The address of this page without its fragment; a file on disk has none worth sharing. */
export const pageAddress = () => location.href.replace(/[#?].*$/, "");

const LISTENER = `<script>
addEventListener("message", (event) => {
  const data = event.data;
  if (!data || data.type !== "kvcore:height" || !(data.height > 0 && data.height < 20000)) return;
  for (const frame of document.querySelectorAll("iframe.kvcore")) {
    if (frame.contentWindow === event.source) frame.height = Math.ceil(data.height);
  }
});
</script>`;

export function embedCode(app) {
  const { view, theme, lang, resize } = app.share.embed;
  const fragment = serialize({
    scenario: app.scenario,
    ...app.packed,
    ...(view === "full" ? { given: app.given } : {}),
    view: {
      unit: app.view.unit,
      lang,
      theme: theme === "auto" ? null : theme,
      embed: true,
      view: view === "full" ? null : view,
    },
  });
  const frame = `<iframe class="kvcore" src="${escapeAttribute(`${pageAddress()}#${fragment}`)}"
  title="${escapeAttribute(app.t("embed.title", { model: answeredName(app) }))}"
  width="100%" height="${(app.scenario.gpu ? HEIGHTS_WITH_GPU : HEIGHTS)[view]}" loading="lazy" allow="clipboard-write"
  referrerpolicy="no-referrer" sandbox="allow-scripts allow-popups allow-popups-to-escape-sandbox"></iframe>`;
  return resize ? `${frame}\n${LISTENER}` : frame;
}

/** The same templates as in the frame, under the frame's theme and language. */
export function embedPreview(app) {
  const { view, theme, lang } = app.share.embed;
  const t = app.translator(lang);
  const framed = { ...app, t, problems: [], pending: false, chartWidth: Math.min(app.chartWidth, 640) };
  return html`<figure class="preview">
    <figcaption>${app.t("share.preview")}</figcaption>
    <div class="preview-frame" lang=${lang} data-theme=${theme === "auto" ? nothing : theme} inert>
      ${embedded(framed, app.actions, view === "full" ? "answer" : view, "preview-")}
    </div>
  </figure>`;
}

/** The line under a frame: the scenario and the way to the calculator. */
function frameFoot(app) {
  const fragment = serialize({
    scenario: app.scenario,
    ...app.packed,
    view: { unit: app.view.unit, lang: app.t.lang },
  });
  return html`<p class="frame-foot">
    <span>${summaryLine(app)}</span>
    <a href=${`${pageAddress()}#${fragment}`} target="_blank" rel="noopener">${app.t("embed.open")}</a>
  </p>`;
}

export function embedded(app, actions, view, prefix = "") {
  const body =
    view === "curve"
      ? curve(app, { prefix, embedded: true })
      : view === "bar"
        ? html`<section class="answer">
            ${verdict(app, actions, { fixed: true })}
            <p class="sentence">${sentenceText(app)}</p>
            ${answerBar(app)}
          </section>`
        : answer(app, actions, { embedded: true, quiet: prefix !== "" });
  return html`${body}${frameFoot(app)}`;
}

/** Tells the parent the height whenever it changes; says nothing in a page of its own. */
export function announceHeight(root) {
  if (window.parent === window) return;
  let last = 0;
  let waiting = false;
  const post = () => {
    waiting = false;
    const height = Math.ceil(root.getBoundingClientRect().height);
    if (Math.abs(height - last) < 1) return;
    last = height;
    window.parent.postMessage({ type: "kvcore:height", v: 1, height }, "*");
  };
  new ResizeObserver(() => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(post);
  }).observe(root);
}
