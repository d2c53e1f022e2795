/** What a person can do: each changes the app, asks if need be, and renders. */

import { closed, opened } from "./combobox.js";
import { fieldOf } from "./fields.js";
import { parseCount } from "./format.js";
import { copyText, pointAtCopy } from "./save.js";
import { completeScenario } from "./state.js";
import { remember } from "./storage.js";

const PASTE_QUIET = 150;
const COPIED_SHOWN = 2000;
/** Files larger than this are not read: no config.json is. kvcore has its own, smaller limit. */
const FILE_LIMIT = 16 * 2 ** 20;

/** @param {object} app  @param {{render, ask, try: Function, commit: Function, engine, status}} ways */
export function createActions(app, ways) {
  const { render, ask, attempt, commit, engine } = ways;
  let pasteTimer = null;
  let copiedTimer = null;

  /** Sets scenario fields and asks; `push` adds a step to the browser's history. */
  function change(patch, { push = true } = {}) {
    app.scenario = { ...app.scenario, ...patch };
    ask();
    commit({ push });
    render();
  }

  function chooseModel(id) {
    app.combo = closed;
    app.typed.paste = "";
    change({ model: id, model_text: null });
  }

  const actions = {
    // model
    openModels() {
      if (!app.combo.open) app.combo = opened(app, null);
      render();
    },
    closeModels() {
      if (!app.combo.open && app.combo.query === null) return;
      app.combo = closed;
      render();
    },
    toggleModels() {
      document.getElementById("model")?.focus();
      if (app.combo.open) actions.closeModels();
      else actions.openModels();
    },
    typeModel(text) {
      if (text.trimStart().startsWith("{")) {
        app.combo = closed;
        actions.typeConfig(text);
        return;
      }
      app.combo = opened(app, text);
      render();
    },
    moveModel(position) {
      app.combo = { ...app.combo, active: position };
      render();
    },
    pickModel(position) {
      const model = app.combo.flat[position];
      if (model) chooseModel(model.id);
    },
    setModel: chooseModel,

    // counts
    typeCount(field, text, optional) {
      app.typed[field] = text;
      const blank = text.trim() === "";
      const value = parseCount(text);
      if (value === null && !(blank && optional)) {
        app.entryErrors[field] = { code: blank ? "blank" : "count", params: {} };
        app.answer = { ...app.answer, stale: true };
        render();
        return;
      }
      delete app.entryErrors[field];
      change({ [field]: value }, { push: false });
    },
    settleCount(field) {
      if (app.entryErrors[field] || app.typed[field] === undefined) return;
      delete app.typed[field];
      render();
    },
    chooseCount(field, value) {
      delete app.typed[field];
      delete app.entryErrors[field];
      change({ [field]: value });
    },
    choose: (field, value) => change({ [field]: value }),
    chooseEngine: (engineId) => change({ engine: engineId, engine_version: null, engine_options: {} }),
    setEngineOption(name, value) {
      const next = { ...app.scenario.engine_options };
      if (value === null) delete next[name];
      else next[name] = value;
      change({ engine_options: next }, { push: false });
    },
    reset() {
      app.typed = {};
      app.entryErrors = {};
      app.problems = [];
      change(completeScenario(app.data.default_state));
    },

    // custom config
    togglePaste(open) {
      if (app.pasteOpen === open) return;
      app.pasteOpen = open;
      render();
    },
    toggleMore(open) {
      if (app.moreOpen === open) return;
      app.moreOpen = open;
      render();
    },
    typeConfig(text) {
      app.typed.paste = text;
      app.pasteOpen = true;
      clearTimeout(pasteTimer);
      if (text.trim() === "") {
        app.error = null;
      } else {
        pasteTimer = setTimeout(() => actions.tryConfig(text), PASTE_QUIET);
      }
      render();
    },
    /** The config becomes the scenario only once kvcore has read it. */
    async tryConfig(text) {
      const candidate = { ...app.scenario, model: null, model_text: text };
      const verdict = await attempt(candidate);
      if (verdict === null) return;
      if (verdict.error && ["paste", "model"].includes(fieldOf(verdict.error, candidate))) return;
      app.scenario = candidate;
      if (verdict.error) app.answer = { ...app.answer, stale: true };
      await ways.packConfig();
      commit({ push: true });
      render();
    },
    clearConfig() {
      app.typed.paste = "";
      app.error = null;
      if (app.scenario.model_text !== null) chooseModel(app.lastModel);
      else actions.typeConfig("");
    },
    async readFile(file) {
      if (!file) return;
      app.pasteOpen = true;
      if (file.size > FILE_LIMIT) {
        app.error = { code: "input_too_large", params: { bytes: file.size, limit: FILE_LIMIT } };
        app.errorScenario = { ...app.scenario, model: null, model_text: "" };
        render();
        return;
      }
      const text = await file.text();
      app.typed.paste = text;
      clearTimeout(pasteTimer);
      render();
      await actions.tryConfig(text);
    },
    setDragging(dragging) {
      if (app.dragging === dragging) return;
      app.dragging = dragging;
      render();
    },

    // view
    setView(patch) {
      app.view = { ...app.view, ...patch };
      commit({ push: false });
      render();
    },
    setLanguage(lang) {
      remember("lang", lang);
      app.t = app.translator(lang);
      app.share.embed = { ...app.share.embed, lang };
      document.documentElement.lang = lang;
      actions.setView({ lang });
    },
    setTheme(theme) {
      remember("theme", theme === "auto" ? null : theme);
      ways.applyTheme(theme);
      actions.setView({ theme: theme === "auto" ? null : theme });
    },
    setTab(tab) {
      app.share = { ...app.share, tab, copied: null, refused: false };
      render();
    },
    setEmbed(patch) {
      app.share = { ...app.share, embed: { ...app.share.embed, ...patch } };
      render();
    },
    async copy(what, text) {
      const done = await copyText(text, document.getElementById("share-text"));
      app.share = { ...app.share, copied: done ? what : null, refused: !done };
      if (done) ways.say(app.t("share.copied"));
      render();
      clearTimeout(copiedTimer);
      copiedTimer = setTimeout(() => {
        app.share = { ...app.share, copied: null };
        render();
      }, COPIED_SHOWN);
    },
    saveOffline(event) {
      if (app.combo.open) actions.closeModels();
      pointAtCopy(event.currentTarget);
    },
    showAnswer() {
      document.querySelector(".first")?.scrollIntoView({ block: "start" });
    },
    dismissProblems() {
      app.problems = [];
      render();
    },
    retryEngine() {
      engine.start();
      ask();
      render();
    },
  };
  app.actions = actions;
  return actions;
}
