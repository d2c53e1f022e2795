/** What a person can do: each changes the app, asks if need be, and renders. */

import { closed, opened } from "./combobox.js";
import { createEdits } from "./edits.js";
import { fieldOf } from "./fields.js";
import { createImport } from "./files.js";
import { readerOf } from "./format.js";
import { createLookUp } from "./hub.js";
import { DRAFT, GPU, KINDS, MODEL } from "./kinds.js";
import { createLeverActions } from "./leveractions.js";
import { createPanelActions } from "./panelactions.js";
import { nothingGiven } from "./panelinputs.js";
import { copyText, pointAtCopy } from "./save.js";
import { completeScenario, toPlanParams } from "./state.js";
import { remember } from "./storage.js";

const PASTE_QUIET = 150;
const COPIED_SHOWN = 2000;

/** Fields changed by hand are those of one model, and so are the weights of its files and where they came from. */
const forgotten = (patch) =>
  "model" in patch || "model_text" in patch ? { edits: {}, weights: null, hub: null } : {};

/** @param {object} app  @param {{render, ask, try: Function, commit: Function, engine, status}} ways */
export function createActions(app, ways) {
  const { render, ask, attempt, commit, engine } = ways;
  let pasteTimer = null;
  let copiedTimer = null;

  /** Sets scenario fields and asks; `push` adds a step to the browser's history. */
  function change(patch, { push = true } = {}) {
    app.scenario = { ...app.scenario, ...forgotten(patch), ...patch };
    ask();
    commit({ push });
    render();
  }

  function chooseModel(id) {
    app.combos = { ...app.combos, model: closed };
    app.typed.paste = "";
    actions.forgetImport();
    change({ model: id, model_text: null });
  }

  /** What files gave becomes the scenario: kvcore has read it. */
  async function adopt(patch) {
    for (const field of Object.keys(patch)) {
      delete app.typed[field];
      delete app.entryErrors[field];
    }
    clearTimeout(pasteTimer);
    app.scenario = { ...app.scenario, ...forgotten(patch), ...patch };
    actions.followModel();
    ask();
    render();
    await ways.packConfig();
    commit({ push: true });
    render();
  }

  function chooseGpu(id) {
    app.combos = { ...app.combos, gpu: closed };
    delete app.typed.gpus;
    delete app.entryErrors.gpus;
    change({ gpu: id || null });
  }

  const setCombo = (kind, state) => {
    app.combos = { ...app.combos, [kind.id]: state };
    render();
  };

  const actions = {
    // lists
    openList(kind) {
      if (!app.combos[kind.id].open) setCombo(kind, opened(app, kind, null));
    },
    closeList(kind) {
      const { open, query } = app.combos[kind.id];
      if (open || query !== null) setCombo(kind, closed);
    },
    toggleList(kind) {
      document.getElementById(kind.id)?.focus();
      if (app.combos[kind.id].open) actions.closeList(kind);
      else actions.openList(kind);
    },
    typeInto(kind, text) {
      if (kind === MODEL && text.trimStart().startsWith("{")) {
        app.combos = { ...app.combos, model: closed };
        actions.typeConfig(text);
        return;
      }
      setCombo(kind, opened(app, kind, text));
    },
    moveIn(kind, position) {
      setCombo(kind, { ...app.combos[kind.id], active: position });
    },
    pick(kind, position) {
      const entry = app.combos[kind.id].flat[position];
      if (!entry) return;
      if (kind === GPU) chooseGpu(entry.id);
      else if (kind === DRAFT) {
        app.combos = { ...app.combos, draft_model: closed };
        actions.chooseDraft(entry.id);
      } else if (entry.repository) {
        app.combos = { ...app.combos, model: closed };
        actions.lookUp(entry.repository);
      } else chooseModel(entry.id);
    },
    setModel: chooseModel,

    // counts
    typeCount(field, text, optional) {
      app.typed[field] = text;
      const blank = text.trim() === "";
      const value = readerOf(field)(text);
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
    /** A share of memory, above 0 and at most 1; blank is the engine's own. */
    typeFraction(field, text) {
      app.typed[field] = text;
      const value = Number(text);
      const blank = text.trim() === "";
      if (!blank && !(value > 0 && value <= 1)) {
        app.entryErrors[field] = { code: "fraction", params: {} };
        app.answer = { ...app.answer, stale: true };
        render();
        return;
      }
      delete app.entryErrors[field];
      change({ [field]: blank ? null : value }, { push: false });
    },
    /** Several fields at once, as an answer proposes them; a model among them by its id or its text. */
    fill(patch) {
      if (patch.model_text !== undefined) {
        actions.forgetImport();
        app.typed.paste = patch.model_text ?? "";
        return adopt(patch);
      }
      for (const field of Object.keys(patch)) {
        delete app.typed[field];
        delete app.entryErrors[field];
      }
      return change(patch);
    },
    /** The fewest GPUs with a split that holds the scenario on them: kvcore is asked until one does. */
    async fillFewestGpus(gpus) {
      const { scenario } = app;
      for (let pp = 1; pp <= gpus; pp += 1) {
        if (gpus % pp !== 0) continue;
        const split = { gpus, tp: gpus / pp, pp, dp: null, dcp: null };
        const plan = await ways.tryPlan(toPlanParams({ ...scenario, ...split }));
        if (scenario !== app.scenario) return;
        if (plan === null || plan.error || plan.verdict === "does_not_fit") continue;
        app.open = { ...app.open, parallel: app.open.parallel || pp > 1 };
        actions.fill(pp === 1 ? { ...split, tp: null, pp: null } : split);
        return;
      }
      actions.fill({ gpus });
    },
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
      app.given = nothingGiven();
      app.panelEntries = {};
      actions.forgetImport();
      change(completeScenario(app.data.default_state));
    },

    // custom config
    togglePaste(open) {
      if (app.pasteOpen === open) return;
      app.pasteOpen = open;
      render();
    },
    showPaste() {
      actions.togglePaste(true);
      document.getElementById("paste-box").open = true;
      document.getElementById("paste").focus();
    },
    toggleBox(box, open) {
      if (app.open[box] === open) return;
      app.open = { ...app.open, [box]: open };
      render();
    },
    typeConfig(text) {
      app.typed.paste = text;
      app.pasteOpen = true;
      actions.forgetImport();
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
      const candidate = { ...app.scenario, model: null, model_text: text, weights: null, hub: null, edits: {} };
      const verdict = await attempt(candidate);
      if (verdict === null) return;
      if (verdict.error && ["paste", "model"].includes(fieldOf(verdict.error, candidate))) return;
      app.scenario = candidate;
      actions.followModel();
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
    async copy(what, text, field = "share-text") {
      const done = await copyText(text, document.getElementById(field));
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
      for (const kind of Object.values(KINDS)) actions.closeList(kind);
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
  Object.assign(actions, createImport(app, { ...ways, adopt }));
  const { importFiles, forgetImport } = actions;
  Object.assign(actions, createLookUp(app, { ...ways, importFiles, forgetImport }));
  Object.assign(actions, createPanelActions(app, ways));
  Object.assign(actions, createLeverActions(app, { ...ways, change }));
  Object.assign(actions, createEdits(app, ways));
  app.actions = actions;
  return actions;
}
