/** Starts the page: takes over the static answer, then keeps answer, address and frame in step. */

import { render as renderTemplate } from "lit-html";
import { createActions } from "./actions.js";
import { createAddress, readAddress, readNavigation } from "./address.js";
import { createApp } from "./app.js";
import { createAsking } from "./asking.js";
import { createCalculator } from "./calculator.js";
import { revealActive } from "./combobox.js";
import { readData } from "./data.js";
import { announceHeight } from "./embed.js";
import { createEngine } from "./engine.js";
import { leversPanel } from "./levers.js";
import { createLogs } from "./logs.js";
import { openLink, packConfig } from "./opening.js";
import { page } from "./page.js";
import { createPanels } from "./panels.js";
import { reusePanel } from "./reuse.js";
import { speedPanel } from "./speed.js";
import { VIEW_DEFAULTS } from "./state.js";
import { remembered } from "./storage.js";
import { trafficPanel } from "./traffic.js";
import { summaryLine } from "./views/answer.js";
import { spokenAnswer } from "./views/verdict.js";
import { documentComplete, onScreen, watchAnswer, watchDragging, watchPrinting, watchSize } from "./watch.js";

const STATUS_QUIET = 500;
const SLOW_START = 400;
const FRAME_IDLE = 60_000;
const LONG_IDLE = 30_000;

const root = document.getElementById("app");
const status = document.getElementById("status");
const html = document.documentElement;

const link = readAddress();
const data = readData();
const app = createApp(data);
const isFrame = () => app.view.embed;

let renderQueued = false;
let takenOver = false;

/** At most one rendering per task, before the browser paints. */
function render() {
  if (renderQueued) return;
  renderQueued = true;
  queueMicrotask(() => {
    renderQueued = false;
    renderNow();
  });
}

function renderNow() {
  // The static page stays as it is until it is replaced in one go.
  if (!takenOver) return;
  panels.keepUp();
  renderTemplate(page(app, actions), root);
  document.title = app.t("page.document_title", { summary: summaryLine(app) });
  revealActive(app);
}

function say(text) {
  if (status.textContent !== text) status.textContent = text;
}

let statusTimer = null;

/** The answer for screen readers, once the inputs have rested. */
function announce() {
  clearTimeout(statusTimer);
  statusTimer = setTimeout(() => say(app.answer.stale ? app.t("answer.last_valid") : spokenAnswer(app)), STATUS_QUIET);
}

function applyTheme(theme) {
  if (theme === "auto" || theme === null) delete html.dataset.theme;
  else html.dataset.theme = theme;
}

let allowed = documentComplete();

const payload = (name) => document.getElementById(`payload-${name}`)?.textContent;

const engine = createEngine({
  payload,
  onState({ name, reason, detail }) {
    app.engine = { ...app.engine, state: name, detail: name === "failed" ? `${reason}: ${detail}` : null };
    render();
  },
  idleLimit: link.view.embed ? FRAME_IDLE : Infinity,
});

async function call(method, params, how) {
  await allowed;
  return engine.call(method, params, how);
}

/** A second worker, there only while it is needed: what takes a minute must not hold up the answer. */
const longEngine = createEngine({ payload, idleLimit: LONG_IDLE });

async function callLong(method, params, how) {
  await allowed;
  if (longEngine.state.name === "failed") longEngine.start();
  return longEngine.call(method, params, how);
}

const calculator = createCalculator({ call, data });
const panels = createPanels(app, {
  call,
  callLong,
  render,
  panels: [
    leversPanel({ codes: data.levers, known: calculator.precomputedLevers }),
    trafficPanel(data.lengths),
    reusePanel({ preset: data.presets[0].id }),
    speedPanel,
  ],
});
const { ask, attempt } = createAsking(app, calculator, { render, announce });
const address = createAddress({ fixed: isFrame, onNavigate: () => open(readNavigation()) });

/** Brings address and mirror up to date; `push` adds a step to the history. */
function commit(how) {
  const { scenario } = app;
  if (scenario.model_text === null) {
    app.cfg = null;
    app.lastModel = scenario.model;
  }
  if (scenario.weights === null && scenario.draft_model_text === null) app.files = null;
  if (app.cfg === null && app.files === null) app.cfgTooLong = false;
  address.update(app, how);
  logs.scenarioChanged();
  actions.followModel();
}

async function open(found) {
  await openLink(app, found);
  html.lang = app.t.lang;
  applyTheme(app.view.theme ?? (isFrame() ? null : remembered("theme")));
  commit({ push: false });
  ask();
  render();
}

const actions = createActions(app, {
  call,
  render,
  ask,
  attempt,
  tryPlan: calculator.tryPlan,
  panels,
  commit,
  engine,
  say,
  applyTheme,
  describe: calculator.fields,
  packConfig: () => packConfig(app),
  async shortenLink(text) {
    await packConfig(app, text);
    address.update(app);
    render();
  },
});

const logs = createLogs(app, { render, call, say, fill: actions.fill, showAnswer: actions.showAnswer });
Object.assign(actions, logs.actions);

/** Empties the static page; the result puts back what was typed into it, and the focus. */
function takeOver() {
  const focused = document.activeElement?.id;
  const early = ["tokens", "sequences"]
    .map((field) => document.getElementById(field))
    .filter((input) => input && input.value !== input.defaultValue)
    .map(({ id, value }) => [id, value]);
  root.replaceChildren();
  takenOver = true;
  return () => {
    for (const [field, text] of early) actions.typeCount(field, text, false);
    if (focused) document.getElementById(focused)?.focus();
  };
}

async function start() {
  app.view = { ...VIEW_DEFAULTS, ...link.view };
  html.dataset.view = isFrame() ? app.view.view : "page";
  for (const panel of Object.values(app.panels)) panel.open &&= !isFrame();
  if (isFrame()) allowed = Promise.all([documentComplete(), onScreen(root)]);
  await open(link);
  const restore = takeOver();
  renderNow();
  restore();
  html.dataset.live = "";
  watchSize(root, app, render);
  watchAnswer(root, app, render);
  watchPrinting(root);
  // A frame that shows an answer has nowhere to put a file.
  if (!isFrame() || app.view.view === "full") watchDragging(actions);
  setTimeout(() => {
    app.engine = { ...app.engine, slow: true };
    render();
  }, SLOW_START);
  if (isFrame()) announceHeight(root);
  else documentComplete().then(engine.start);
}

start();
