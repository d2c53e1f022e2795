/** Starts the page: takes over the static answer, then keeps answer, address and frame in step. */

import {render as renderTemplate} from 'lit-html';
import {createActions} from './actions.js';
import {createAddress, readAddress} from './address.js';
import {createCalculator} from './calculator.js';
import {closed, revealActive} from './combobox.js';
import {readData} from './data.js';
import {announceHeight} from './embed.js';
import {createEngine} from './engine.js';
import {createTranslator, preferredLanguage} from './i18n.js';
import {MAX_PACKED, pack, unpack} from './pack.js';
import {page} from './page.js';
import {fileName} from './save.js';
import {createResolver, createSearch} from './search.js';
import {VIEW_DEFAULTS, completeScenario} from './state.js';
import {remembered} from './storage.js';
import {sentenceText, summaryLine} from './views/answer.js';

const STATUS_QUIET = 500;
const SLOW_START = 400;
const SLOW_ANSWER = 150;
const FRAME_IDLE = 60_000;

const root = document.getElementById('app');
const status = document.getElementById('status');
const html = document.documentElement;

const data = readData();
const resolve = createResolver(data.models);
const search = createSearch(data.models);
const translators = new Map();
const translator = (lang) => {
  if (!translators.has(lang)) translators.set(lang, createTranslator(data.locales, lang));
  return translators.get(lang);
};

const link = readAddress();
const firstLanguage = preferredLanguage(data.locales,
  [link.view.lang, remembered('lang'), ...(navigator.languages ?? [])].filter(Boolean));

const app = {
  data,
  search,
  translator,
  t: translator(firstLanguage),
  scenario: completeScenario(data.default_state),
  asked: completeScenario(data.default_state),
  view: {...VIEW_DEFAULTS},
  typed: {},
  entryErrors: {},
  problems: [],
  answer: {estimate: data.default_answer.estimate, stale: false},
  show: data.default_answer.show,
  curve: {...data.default_answer.curve, present: data.default_answer.estimate},
  curveKey: null,
  error: null,
  pending: false,
  slowAnswer: false,
  engine: {state: 'idle', detail: null, slow: false},
  options: data.options,
  combo: closed,
  pasteOpen: false,
  moreOpen: false,
  dragging: false,
  answerHidden: false,
  saved: location.protocol === 'file:',
  chartWidth: 720,
  lastModel: data.default_state.model,
  cfg: null,
  cfgTooLong: false,
  link: '',
  share: {tab: 'link', copied: null, refused: false, embed: {view: 'answer', theme: 'auto', lang: firstLanguage, resize: true}},
  get model() {
    return this.scenario.model === null ? null : resolve(this.scenario.model);
  },
  get modelName() {
    return this.model?.name ?? this.answer.estimate.name ?? this.t('model.custom');
  },
  get fileName() {
    return fileName(this);
  },
};

// ---------------------------------------------------------------- engine

/** The payload comes last in the file: it is there once the document is complete. */
const documentComplete = new Promise((done) => {
  if (document.readyState !== 'loading') done();
  else document.addEventListener('DOMContentLoaded', () => done(), {once: true});
});

/** A frame starts nothing before it has been on screen. */
const onScreen = () => new Promise((done) => {
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    done();
  }).observe(root);
});

let allowed = documentComplete;
const isFrame = () => app.view.embed;

const engine = createEngine({
  payload: (name) => document.getElementById(`payload-${name}`)?.textContent,
  onState(state) {
    app.engine = {...app.engine, state: state.name, stage: state.stage ?? null,
      detail: state.name === 'failed' ? `${state.reason}: ${state.detail}` : null};
    if (state.name === 'failed' && app.pending) {
      app.pending = false;
      app.answer = {...app.answer, stale: true};
    }
    render();
  },
  idleLimit: link.view.embed ? FRAME_IDLE : Infinity,
});

async function call(method, params, how) {
  await allowed;
  return engine.call(method, params, how);
}

const calculator = createCalculator({call, data});

// ---------------------------------------------------------------- answers

let slowTimer = null;
let asking = 0;

function adopt({estimate, show}) {
  app.answer = {estimate, stale: Object.keys(app.entryErrors).length > 0};
  app.show = show;
  app.error = null;
  if (app.curve && app.curveKey === calculator.curveKey(app.asked, trainedLimit())) app.curve = {...app.curve, present: estimate};
}

