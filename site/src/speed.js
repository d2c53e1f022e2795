/** The panel of speed and cost: bounds of decoding, and list prices to start from. */

import { subjectOf } from "./panelinputs.js";
import { toPlanParams } from "./state.js";

export const speedPanel = {
  id: "speed",
  subject: ({ goodPlan, asked, given }) => (goodPlan === null ? null : subjectOf(asked, given.speed)),
  async answer({ scenario, given }, { call }) {
    const bounds = await call("decode", { ...toPlanParams(scenario), ...given });
    if (bounds.error) return bounds;
    // Nobody lists a price of memory given by hand.
    const { prices = [], currency = null } = await call("prices", { gpu: scenario.gpu });
    return { ...bounds, prices, currency };
  },
};
