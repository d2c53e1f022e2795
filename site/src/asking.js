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
    if (!scenario.gpu) app.planned = { plan: null, scenario };
  }

  const adoptPlan = (scenario, plan) => {
    app.planned = { plan, scenario };
  };

  function adoptCurve(scenario, curve) {
    app.curve = { ...curve, plan: app.goodPlan };
    app.curveKey = calculator.curveKey(scenario, app.trained, app.goodPlan);
  }

  /** Whether the page shows anything that only the engine can give. */
  function needsEngine(known) {
    if (known === null || !app.view.embed) return true;
    return app.view.view === "full" || app.view.view === "curve";
  }

  /** Asks for the present scenario; a quick answer first where there is one. */
  async function ask() {
    const { scenario } = app;
    const known = calculator.precomputed(scenario);
    if (known) {
      adopt(scenario, known);
      if (scenario.gpu) adoptPlan(scenario, known.plan);
      if (known.curve) adoptCurve(scenario, known.curve);
      else if (app.engine.state !== "ready") app.curve = app.curveKey = null;
      announce();
    }
    if (!known?.curve && needsEngine(known)) {
      await attempt(scenario);
      return;
    }
    // Nothing is missing, and what was asked before is no longer wanted.
    latest += 1;
    app.pending = false;
    calculator.cancelPlan();
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
    calculator.cancelPlan();
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
    if (!scenario.gpu || app.planCurrent) announce();
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
      if (scenario.gpu) refreshPlan(scenario);
      else refreshCurve(scenario);
      return result;
    }
    app.error = result.error;
    app.errorScenario = scenario;
    // A config that was only tried leaves the scenario and its answer as they were.
    if (scenario === app.scenario) app.answer = { ...app.answer, stale: true };
    return result;
  }

  /** The verdict follows the numbers: it takes several times as long. */
  async function refreshPlan(scenario) {
    if (!app.planCurrent) {
      const plan = await calculator.plan(scenario).catch(() => null);
      if (plan === null || scenario !== app.asked) return;
      adoptPlan(scenario, plan);
      announce();
      render();
    }
    refreshCurve(scenario);
  }

  /** The curve follows when the inputs rest: numbers come first. */
  function refreshCurve(scenario) {
    const show = (curve) => {
      if (curve.error || scenario !== app.asked) return;
      adoptCurve(scenario, curve);
      render();
    };
    const plan = app.goodPlan;
    if (app.curveKey === calculator.curveKey(scenario, app.trained, plan)) calculator.afterRest(() => show(app.curve));
    else calculator.requestCurve(scenario, app.trained, plan, show);
  }

  return { ask, attempt };
}
