/** The panel of prefix reuse: made-up traffic or a trace, replayed through the pool of the plan. */

import { subjectOf } from "./panelinputs.js";
import { toCacheParams } from "./state.js";

export const POLICIES = ["lru", "fifo", "priority"];
export const ROUTINGS = ["random", "prefix"];

/** What the api is asked: of a file what made-up traffic has no use for, of each policy its own alone. */
function paramsOf({ scenario, given, file }, preset) {
  const { preset: chosen = preset, trace_block_tokens, retention, ...others } = given;
  return {
    ...toCacheParams(scenario),
    ...others,
    ...(file === null ? { preset: chosen } : {}),
    ...(file === null || trace_block_tokens === undefined ? {} : { trace_block_tokens }),
    ...(others.policy !== "priority" || retention === undefined ? {} : { retention }),
  };
}

/** @param {{preset: string}} options the traffic that is replayed where none is chosen */
export const reusePanel = ({ preset }) => ({
  id: "reuse",
  long: true,
  subject: ({ goodPlan, asked, given, panelFiles }) =>
    asked.gpu && goodPlan === null ? null : subjectOf(asked, given.reuse, panelFiles.reuse ?? null),
  answer(subject, { call, show }) {
    const { file } = subject;
    let estimate = null;
    const onProgress = ({ phase, share, answer = estimate }) => {
      estimate = answer;
      show(estimate, share, phase);
    };
    const files = file === null ? [] : [{ name: file.name, file }];
    return call("reuse", paramsOf(subject, preset), { files, onProgress });
  },
});
