/** What happens to the page without anybody touching an input. */

import { carriesFiles, dropped } from "./files.js";

const NARROWEST_CHART = 200;

/** Files and folders dragged over the page may be dropped anywhere on it. */
export function watchDragging(actions) {
  window.addEventListener("dragover", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    actions.setDragging(true);
  });
  window.addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) actions.setDragging(false);
  });
  window.addEventListener("drop", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    actions.setDragging(false);
    actions.importDropped(dropped(event.dataTransfer));
  });
}

/** Charts are drawn for the width they have, so that their text keeps its size. */
export function watchSize(root, app, render) {
  const measure = () => {
    const width = Math.floor(root.querySelector(".chart-room")?.clientWidth ?? 0);
    if (width < NARROWEST_CHART || width === app.chartWidth) return;
    app.chartWidth = width;
    render();
  };
  measure();
  new ResizeObserver(measure).observe(root);
}

/** Whether the answer has been scrolled past. */
export function watchAnswer(root, app, render) {
  const numbers = root.querySelector(".numbers");
  if (!numbers) return;
  new IntersectionObserver((entries) => {
    const { isIntersecting, boundingClientRect } = entries[entries.length - 1];
    app.answerHidden = !isIntersecting && boundingClientRect.top < 0;
    render();
  }).observe(numbers);
}

/** Paper has no disclosures: what the answer rests on is opened for printing. */
export function watchPrinting(root) {
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...root.querySelectorAll("details.facts:not([open])")];
    for (const details of opened) details.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
}

/** The payload comes last in the file: it is there once the document is complete. */
export const documentComplete = () =>
  new Promise((done) => {
    if (document.readyState !== "loading") done();
    else document.addEventListener("DOMContentLoaded", () => done(), { once: true });
  });

/** A frame starts nothing before it has been on screen. */
export const onScreen = (root) =>
  new Promise((done) => {
    new IntersectionObserver((entries, observer) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      done();
    }).observe(root);
  });
