/** Pulling a lever, and taking it back. */

import { patchOf } from "./levers.js";

const REMEMBERED = 20;

/** Called after the rendering that the caller has asked for. */
const focusSoon = (...ids) =>
  queueMicrotask(() =>
    ids
      .map((id) => document.getElementById(id))
      .find((node) => node !== null && !node.disabled)
      ?.focus(),
  );

export function createLeverActions(app, { render, ask, commit, say, packConfig, change }) {
  return {
    /**
     * Sets what a lever changes; the answer that follows is the row's own.
     * @param {{lever: string, change: object, name?: string}} row `name`: the key of its words, where it is no lever
     * @param {string} [place] where it was pulled, "levers", "to-fit" or "traffic": the way back is offered there
     */
    pullLever(row, place = "levers") {
      const before = app.scenario;
      const patch = patchOf(row);
      if (patch.model) app.typed.paste = "";
      for (const field of Object.keys(patch)) {
        delete app.typed[field];
        delete app.entryErrors[field];
      }
      change(patch);
      const { lever, name = `lever.${lever}` } = row;
      app.pulled = [...app.pulled.slice(-REMEMBERED), { before, after: app.scenario, lever, name, place }];
      say(app.t("levers.applied", { lever: app.t(name) }));
      focusSoon(`${place}-undo`);
    },

    /** Back to the very scenario before the lever was pulled. */
    async undoLever(place = "levers") {
      const { before, lever, name } = app.undoable;
      app.pulled = app.pulled.slice(0, -1);
      app.scenario = before;
      app.typed = before.model_text === null ? {} : { paste: before.model_text };
      app.entryErrors = {};
      await packConfig();
      ask();
      commit({ push: true });
      say(app.t("levers.undone", { lever: app.t(name) }));
      render();
      focusSoon(`${place}-undo`, `${place}-${lever}`, `${place}-toggle`, "levers-toggle");
    },
  };
}
