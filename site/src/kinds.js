/** What can be chosen from a list: a model, one that drafts for it, a GPU. */

import { bytesText, parameterCount, shortTokens } from "./format.js";
import { NO_GPU, OTHER_GPU } from "./gpus.js";
import { mayBeRepository, pending } from "./hub.js";
import { attentionName } from "./messages.js";

/** What looks like a repository's name, and no model here has: it can be looked up. */
function lookUp({ t, resolve }, query) {
  if (!mayBeRepository(query) || resolve(query) !== null) return [];
  const repository = query.trim();
  return [{ id: "hub", name: t("hub.look_up", { repo: repository }), family: "hub", repository }];
}

function modelFacts(t, model) {
  const pieces = [];
  if (model.parameters) pieces.push(parameterCount(model.parameters));
  if (model.attention?.length) pieces.push(attentionName(t, model.attention));
  if (model.max_context) pieces.push(shortTokens(model.max_context));
  return pieces.join(" · ");
}

export const MODEL = {
  id: "model",
  find: (app, query) => [...lookUp(app, query), ...app.search(query)],
  current: (app) => app.scenario.model,
  /** What was typed stays until it has become a model. */
  shown: (app) => pending(app)?.query ?? app.modelName,
  describe({ t }, model) {
    return model.repository ? t("hub.sends") : modelFacts(t, model);
  },
  familyName: ({ t }, family) => (family === "hub" ? t("hub.family") : family || t("model.other_family")),
  label: "model.label",
  showAll: "model.show_all",
  none: "model.none",
};

const NO_DRAFT = "";

export const DRAFT = {
  id: "draft_model",
  find({ t, search }, query) {
    const found = search(query);
    return query.trim() === "" ? [{ id: NO_DRAFT, name: t("draft.none"), family: NO_DRAFT }, ...found] : found;
  },
  current: ({ scenario }) => scenario.draft_model ?? NO_DRAFT,
  shown: (app) => app.draftName ?? app.t("draft.none"),
  describe: ({ t }, model) => modelFacts(t, model),
  familyName: ({ t }, family) => family || t("draft.without"),
  label: "model.label",
  showAll: "model.show_all",
  none: "draft.no_match",
};

const special = ({ t }) => [
  { id: NO_GPU, name: t("gpu.none"), family: "" },
  { id: OTHER_GPU, name: t("gpu.own"), family: "" },
];

export const GPU = {
  id: "gpu",
  find: (app, query) => app.gpus.search(query, special(app)),
  current: (app) => app.gpu?.id ?? app.scenario.gpu ?? NO_GPU,
  shown(app) {
    const { gpu } = app.scenario;
    if (!gpu) return app.t("gpu.none");
    return gpu === OTHER_GPU ? app.t("gpu.own") : (app.gpu?.name ?? gpu);
  },
  describe({ t, view: { unit } }, { id, memory_bytes: bytes }) {
    if (id === NO_GPU || id === OTHER_GPU) return "";
    return bytes === null ? t("gpu.unknown_memory") : bytesText(bytes, unit);
  },
  familyName: ({ t }, family) => family || t("gpu.by_hand"),
  label: "gpu.label",
  showAll: "gpu.show_all",
  none: "gpu.no_match",
};

export const KINDS = { model: MODEL, draft_model: DRAFT, gpu: GPU };
