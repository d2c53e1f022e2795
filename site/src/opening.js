/** From a link to a scenario, naming what of the link can't be used. */

import { closed } from "./combobox.js";
import { isRepository } from "./hub.js";
import { MAX_PACKED, pack, unpack } from "./pack.js";
import { LINK_DEFAULTS, VIEW_DEFAULTS, completeScenario, filesJson, filesOfJson } from "./state.js";

/** Which disclosure holds a field that is not on the first screen. */
const BOXES = {
  fields: ["edits"],
  rules: [
    "engine",
    "engine_version",
    "engine_options",
    "memory_fraction",
    "block_tokens",
    "batched_tokens",
    "weight_format",
    "weight_bytes",
    "reserve_bytes",
    "pool_bytes",
  ],
  parallel: ["tp", "pp", "dp", "dcp"],
  more: [
    "shared_prefix",
    "draft",
    "indexer_format",
    "state_format",
    "no_state",
    "checkpoint_interval",
    "encoder_tokens",
    "draft_model",
  ],
};
const SUGGESTIONS = 3;

/** Texts as they were given, by their short forms: going back finds them again. */
const asGiven = new Map();

/** The link's config.json, or the problem with it. */
async function customModel(packed) {
  if (packed === null) return { text: null, problems: [] };
  if (asGiven.has(packed)) return { text: asGiven.get(packed), problems: [] };
  try {
    return { text: await unpack(packed), problems: [] };
  } catch {
    return { text: null, problems: [{ code: "link_cfg", params: {} }] };
  }
}

/** What the link says of files beside the model's text, or the problem with it. */
async function packedFiles(packed) {
  if (packed === null) return { given: {}, problems: [] };
  try {
    return { given: filesOfJson(await unpack(packed)), problems: [] };
  } catch {
    return { given: {}, problems: [{ code: "link_files", params: {} }] };
  }
}

/** Puts a parsed link into the app; asks and shows nothing yet. */
export async function openLink(app, found) {
  const { default_state: opening } = app.data;
  const given = { ...(found.linked ? LINK_DEFAULTS : opening), ...found.scenario };
  const { text, problems } = await customModel(found.cfg);
  const files = await packedFiles(found.files);
  const model = text === null ? app.resolve(given.model) : null;
  if (text === null && model === null) {
    const suggestions = app.search(given.model).slice(0, SUGGESTIONS);
    problems.push({ code: "link_model", params: { value: given.model, suggestions } });
  }
  // Edits of a model that is not here are not for the one shown in its place.
  const edits = text === null && (model === null || found.cfg !== null) ? { edits: {} } : {};
  const catalogModel = model?.id ?? LINK_DEFAULTS.model;
  if (given.draft_model) {
    const { draft_model: value } = given;
    given.draft_model = app.resolve(value)?.id ?? null;
    if (given.draft_model === null) {
      problems.push({ code: "link_draft", params: { value, suggestions: [] } });
    }
  }
  app.scenario = {
    ...completeScenario({ ...given, ...files.given, ...edits, model: text === null ? catalogModel : null }),
    model_text: text,
  };
  // Weights are those of the link's own model alone.
  if (text === null) app.scenario.weights = null;
  app.importing = null;
  app.scenario.hub = text !== null && found.hub !== null && isRepository(found.hub) ? found.hub : null;
  app.view = { ...VIEW_DEFAULTS, ...found.view };
  app.t = app.translator(app.chooseLanguage(found.view.lang));
  app.problems = [...found.problems, ...problems, ...files.problems];
  app.typed = text === null ? {} : { paste: text };
  app.entryErrors = {};
  app.error = null;
  app.hub = null;
  app.given = found.given;
  app.panelEntries = {};
  for (const [id, values] of Object.entries(found.given)) {
    if (Object.keys(values).length > 0) app.panels[id].open = true;
  }
  app.combos = { model: closed, draft_model: closed, gpu: closed };
  for (const [box, fields] of Object.entries(BOXES)) {
    // An engine beside a GPU is in the answer itself: nothing needs to be opened to see it.
    const told = fields.filter((field) => field !== "engine" || !found.scenario.gpu);
    if (told.some((field) => field in found.scenario)) app.open = { ...app.open, [box]: true };
  }
  await packConfig(app);
}

/**
 * Keeps the packed form of what files or a text say, which links and saved copies carry.
 * @param {string} [short] another text that means the same
 */
export async function packConfig(app, short) {
  const { scenario } = app;
  const { model_text: text } = scenario;
  const described = filesJson(scenario);
  const packed = text === null ? null : await pack(short ?? text);
  const files = described === null ? null : await pack(described);
  if (scenario !== app.scenario) return;
  if (packed !== null) asGiven.set(packed, text);
  app.cfg = packed;
  app.files = files;
  app.cfgTooLong = [packed, files].some((part) => part !== null && part.length > MAX_PACKED);
}
