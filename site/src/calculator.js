/** Asks kvcore for what the page shows, and lets only the newest answer through. */

import { curvePoints } from "./charts.js";
import { toParams } from "./state.js";

const CURVE_QUIET = 60;

const isAbort = (error) => error?.name === "AbortError";
const keyOf = (params) => JSON.stringify(params, Object.keys(params).sort());

function withoutTokens(params) {
  const { tokens, ...rest } = params;
  return { tokens, rest };
}

/**
 * @param {object} options
 * @param {(method: string, params: object, how: object) => Promise<object>} options.call
 * @param {object} options.data what the build computed
 */
export function createCalculator({ call, data }) {
  const shows = new Map([[data.default_state.model, data.default_answer.show]]);
  const defaultParams = keyOf(toParams({ engine_options: {}, model_text: null, engine: null, ...data.default_state }));
  let ticket = 0;
  let curveTimer = null;

  const modelKey = (params) => params.model_text ?? params.model;

  return {
    /** What is known without the engine: the default scenario, or another model in its place. */
    precomputed(scenario) {
      const params = toParams(scenario);
      if (params.model === undefined) return null;
      const asDefault = keyOf({ ...params, model: data.default_state.model });
      if (asDefault !== defaultParams) return null;
      if (params.model === data.default_state.model) return { ...data.default_answer };
      const estimate = data.answers?.[params.model];
      return estimate ? { estimate, show: shows.get(params.model) ?? null, curve: null } : null;
    },

    /**
     * The estimate and the model's layers together, so that the page never mixes two models.
     * @returns {Promise<{estimate, show}|{error}|null>} null when a newer question has come
     */
    async estimate(scenario) {
      const mine = ++ticket;
      const params = toParams(scenario);
      const model = modelKey(params);
      const described = params.model_text === undefined ? { model: params.model } : { model_text: params.model_text };
      try {
        const [estimate, show] = await Promise.all([
          call("estimate", params, { lane: "estimate" }),
          shows.get(model) ?? call("show", described, { lane: "show" }),
        ]);
        if (mine !== ticket) return null;
        if (estimate.error) return { error: estimate.error };
        if (show.error) return { estimate, show: null };
        if (params.model_text === undefined) shows.set(model, show);
        return { estimate, show };
      } catch (error) {
        if (isAbort(error) || mine !== ticket) return null;
        throw error;
      }
    },

    /** Identifies a curve: everything but the present context. */
    curveKey(scenario, trained) {
      const { tokens, rest } = withoutTokens(toParams(scenario));
      return keyOf({ ...rest, points: curvePoints(tokens, trained) });
    },

    /** Runs what only has to keep up with the inputs when they rest; the newest alone. */
    afterRest(action) {
      clearTimeout(curveTimer);
      curveTimer = setTimeout(action, CURVE_QUIET);
    },

    /** Asks for a curve when the inputs rest; `done` is called only for the newest. */
    requestCurve(scenario, trained, done) {
      const { tokens, rest } = withoutTokens(toParams(scenario));
      this.afterRest(async () => {
        try {
          done(await call("curve", { ...rest, points: curvePoints(tokens, trained) }, { lane: "curve" }));
        } catch (error) {
          if (!isAbort(error)) done({ error: { code: "internal_error", params: {} } });
        }
      });
    },

    cancelCurve() {
      clearTimeout(curveTimer);
    },
  };
}
