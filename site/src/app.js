/** Everything the page knows: what is asked, what is answered, what is open. Views only read it. */

import { closed } from "./combobox.js";
import { createTranslator, preferredLanguage } from "./i18n.js";
import { fileName } from "./save.js";
import { createResolver, createSearch } from "./search.js";
import { VIEW_DEFAULTS, completeScenario } from "./state.js";
import { remembered } from "./storage.js";

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
    curve: { ...data.default_answer.curve, present: data.default_answer.estimate },
    curveKey: null,
    options: data.options,

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
    combo: closed,
    pasteOpen: false,
    moreOpen: false,
    dragging: false,
    answerHidden: false,
    chartWidth: 720,
    saved: location.protocol === "file:",

    link: "",
    cfg: null,
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
    get modelName() {
      return this.model?.name ?? this.answer.estimate.name ?? this.t("model.custom");
    },
    /** The layers of the model that is chosen, which may not be the one answered yet. */
    get ownShow() {
      const same = this.asked.model === this.scenario.model && this.asked.model_text === this.scenario.model_text;
      return same ? this.show : null;
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
