/** The levers' panel: what it asks, one lever at a time, and what a lever's change is in the form. */

import { subjectOf } from "./panelinputs.js";
import { fromPlanChange, toPlanParams } from "./state.js";
import { factsForLevers } from "./traffic.js";

/**
 * @param {object} options
 * @param {string[]} options.codes every lever in its order
 * @param {(scenario: object) => object|null} options.known what the build computed
 */
export const leversPanel = ({ codes, known }) => ({
  id: "levers",
  subject: (app) => (app.goodPlan === null ? null : subjectOf(app.asked, factsForLevers(app))),
  known: ({ scenario, given }) => (Object.keys(given).length === 0 ? known(scenario) : null),
  async answer({ scenario, given }, { call, show }) {
    const params = { ...toPlanParams(scenario), ...given };
    let whole = { levers: [], dropped: [], shortcuts: [] };
    for (const [index, code] of codes.entries()) {
      const part = await call("levers", { ...params, only: [code] });
      if (part.error) return part;
      const joined = (name) => [...whole[name], ...part[name]];
      whole = { plan: part.plan, levers: joined("levers"), dropped: joined("dropped"), shortcuts: joined("shortcuts") };
      show(whole, (index + 1) / codes.length);
    }
    return whole;
  },
});

/** The scenario fields that pull a lever; null where the page has no such setting. */
export function patchOf({ change }) {
  const patch = fromPlanChange(change);
  if (patch !== null && patch.model) patch.model_text = null;
  return patch;
}
