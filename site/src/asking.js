/** From a scenario to the answer on screen: at once where the build knew it, else from the engine. */

const SLOW_ANSWER = 150;

/**
 * @param {object} app
 * @param {object} calculator
 * @param {{render: () => void, announce: () => void}} ways
 */
export function createAsking(app, calculator, { render, announce }) {
  let slowTimer = null;
  let latest = 0;

  function adopt(scenario, { estimate, show }) {
    app.asked = scenario;
    app.answer = { estimate, stale: Object.keys(app.entryErrors).length > 0 };
    app.show = show;
    app.error = null;
  }

  function adoptCurve(scenario, curve) {
    app.curve = { ...curve, present: app.answer.estimate };
    app.curveKey = calculator.curveKey(scenario, app.trained);
  }

  /** Whether the page shows anything that only the engine can give. */
  function needsEngine(known) {
    if (known === null || !app.view.embed) return true;
    return app.view.view === "full" || app.view.view === "curve";
  }

  /** Asks for the present scenario; a quick answer first where there is one. */
  async function ask() {
    const known = calculator.precomputed(app.scenario);
    if (known) {
      adopt(app.scenario, known);
      if (known.curve) adoptCurve(app.scenario, known.curve);
      else if (app.engine.state !== "ready") app.curve = app.curveKey = null;
      announce();
    }
    if (!known?.curve && needsEngine(known)) {
      await attempt(app.scenario);
      return;
    }
    // Nothing is missing, and what was asked before is no longer wanted.
    latest += 1;
    app.pending = false;
    calculator.cancelCurve();
    clearTimeout(slowTimer);
  }

  /**
   * Asks the engine about a scenario and shows the answer.
   * @returns {Promise<object|null>} the answer or {error}; null when it was overtaken or the engine failed
   */
  async function attempt(scenario) {
    const mine = ++latest;
    app.pending = true;
    clearTimeout(slowTimer);
    slowTimer = setTimeout(() => {
      app.slowAnswer = true;
      render();
    }, SLOW_ANSWER);
    const result = await calculator.estimate(scenario).catch(() => "failed");
    if (result === null || mine !== latest) return null;
    clearTimeout(slowTimer);
    app.slowAnswer = false;
    app.pending = false;
    const answered = result === "failed" ? failed() : settle(scenario, result);
    announce();
    render();
    return answered;
  }

  /** The engine says itself, through its state, why it failed. */
  function failed() {
    if (app.behind) app.answer = { ...app.answer, stale: true };
    return null;
  }

  function settle(scenario, result) {
    if (!result.error) {
      adopt(scenario, result);
      refreshCurve(scenario);
      return result;
    }
    app.error = result.error;
    app.errorScenario = scenario;
    // A config that was only tried leaves the scenario and its answer as they were.
    if (scenario === app.scenario) app.answer = { ...app.answer, stale: true };
    return result;
  }

  /** The curve follows when the inputs rest: numbers come first. */
  function refreshCurve(scenario) {
    const show = (curve) => {
      if (curve.error || scenario !== app.asked) return;
      adoptCurve(scenario, curve);
      render();
    };
    if (app.curveKey === calculator.curveKey(scenario, app.trained)) calculator.afterRest(() => show(app.curve));
    else calculator.requestCurve(scenario, app.trained, show);
  }

  return { ask, attempt };
}