const trainedLimit = () => app.answer.estimate.max_context ?? null;

/** Whether the page shows anything that only the engine can give. */
function needsEngine(known) {
  if (!isFrame()) return true;
  if (known === null) return true;
  if (app.view.view === 'curve') return known.curve === null;
  return app.view.view === 'full';
}

/** Asks for the present scenario; a quick answer first where there is one. */
async function ask() {
  clearTimeout(slowTimer);
  const known = calculator.precomputed(app.scenario);
  if (known) {
    app.asked = app.scenario;
    adopt(known);
    if (known.curve) {
      app.curve = {...known.curve, present: known.estimate};
      app.curveKey = calculator.curveKey(app.scenario, trainedLimit());
    } else if (app.engine.state !== 'ready') {
      app.curve = null;
      app.curveKey = null;
    }
    announce();
  }
  if (known?.curve || !needsEngine(known)) {
    // Nothing is missing; the engine is only kept warm for what comes next.
    asking += 1;
    app.pending = false;
    calculator.cancelCurve();
    return;
  }
  await attempt(app.scenario);
}

/**
 * Asks the engine about a scenario and shows the answer.
 * @returns {Promise<object|null>} the answer or {error}; null when it was overtaken or the engine failed
 */
async function attempt(scenario) {
  const mine = ++asking;
  app.pending = true;
  slowTimer = setTimeout(() => {
    app.slowAnswer = true;
    render();
  }, SLOW_ANSWER);
  let result;
  try {
    result = await calculator.estimate(scenario);
  } catch {
    // The engine says itself, through its state, why it failed.
    if (mine === asking) app.pending = false;
    return null;
  } finally {
    if (mine === asking) {
      clearTimeout(slowTimer);
      app.slowAnswer = false;
    }
  }
  if (result === null || mine !== asking) return null;
  app.pending = false;
  app.asked = scenario;
  if (result.error) {
    app.error = result.error;
    app.answer = {...app.answer, stale: true};
  } else {
    adopt(result);
    refreshCurve(scenario);
  }
  announce();
  render();
  return result;
}

function refreshCurve(scenario) {
  const key = calculator.curveKey(scenario, trainedLimit());
  if (key === app.curveKey) {
    calculator.cancelCurve();
    return;
  }
  calculator.requestCurve(scenario, trainedLimit(), (curve) => {
    if (curve.error) return;
    app.curve = {...curve, present: app.answer.estimate};
    app.curveKey = key;
    render();
  });
}

// ---------------------------------------------------------------- what is said and shown

let statusTimer = null;

/** The answer for screen readers, once the inputs have rested. */
function announce() {
  clearTimeout(statusTimer);
  statusTimer = setTimeout(() => say(app.answer.stale ? app.t('answer.last_valid') : sentenceText(app)), STATUS_QUIET);
}

function say(text) {
  if (status.textContent !== text) status.textContent = text;
}

let renderQueued = false;

/** At most one rendering per task, before the browser paints. */
function render() {
  if (renderQueued) return;
  renderQueued = true;
  queueMicrotask(() => {
    renderQueued = false;
    renderTemplate(page(app, actions), root);
    document.title = app.t('page.document_title', {summary: summaryLine(app)});
    revealActive(app);
  });
}

function applyTheme(theme) {
  if (theme === 'auto' || theme === null) delete html.dataset.theme;
  else html.dataset.theme = theme;
}

// ---------------------------------------------------------------- address

const address = createAddress({fixed: isFrame, onNavigate: (found) => open(found)});
const commit = (how) => {
  if (app.scenario.model_text === null) {
    app.cfg = null;
    app.cfgTooLong = false;
    if (app.scenario.model !== null) app.lastModel = app.scenario.model;
  }
  address.update(app, how);
};

async function packConfig() {
  app.cfg = app.scenario.model_text === null ? null : await pack(app.scenario.model_text);
  app.cfgTooLong = app.cfg !== null && app.cfg.length > MAX_PACKED;
}

