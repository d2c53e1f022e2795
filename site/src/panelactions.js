/** What a person does with panels: open them, fill them in, give them a file, stop them. */

import { PANEL_INPUTS, readInput } from "./panelinputs.js";

export function createPanelActions(app, { render, commit, panels, say }) {
  const entryOf = (id, name) => `${id}.${name}`;

  /** A new object for each change: panels see by it that they are asked anew. */
  function give(id, name, value) {
    const { [name]: _, ...others } = app.given[id];
    app.given = { ...app.given, [id]: value === null ? others : { ...others, [name]: value } };
  }

  function settle(id, name) {
    const { [entryOf(id, name)]: _, ...others } = app.panelEntries;
    app.panelEntries = others;
  }

  return {
    togglePanel(id) {
      const state = app.panels[id];
      state.open = !state.open;
      render();
    },

    retryPanel: (id) => panels.retry(id),

    stopPanel(id) {
      panels.cancel(id);
      say(app.t("panel.stopped"));
    },

    /** Text that can't be read stays as typed, with its error, and the panel keeps what it was asked before. */
    typePanelInput(id, name, text) {
      const blank = text.trim() === "";
      const value = blank ? null : readInput(id, name, text);
      const error = !blank && value === null ? { code: PANEL_INPUTS[id][name].code, params: {} } : null;
      app.panelEntries = { ...app.panelEntries, [entryOf(id, name)]: { text, error } };
      if (error === null) {
        give(id, name, value);
        commit({ push: false });
      }
      render();
    },

    settlePanelInput(id, name) {
      if (app.panelEntries[entryOf(id, name)]?.error !== null) return;
      settle(id, name);
      render();
    },

    /** @param {string|number|null} value null takes it away */
    choosePanelInput(id, name, value) {
      settle(id, name);
      give(id, name, value);
      commit({ push: false });
      render();
    },

    /** Several at once. @param {Record<string, string|number|null>} values */
    choosePanelInputs(id, values) {
      for (const [name, value] of Object.entries(values)) {
        settle(id, name);
        give(id, name, value);
      }
      commit({ push: false });
      render();
    },

    /** @param {File|null} file read where it lies; null takes it away */
    givePanelFile(id, file) {
      app.panelFiles = { ...app.panelFiles, [id]: file };
      app.panelRefused = { ...app.panelRefused, [id]: null };
      render();
    },

    dragOverPanel(id) {
      if (app.panelDragged === id) return;
      app.panelDragged = id;
      render();
    },
  };
}
