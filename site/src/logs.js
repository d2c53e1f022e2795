/** The log box: what an engine printed, read and explained by kvcore, and put into the form. */

import { NO_FILES, modelParams } from "./state.js";
import { summary } from "./views/logs.js";

const QUIET = 250;
/** How long one part of an explanation may hold up the other questions of the page. */
const PART = 250;
const FIRST_STEP = 24;
const MAX_STEP = 400;
/** Longer texts are read but not shown: a text field of megabytes holds up the page for many seconds. */
const SHOWN = 2 ** 19;

/** What a log tells of a scenario; what it leaves unsaid is the engine's own again. */
const TOLD = {
  engine: null,
  engine_version: null,
  engine_options: {},
  kv_format: null,
  state_format: null,
  gpus: 1,
  tp: null,
  pp: null,
  dp: null,
  dcp: null,
  block_tokens: null,
  batched_tokens: null,
  memory_fraction: null,
  pool_bytes: null,
  reserve_bytes: null,
  weight_bytes: null,
  weight_format: null,
  shared_prefix: null,
  draft: false,
  draft_model: null,
  draft_model_text: null,
  draft_weights: null,
};
/** The page's own names for a plan's arguments. */
const PAGE_NAMES = { context: "tokens", concurrency: "sequences" };

export const emptyLog = {
  open: false,
  text: "",
  file: null,
  /** What was read of the file: {text, tail}; never the whole of a large one. */
  parts: null,
  dragging: false,
  /** "idle", "reading", "explaining", "done", "stopped" or "failed". */
  state: "idle",
  answer: null,
  error: null,
  /** Whose model the numbers are compared with: the "log"'s, or the "page"'s. */
  source: "log",
  preferPage: false,
  filled: false,
};

/** Of a text too long to be read whole, the ends; kvcore says how much it reads of them. */
export function endsOf(text, [head, tail]) {
  return text.length <= head + tail ? { text } : { text: text.slice(0, head), tail: text.slice(-tail) };
}

/** The same of a file: as text, whatever it was written in. */
export async function readEnds(file, [head, tail]) {
  const bytes = async (part) => new Uint8Array(await part.arrayBuffer());
  const whole = file.size <= head + tail;
  const start = await bytes(whole ? file : file.slice(0, head));
  const decoder = new TextDecoder(encodingOf(start));
  if (whole) return { text: decoder.decode(start) };
  return { text: decoder.decode(start), tail: decoder.decode(await bytes(file.slice(file.size - tail))) };
}

/** PowerShell writes UTF-16, with a mark in front. */
function encodingOf([first, second]) {
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return first === 0xfe && second === 0xff ? "utf-16be" : "utf-8";
}

/** The scenario that a log describes, in the page's fields. */
export function filledFrom(form, { keepModel }) {
  const patch = structuredClone(TOLD);
  for (const [name, value] of Object.entries(form)) patch[PAGE_NAMES[name] ?? name] = value;
  const { model } = patch;
  delete patch.model;
  if (keepModel || model === undefined) return patch;
  if (typeof model === "string") return { ...patch, ...NO_FILES, model };
  return { ...patch, ...NO_FILES, model: null, model_text: JSON.stringify(model) };
}

/**
 * @param {object} app
 * @param {{render, call, say, fill: (patch: object) => Promise<void>, showAnswer}} ways
 */