/** Shows what a link asks for, naming what of it can't be used. */
async function open(found) {
  const problems = [...found.problems];
  const given = {...data.default_state, ...found.scenario};
  let custom = null;
  if (found.cfg !== null) {
    try {
      custom = await unpack(found.cfg);
    } catch {
      problems.push({code: 'link_cfg', params: {}});
    }
  }
  const model = resolve(given.model);
  if (custom === null && model === null) {
    problems.push({code: 'link_model', params: {value: given.model, suggestions: search(given.model).slice(0, 3)}});
  }
  app.scenario = completeScenario({...given,
    model: custom === null ? (model?.id ?? data.default_state.model) : null});
  app.scenario.model_text = custom;
  app.view = {...VIEW_DEFAULTS, ...found.view};
  app.t = translator(preferredLanguage(data.locales,
    [found.view.lang, remembered('lang'), ...(navigator.languages ?? [])].filter(Boolean)));
  app.problems = problems;
  app.typed = custom === null ? {} : {paste: custom};
  app.entryErrors = {};
  app.error = null;
  app.moreOpen ||= Object.keys(found.scenario).some((key) => !['model', 'tokens', 'sequences', 'kv_format'].includes(key));
  html.lang = app.t.lang;
  await packConfig();
  commit({push: false});
  ask();
  render();
}

// ---------------------------------------------------------------- start

const actions = createActions(app, {render, ask, attempt, commit, engine, say, applyTheme, packConfig});

/** What was typed into the static page before this script ran. */
function takeOver() {
  const focused = document.activeElement?.id;
  const early = new Map();
  for (const field of ['tokens', 'sequences']) {
    const input = document.getElementById(field);
    if (input && input.value !== input.defaultValue) early.set(field, input.value);
  }
  root.replaceChildren();
  return () => {
    for (const [field, text] of early) actions.typeCount(field, text, false);
    if (focused && focused !== 'app') document.getElementById(focused)?.focus();
  };
}

function watchDragging() {
  const carriesFile = (event) => [...(event.dataTransfer?.types ?? [])].includes('Files');
  window.addEventListener('dragover', (event) => {
    if (!carriesFile(event)) return;
    event.preventDefault();
    actions.setDragging(true);
  });
  window.addEventListener('dragleave', (event) => {
    if (event.relatedTarget === null) actions.setDragging(false);
  });
  window.addEventListener('drop', (event) => {
    if (!carriesFile(event)) return;
    event.preventDefault();
    actions.setDragging(false);
    actions.readFile(event.dataTransfer.files[0]);
  });
}

function watchSize() {
  const measure = () => {
    const room = root.querySelector('.chart-room');
    const width = Math.floor(room?.clientWidth ?? 0);
    if (width >= 200 && width !== app.chartWidth) {
      app.chartWidth = width;
      render();
    }
  };
  measure();
  new ResizeObserver(measure).observe(root);
}

function watchAnswer() {
  const numbers = root.querySelector('.numbers');
  if (!numbers) return;
  new IntersectionObserver((entries) => {
    app.answerHidden = entries.every((entry) => !entry.isIntersecting && entry.boundingClientRect.top < 0);
    render();
  }).observe(numbers);
}

/** Paper has no disclosures: what the answer rests on is opened for printing. */
function watchPrinting() {
  let opened = [];
  window.addEventListener('beforeprint', () => {
    opened = [...root.querySelectorAll('details.facts:not([open])')];
    for (const details of opened) details.open = true;
  });
  window.addEventListener('afterprint', () => {
    for (const details of opened) details.open = false;
  });
}

async function start() {
  app.view = {...VIEW_DEFAULTS, ...link.view};
  html.dataset.view = app.view.embed ? app.view.view : 'page';
  applyTheme(link.view.theme ?? (app.view.embed ? null : remembered('theme')) ?? html.dataset.theme ?? null);
  if (app.view.embed) allowed = Promise.all([documentComplete, onScreen()]);
  const restore = takeOver();
  await open(link);
  renderTemplate(page(app, actions), root);
  restore();
  html.dataset.live = '';
  watchSize();
  watchAnswer();
  watchPrinting();
  watchDragging();
  if (app.view.embed) announceHeight(root);
  setTimeout(() => {
    app.engine = {...app.engine, slow: true};
    render();
  }, SLOW_START);
  if (!app.view.embed) {
    await documentComplete;
    engine.start();
  }
  if (app.options === null && (!app.view.embed || app.view.view === 'full')) {
    call('options', {}, {lane: 'options'}).then((options) => {
      app.options = options;
      render();
    }, () => {});
  }
}

start();
