/**
 * Files of models, dropped or chosen: kvcore says what they are, and the scenario takes it over.
 *
 * @typedef {object} Imported what a file gave; `app.imports` holds it by the model's text
 * @property {string} name of the file that says what the model is
 * @property {string} kind "gguf", "checkpoint" or "config"
 * @property {Array<string>} files
 * @property {string} model_name
 * @property {object|null} weights
 * @property {Array<object>} warnings
 * @property {number} read_bytes, total_bytes of all files that came together
 */

/** kvcore reads no more, and says so of one more. */
const MOST_FILES = 2000;

const named = (given) => (given instanceof File ? { name: given.webkitRelativePath || given.name, file: given } : given);

/** Whether what is dragged are files; they can't be seen before they are dropped. */
export const carriesFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");

/** What a drop brings, asked for at once: it is gone when the event is over. */
export function dropped(transfer) {
  const items = [...(transfer.items ?? [])].filter(({ kind }) => kind === "file");
  const entries = items.map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile()).filter(Boolean);
  return entries.length > 0 ? entries : [...transfer.files];
}

/** The files in dropped folders too, each as {name: path, file}. */
export async function filesOf(entries) {
  const found = [];
  async function visit(entry) {
    if (found.length > MOST_FILES) return;
    if (entry instanceof File) {
      found.push(named(entry));
    } else if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      found.push({ name: entry.fullPath.replace(/^\//, ""), file });
    } else {
      const reader = entry.createReader();
      for (;;) {
        const batch = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
        if (batch.length === 0) return;
        for (const inner of batch) await visit(inner);
      }
    }
  }
  for (const entry of entries) await visit(entry);
  return found;
}

const asTarget = ({ model_text, weights }, origin) => ({
  model: null,
  model_text,
  weights,
  hub: origin?.name ?? null,
  // Weights of another model, by hand, are not those of this file.
  ...(weights === null ? {} : { weight_bytes: null, weight_format: null }),
});
const asDraft = ({ model_text, weights }) => ({
  draft_model: null,
  draft_model_text: model_text,
  draft_weights: weights,
});
const NO_DRAFT = { draft_model: null, draft_model_text: null, draft_weights: null };

/**
 * @param {object} app
 * @param {{call: Function, render: Function, say: Function, adopt: (patch: object) => Promise<void>}} ways
 */
export function createImport(app, { call, render, say, adopt }) {
  let latest = 0;

  function show(importing) {
    app.importing = importing;
    render();
  }

  function fail(error, role) {
    show({ state: "failed", role, error });
    return { error };
  }

  /** kvcore's description, or {error}; null when newer files have come or the engine failed. */
  async function describe(files, mine) {
    try {
      const found = await call("describe", {}, { lane: "describe", files });
      return mine === latest ? found : null;
    } catch {
      // Overtaken, or the engine says itself why it failed.
      if (mine === latest) show(null);
      return null;
    }
  }

  function remember({ models, warnings, read_bytes, total_bytes }) {
    const imports = new Map(app.imports);
    for (const model of models) imports.set(model.model_text, { ...model, warnings, read_bytes, total_bytes });
    app.imports = imports;
  }

  return {
    /**
     * Reads files, of which nothing is kept but what kvcore says of them, and asks about their model.
     * @param {Array<File|{name: string, file: File}>} given
     * @param {object} [how]
     * @param {{name: string}} [how.origin] what the Hub calls them, where they come from there: who got them says
     *   itself what went wrong
     * @param {"target"|"draft"} [how.role] what a single model is for
     * @returns {Promise<object|null>} {} or {error}; null when newer files have come
     */
    async importFiles(given, { origin = null, role = "target" } = {}) {
      latest += 1;
      const mine = latest;
      const files = given.map(named);
      if (files.length === 0) {
        show({ state: "empty", role });
        return null;
      }
      show({ state: "reading", role, count: files.length });
      const found = await describe(files, mine);
      if (found === null) return null;
      if (found.error) {
        if (origin === null) return fail(found.error, role);
        show(null);
        return found;
      }
      const [target, draft] = found.models;
      if (role === "draft" && draft) {
        const names = found.models.map(({ name }) => name);
        return fail({ code: "several_models", params: { count: names.length, names, most: 1 } }, role);
      }
      remember(found);
      app.importing = null;
      if (role === "draft") {
        await adopt(asDraft(target));
      } else {
        app.typed.paste = target.model_text;
        await adopt({ ...asTarget(target, origin), ...(draft ? asDraft(draft) : {}) });
      }
      say(app.t("files.read", { names: found.models.map(({ name }) => name).join(", ") }));
      return {};
    },

    async importDropped(entries) {
      latest += 1;
      const mine = latest;
      const files = await filesOf(entries).catch(() => []);
      return mine === latest ? this.importFiles(files) : null;
    },

    forgetImport() {
      latest += 1;
      app.importing = null;
    },

    /** The model drafts for the draft, and the other way round. */
    swapDraft() {
      const { model, model_text, weights, draft_model, draft_model_text, draft_weights } = app.scenario;
      app.typed.paste = draft_model_text ?? "";
      return adopt({
        model: draft_model,
        model_text: draft_model_text,
        weights: draft_weights,
        hub: null,
        draft_model: model,
        draft_model_text: model_text,
        draft_weights: weights,
      });
    },

    chooseDraft: (id) => adopt({ ...NO_DRAFT, draft_model: id || null }),
  };
}
