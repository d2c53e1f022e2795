/** Fields of the model changed by hand: tried first, and kept in the scenario once kvcore has read them. */

import { fieldOf, isOfModel } from "./fields.js";
import { entryOf, originalOf, sameValue, typedPaths, valueOf } from "./values.js";

const TYPING_QUIET = 150;
/** Numbers and verdict come first; the list of fields follows. */
const LIST_QUIET = 250;

export const NO_FIELDS = { of: null, rows: [], addable: [], error: null };

const sameModel = (one, other) => one.model === other.model && one.model_text === other.model_text;

/**
 * @param {object} app
 * @param {{render, ask, commit, attempt, describe, packConfig, shortenLink: Function}} ways
 *   `describe` asks for the fields of a scenario's model
 */
export function createEdits(app, { render, ask, commit, attempt, describe, packConfig, shortenLink }) {
  let typingTimer = null;
  let listTimer = null;
  let newest = 0;

  function forget(paths) {
    for (const path of paths) {
      delete app.typed[entryOf(path)];
      delete app.entryErrors[entryOf(path)];
    }
  }

  function markStale(more = false) {
    app.answer = { ...app.answer, stale: more || Object.keys(app.entryErrors).length > 0 };
  }

  /** The scenario's edits with all that is typed; what the config says anyway is none. The last typed is last. */
  function wanted() {
    const edits = { ...app.scenario.edits };
    for (const path of typedPaths(app)) {
      const value = valueOf(app.typed[entryOf(path)]);
      delete edits[path];
      if (!sameValue(value, originalOf(app, path))) edits[path] = value;
    }
    return edits;
  }

  async function tryTyped() {
    clearTimeout(typingTimer);
    const mine = ++newest;
    const { scenario } = app;
    const candidate = { ...scenario, edits: wanted() };
    if (sameValue(candidate.edits, scenario.edits)) {
      forgetErrors();
      ask();
      render();
      return;
    }
    const before = app.error;
    const verdict = await attempt(candidate);
    if (mine !== newest) return;
    if (verdict === null || scenario !== app.scenario) {
      // Another input or a link came between: what is still typed is asked again after it.
      if (app.engine.state !== "failed") later();
      return;
    }
    forgetErrors();
    if (verdict.error && isOfModel(verdict.error, candidate) && !sameValue(verdict.error, before)) {
      const field = fieldOf(verdict.error, candidate);
      const last = Object.keys(candidate.edits).at(-1);
      app.entryErrors[last === undefined || field.startsWith("edit-") ? field : entryOf(last)] = verdict.error;
      app.error = null;
      markStale();
      render();
      return;
    }
    app.scenario = candidate;
    markStale(Boolean(verdict.error));
    await settle({ push: false });
  }

  function forgetErrors() {
    for (const field of Object.keys(app.entryErrors)) if (field.startsWith("edit-")) delete app.entryErrors[field];
  }

  function later() {
    clearTimeout(typingTimer);
    typingTimer = setTimeout(tryTyped, TYPING_QUIET);
  }

  /** The scenario has other edits: the link follows. */
  async function settle(how) {
    const { scenario } = app;
    await packConfig();
    if (scenario !== app.scenario) return;
    commit(how);
    render();
  }

  function drop(paths) {
    newest += 1;
    forget(paths);
    forgetErrors();
    const edits = Object.fromEntries(Object.entries(app.scenario.edits).filter(([path]) => !paths.includes(path)));
    if (!sameValue(edits, app.scenario.edits)) app.scenario = { ...app.scenario, edits };
    ask();
    render();
    settle({ push: true });
    if (typedPaths(app).length > 0) later();
  }

  /** The list where it is open; and a text given by hand makes a long link, which the fields that matter do not. */
  async function list() {
    const { scenario } = app;
    const own = scenario.model_text !== null && !app.view.embed;
    if (!app.open.fields && !own) return;
    const found = await describe(scenario);
    if (found === null || scenario.edits !== app.scenario.edits || !sameModel(scenario, app.scenario)) return;
    const { fields: rows = [], addable = [], reduced = null, error = null } = found;
    app.fields = { of: scenario, rows, addable, error };
    render();
    if (own && reduced !== null && reduced.length < scenario.model_text.length) shortenLink(reduced);
  }

  return {
    /** Called whenever the scenario has changed: another model has other fields, and none typed. */
    followModel() {
      clearTimeout(listTimer);
      if (app.fields.of !== null && !sameModel(app.fields.of, app.scenario)) {
        newest += 1;
        forget(typedPaths(app));
        app.fields = NO_FIELDS;
        app.adding = { name: "", value: "" };
      }
      listTimer = setTimeout(list, app.open.fields && app.fields.of === null ? 0 : LIST_QUIET);
    },
    toggleFields(open) {
      if (app.open.fields === open) return;
      app.open = { ...app.open, fields: open };
      if (open) list();
      render();
    },
    typeEdit(path, text) {
      delete app.typed[entryOf(path)];
      app.typed[entryOf(path)] = text;
      later();
      render();
    },
    /** What was typed and read is written as the page writes it. */
    settleEdit(path) {
      const typed = app.typed[entryOf(path)];
      if (typed === undefined || app.entryErrors[entryOf(path)]) return;
      const value = path in app.scenario.edits ? app.scenario.edits[path] : originalOf(app, path);
      if (!sameValue(valueOf(typed), value)) return;
      forget([path]);
      render();
    },
    revertEdit: (path) => drop([path]),
    revertAll: () => drop([...new Set([...Object.keys(app.scenario.edits), ...typedPaths(app)])]),
    typeNew(patch) {
      app.adding = { ...app.adding, ...patch };
      render();
    },
    addField() {
      const { name, value } = app.adding;
      const missing = name.trim() === "" ? "add-name" : value.trim() === "" ? "add-value" : null;
      if (missing !== null) {
        document.getElementById(missing)?.focus();
        return;
      }
      app.adding = { name: "", value: "" };
      app.typed[entryOf(name.trim())] = value;
      document.getElementById("add-name")?.focus();
      tryTyped();
      render();
    },
  };
}
