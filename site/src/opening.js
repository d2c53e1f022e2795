/** From a link to a scenario, naming what of the link can't be used. */

import { closed } from "./combobox.js";
import { MAX_PACKED, pack, unpack } from "./pack.js";
import { VIEW_DEFAULTS, completeScenario } from "./state.js";

const FIRST_SCREEN = new Set(["model", "tokens", "sequences", "kv_format"]);
const SUGGESTIONS = 3;

/** The link's config.json, or the problem with it. */
async function customModel(packed) {
  if (packed === null) return { text: null, problems: [] };
  try {
    return { text: await unpack(packed), problems: [] };
  } catch {
    return { text: null, problems: [{ code: "link_cfg", params: {} }] };
  }
}

/** Puts a parsed link into the app; asks and shows nothing yet. */
export async function openLink(app, found) {
  const given = { ...app.data.default_state, ...found.scenario };
  const { text, problems } = await customModel(found.cfg);
  const model = text === null ? app.resolve(given.model) : null;
  if (text === null && model === null) {
    const suggestions = app.search(given.model).slice(0, SUGGESTIONS);
    problems.push({ code: "link_model", params: { value: given.model, suggestions } });
  }
  const catalogModel = model?.id ?? app.data.default_state.model;
  app.scenario = {
    ...completeScenario({ ...given, model: text === null ? catalogModel : null }),
    model_text: text,
  };
  app.view = { ...VIEW_DEFAULTS, ...found.view };
  app.t = app.translator(app.chooseLanguage(found.view.lang));
  app.problems = [...found.problems, ...problems];
  app.typed = text === null ? {} : { paste: text };
  app.entryErrors = {};
  app.error = null;
  app.combo = closed;
  app.moreOpen ||= Object.keys(found.scenario).some((key) => !FIRST_SCREEN.has(key));
  await packConfig(app);
}

/** Keeps the custom model's short form, which links and saved copies carry. */
export async function packConfig(app) {
  app.cfg = app.scenario.model_text === null ? null : await pack(app.scenario.model_text);
  app.cfgTooLong = app.cfg !== null && app.cfg.length > MAX_PACKED;
}
