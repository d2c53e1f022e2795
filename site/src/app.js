/** Everything the page knows: what is asked, what is answered, what is open. Views only read it. */

import { closed } from "./combobox.js";
import { NO_FIELDS } from "./edits.js";
import { emptyLog } from "./logs.js";
import { createTranslator, preferredLanguage } from "./i18n.js";
import { nothingGiven } from "./panelinputs.js";
import { panelState } from "./panels.js";
import { fileName } from "./save.js";
import { createGpus } from "./gpus.js";
import { createResolver, createSearch } from "./search.js";
import { VIEW_DEFAULTS, completeScenario } from "./state.js";
import { remembered } from "./storage.js";
import { isEdited } from "./values.js";

/** Estimates are marked where they enter, and listed below the verdict. */
const SAID_IN_THE_ANSWER = new Set(["reserve_estimated", "weights_estimated"]);

export function createApp(data) {
  const resolve = createResolver(data.models);
  const translators = new Map();
  const translator = (lang) => {
    if (!translators.has(lang)) translators.set(lang, createTranslator(data.locales, lang));
    return translators.get(lang);
  };
  /** What a link says, else what was chosen before, else what the browser prefers. */
  const chooseLanguage = (linked) => {
    const wanted = [linked, remembered("lang"), ...(navigator.languages ?? [])];
    return preferredLanguage(data.locales, wanted.filter(Boolean));
  };

  return {
    data,
    resolve,
    search: createSearch(data.models),
    translator,
    chooseLanguage,
    t: translator(chooseLanguage(null)),

    scenario: completeScenario(data.default_state),
    /** The scenario whose answer is on screen. */
    asked: completeScenario(data.default_state),
    answer: { estimate: data.default_answer.estimate, stale: false },
    show: data.default_answer.show,
    /** The last verdict and the scenario it is about; the plan is an answer, {error}, or null without a GPU. */
    planned: { plan: data.default_answer.plan, scenario: null },
    curve: { ...data.default_answer.curve, plan: data.default_answer.plan },
    curveKey: null,
    panels: { levers: panelState(true), traffic: panelState(false), reuse: panelState(false), speed: panelState(false) },
    /** What panels ask for beside the scenario, by panel and name (panelinputs.js), and the files given to them. */
    given: nothingGiven(),
    panelFiles: {},
    /** Why a file was not taken, by panel. */
    panelRefused: {},
    /** Text as typed into them, {text, error} by panel and name; and the panel a file is dragged over. */
    panelEntries: {},
    panelDragged: null,
    /** Levers pulled, newest last: {before, after, lever, name, place}; each can be undone while its scenario is in force. */
    pulled: [],
    options: data.options,
    gpus: createGpus(data.gpus),
    /** The last look-up on the Hugging Face Hub, if any (hub.js). */
    hub: null,
    /** What files gave, by the text of their model; and what of them is being read or could not be (files.js). */
    imports: new Map(),
    importing: null,

    /** Text as typed, where it differs from how the page would write it. */
    typed: {},
    entryErrors: {},
    error: null,
    errorScenario: null,
    problems: [],
    pending: false,
    slowAnswer: false,
    engine: { state: "idle", detail: null, slow: false },

    view: { ...VIEW_DEFAULTS },
    combos: { model: closed, draft_model: closed, gpu: closed },
    pasteOpen: false,
    open: { fields: false, rules: false, parallel: false, more: false },
    fields: NO_FIELDS,
    adding: { name: "", value: "" },
    dragging: false,
    log: emptyLog,
    answerHidden: false,
    chartWidth: 720,
    saved: location.protocol === "file:",

    link: "",
    cfg: null,
    files: null,
    cfgTooLong: false,
    lastModel: data.default_state.model,
    share: {
      tab: "link",
      copied: null,
      refused: false,
      embed: { view: "answer", theme: "auto", lang: chooseLanguage(null), resize: true },
    },

    get model() {
      return this.scenario.model === null ? null : resolve(this.scenario.model);
    },
    get gpu() {
      return this.gpus.find(this.scenario.gpu);
    },
    get modelName() {
      const name = this.model?.name ?? this.scenario.hub ?? this.answer.estimate.name ?? this.t("model.custom");
      return isEdited(this.scenario) ? this.t("model.edited", { name }) : name;
    },
    /** What links and copies say of a model that is not in the catalog. */
    get packed() {
      return { cfg: this.cfg, files: this.files, hub: this.scenario.hub };
    },
    /** The model that drafts for it, by name; null without one. */
    get draftName() {
      const { draft_model: id, draft_model_text: text } = this.scenario;
      if (text !== null) return this.imports.get(text)?.model_name ?? this.t("draft.own");
      return id === null ? null : (resolve(id)?.name ?? id);
    },
    /** The layers of the model that is chosen, which may not be the one answered yet. */
    get ownShow() {
      const same = ["model", "model_text", "edits"].every((field) => this.asked[field] === this.scenario[field]);
      return same ? this.show : null;
    },
    /** Whether the verdict is about the scenario whose numbers are on screen. */
    get planCurrent() {
      return this.planned.scenario === this.asked;
    },
    /** The verdict to show: of the model and the GPUs on screen, if perhaps of older inputs. */
    get plan() {
      const { plan, scenario } = this.planned;
      if (this.planCurrent || plan === null || scenario === null) return plan;
      const same = ["model", "model_text", "gpu"].every((field) => scenario[field] === this.asked[field]);
      return same ? plan : null;
    },
    /** The plan that holds for the scenario on screen; null where there is none or it was refused. */
    get goodPlan() {
      const { plan } = this.planned;
      return this.planCurrent && plan !== null && !plan.error ? plan : null;
    },
    /** The lever that was pulled last, as long as nothing else has been changed since. */
    get undoable() {
      const last = this.pulled.at(-1);
      return last?.after === this.scenario ? last : null;
    },
    /** What kvcore warns of, said once, without what the answer says itself. */
    get warnings() {
      const all = [
        ...(this.answer.estimate.warnings ?? []),
        ...(this.ownShow?.warnings ?? []),
        ...(this.goodPlan?.warnings ?? []),
      ];
      const seen = new Set();
      return all.filter((warning) => {
        const key = JSON.stringify([warning.code, warning.params]);
        if (SAID_IN_THE_ANSWER.has(warning.code) || seen.has(key)) return false;
        seen.add(key);
        return true;
      });
    },
    /** Whether the answer on screen is to an older question than the inputs ask. */
    get behind() {
      return this.asked !== this.scenario;
    },
    get fileName() {
      return fileName(this);
    },
    get trained() {
      return this.answer.estimate.max_context ?? null;
    },
  };
}
