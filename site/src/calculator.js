/** Asks kvcore for what the page shows, and lets only the newest answer through. */

import { curvePoints } from "./charts.js";
import { LINK_DEFAULTS, completeScenario, modelParams, toParams, toPlanParams } from "./state.js";
import { isEdited } from "./values.js";

const CURVE_QUIET = 60;

/** Refusals of an engine that leave the logical bytes as they are. */
const ENGINE_REFUSALS = new Set([
  "unsupported_model",
  "unsupported_format",
  "unsupported_option",
  "does_not_shard",
  "format_row_mismatch",
]);

const isAbort = (error) => error?.name === "AbortError";
const keyOf = (value) => JSON.stringify(value, (_, inner) => (isPlain(inner) ? sorted(inner) : inner));
const isPlain = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const sorted = (object) => Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));

const withoutEngine = ({ engine, engine_version, engine_options, ...rest }) => rest;

function withoutTokens(params) {
  const { tokens, ...rest } = params;
  return { tokens, rest };
}

/** The scenario as asked, whatever is asked of it. */
const scenarioKey = (scenario) => keyOf([toParams(scenario), toPlanParams(scenario)]);

/**
 * What the curve is asked for: one GPU's share where a plan says how the engine cuts it, all of it otherwise.
 * @param {object|null} plan the plan's answer
 */
function curveParams(scenario, trained, plan) {
  const { tokens, rest } = withoutTokens(toParams(scenario));
  const points = curvePoints(tokens, trained);
  if (plan === null || scenario.engine === null) return { ...(scenario.gpu ? withoutEngine(rest) : rest), points };
  const { tp, pp, dcp, dp } = plan;
  return {
    ...rest,
    points,
    sequences: Math.ceil(scenario.sequences / dp),
    ...Object.fromEntries(Object.entries({ tp, pp, dcp }).filter(([, size]) => size > 1)),
    ...(scenario.block_tokens === null ? {} : { block_tokens: scenario.block_tokens }),
  };
}

/**
 * @param {object} options
 * @param {(method: string, params: object, how: object) => Promise<object>} options.call
 * @param {object} options.data what the build computed
 */
export function createCalculator({ call, data }) {
  const shows = new Map([[data.default_state.model, data.default_answer.show]]);
  let ticket = 0;
  let planTicket = 0;
  let curveTimer = null;
  let described = {};

  const opening = scenarioKey(completeScenario(data.default_state));
  const linked = scenarioKey(completeScenario(LINK_DEFAULTS));

  /** The logical bytes alone, where it is the engine that refuses: the plan then says so. */
  async function estimated(scenario) {
    const params = toParams(scenario);
    const answer = await call("estimate", params, { lane: "estimate" });
    if (!scenario.gpu || params.engine === undefined || !ENGINE_REFUSALS.has(answer.error?.code)) return answer;
    return call("estimate", withoutEngine(params), { lane: "estimate" });
  }

  return {
    /**
     * What is known without the engine: the scenario the page opens with, or what links take for
     * granted, with any model of the catalog in its place.
     */
    precomputed(scenario) {
      if (scenario.model === null) return null;
      const key = scenarioKey({ ...scenario, model: data.default_state.model });
      if (key === opening && scenario.model === data.default_state.model) return { ...data.default_answer };
      const show = shows.get(scenario.model) ?? null;
      if (key === opening) {
        const estimate = data.answers?.[scenario.model];
        return estimate ? { estimate, plan: data.plans[scenario.model], show, curve: null } : null;
      }
      if (scenarioKey({ ...scenario, model: LINK_DEFAULTS.model }) !== linked) return null;
      const estimate = data.linked_answers?.[scenario.model];
      return estimate ? { estimate, plan: null, show, curve: null } : null;
    },

    /** The levers of the scenario the page opens with. */
    precomputedLevers: (scenario) =>
      scenario.model !== null && scenarioKey(scenario) === opening ? data.default_answer.levers : null,

    /**
     * The estimate and the model's layers together, so that the page never mixes two models.
     * @returns {Promise<{estimate, show}|{error}|null>} null when a newer question has come
     */
    async estimate(scenario) {
      const mine = ++ticket;
      const listed = scenario.model_text === null && !isEdited(scenario);
      const known = listed ? shows.get(scenario.model) : undefined;
      try {
        const [estimate, show] = await Promise.all([
          estimated(scenario),
          known ?? call("show", modelParams(scenario), { lane: "show" }),
        ]);
        if (mine !== ticket) return null;
        if (estimate.error) return { error: estimate.error };
        if (show.error) return { estimate, show: null };
        if (listed) shows.set(scenario.model, show);
        return { estimate, show };
      } catch (error) {
        if (isAbort(error) || mine !== ticket) return null;
        throw error;
      }
    },

    /**
     * Whether it fits. A refusal is an answer too.
     * @returns {Promise<object|null>} null when a newer question has come, or none can be answered
     */
    async plan(scenario) {
      const mine = ++planTicket;
      try {
        const plan = await call("plan", toPlanParams(scenario), { lane: "plan" });
        return mine === planTicket ? plan : null;
      } catch (error) {
        if (isAbort(error) || mine !== planTicket) return null;
        throw error;
      }
    },

    /**
     * The fields of the scenario's model, and its description in short.
     * @returns {Promise<object|null>} null when a newer question has come, or none can be answered
     */
    async fields(scenario) {
      const params = modelParams(scenario);
      const key = keyOf(params);
      if (described.key !== key) described = { key, answer: call("fields", params, { lane: "fields" }).catch(() => null) };
      const { answer } = described;
      const found = await answer;
      if (found === null && described.answer === answer) described = {};
      return found;
    },

    /** A question beside the scenario's own: the answer, or null where none comes. */
    async tryPlan(params) {
      try {
        return await call("plan", params, { lane: "trial" });
      } catch {
        return null;
      }
    },

    /** Identifies a curve: everything but the present context. */
    curveKey: (scenario, trained, plan) => keyOf(curveParams(scenario, trained, plan)),

    /** Runs what only has to keep up with the inputs when they rest; the newest alone. */
    afterRest(action) {
      clearTimeout(curveTimer);
      curveTimer = setTimeout(action, CURVE_QUIET);
    },

    /** Asks for a curve when the inputs rest; `done` is called only for the newest. */
    requestCurve(scenario, trained, plan, done) {
      this.afterRest(async () => {
        try {
          done(await call("curve", curveParams(scenario, trained, plan), { lane: "curve" }));
        } catch (error) {
          if (!isAbort(error)) done({ error: { code: "internal_error", params: {} } });
        }
      });
    },

    cancelPlan() {
      planTicket += 1;
    },

    cancelCurve() {
      clearTimeout(curveTimer);
    },
  };
}