export function createLogs(app, { render, call, say, fill, showAnswer }) {
  let timer = null;
  let ticket = 0;
  let running = false;
  let again = false;

  const set = (patch) => {
    app.log = { ...app.log, ...patch };
    render();
  };
  const given = () => app.log.parts ?? endsOf(app.log.text, app.data.log_bytes);

  /** Asks for the newest text; one question at a time, so that none has to be broken off. */
  async function explain() {
    ticket += 1;
    clearTimeout(timer);
    if (given().text.trim() === "") {
      again = false;
      set({ state: "idle", answer: null, error: null });
      return;
    }
    set({ state: "reading", error: null, filled: false });
    again = running;
    if (running) return;
    running = true;
    do {
      again = false;
      const mine = ticket;
      await follow(mine).catch(() => mine === ticket && set({ state: "failed" }));
    } while (again);
    running = false;
  }

  async function follow(mine) {
    const asked = given();
    const ask = async (more) => {
      const answer = await call("log", { ...asked, ...more }, { lane: "log" });
      return mine === ticket ? answer : null;
    };
    const page = modelParams(app.scenario);
    let source = app.log.preferPage ? "page" : "log";
    let named = app.log.preferPage ? page : {};
    let answer = await ask({ ...named, questions: 0 });
    if (answer && !answer.error && answer.engine !== null && answer.model === null && source === "log") {
      source = "page";
      named = page;
      answer = await ask({ ...named, questions: 0 });
    }
    let step = FIRST_STEP;
    while (answer && !answer.error && !answer.complete) {
      set({ state: "explaining", answer, source });
      const since = performance.now();
      answer = await ask({ ...named, questions: answer.asked + step });
      const pace = PART / Math.max(performance.now() - since, 1);
      step = Math.min(Math.max(Math.round(step * Math.min(pace, 2)), 1), MAX_STEP);
    }
    if (!answer) return;
    set(answer.error ? { state: "done", answer: null, error: answer.error } : { state: "done", answer, source });
    if (app.log.open) say(summary(app));
  }

  const actions = {
    toggleLog(open) {
      if (app.log.open !== open) set({ open });
    },
    openLog() {
      set({ open: true });
      queueMicrotask(() => {
        document.getElementById("log-box")?.scrollIntoView({ block: "start" });
        document.getElementById("log-text")?.focus({ preventScroll: true });
      });
    },
    typeLog(text) {
      ticket += 1;
      app.log = { ...app.log, text, preferPage: false };
      clearTimeout(timer);
      timer = setTimeout(explain, QUIET);
      if (text.trim() === "") explain();
      else render();
    },
    /** @returns {boolean} whether the text is too long for the text field, and was taken as a file is */
    pasteLog(text) {
      if (text.length <= SHOWN) return false;
      const file = { name: app.t("log.pasted"), size: new Blob([text]).size };
      app.log = { ...app.log, parts: endsOf(text, app.data.log_bytes), file, preferPage: false };
      explain();
      return true;
    },
    async readLog(file) {
      if (!file) return;
      const mine = ++ticket;
      set({ open: true, state: "reading", answer: null, error: null });
      try {
        const parts = await readEnds(file, app.data.log_bytes);
        if (mine !== ticket) return;
        app.log = { ...app.log, parts, file: { name: file.name, size: file.size }, preferPage: false };
        await explain();
      } catch {
        if (mine === ticket) set({ state: "failed" });
      }
    },
    /** Takes the file away; what was pasted before it is there again. */
    clearLog() {
      const { parts } = app.log;
      app.log = { ...app.log, parts: null, file: null, text: parts ? app.log.text : "", preferPage: false };
      explain();
      queueMicrotask(() => document.getElementById("log-text")?.focus());
    },
    dragOverLog(dragging) {
      if (app.log.dragging !== dragging) set({ dragging });
    },
    compareWith(source) {
      app.log = { ...app.log, preferPage: source === "page" };
      explain();
    },
    stopLog() {
      ticket += 1;
      again = false;
      set({ state: "stopped" });
    },
    retryLog: () => explain(),
    async fillFromLog() {
      const { answer, source } = app.log;
      await fill(filledFrom(answer.form, { keepModel: source === "page" }));
      set({ filled: true });
      say(app.t("log.filled"));
      showAnswer();
    },
  };

  let compared = null;
  return {
    actions,
    /** What is compared with the page's model is compared anew when that is another. */
    scenarioChanged() {
      const key = JSON.stringify(modelParams(app.scenario));
      const changed = compared !== null && compared !== key;
      compared = key;
      if (changed && app.log.source === "page" && app.log.answer !== null) explain();
    },
  };
}
