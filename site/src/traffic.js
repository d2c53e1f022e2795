/** The panel of real traffic: what it asks, and what it then knows that levers and the form can use. */

import { subjectOf } from "./panelinputs.js";
import { toPlanParams } from "./state.js";

const ID = "traffic";

/** What holds until somebody says otherwise; the panel says so. Lengths are the first of the published ones. */
const ASSUMED = { arrival_rate: 2, tokens_per_second: 30 };

const REMEMBERED = 20;

/** The same object for equal values, as panels tell by it whether anything has changed. */
function keeper() {
  const kept = new Map();
  return (value) => {
    const key = JSON.stringify(value);
    const found = kept.get(key) ?? value;
    kept.delete(key);
    kept.set(key, found);
    if (kept.size > REMEMBERED) kept.delete(kept.keys().next().value);
    return found;
  };
}

/** A plan's lengths and requests are not those of its traffic: changing them asks nothing new. */
function withoutLengths(scenario) {
  const { context, concurrency, ...params } = toPlanParams(scenario);
  return params;
}

/** What is taken for granted beside what is given, under the names of the inputs. */
export function assumed({ given, file }, [{ prompt, output }]) {
  const { tokens_per_second, ...paced } = { prompt, output, ...ASSUMED };
  const all = "seconds_per_request" in given ? paced : { ...paced, tokens_per_second };
  // A file has lengths, and times to tell the rate by.
  const skipped = file === null ? [] : ["prompt", "output", "arrival_rate"];
  return Object.fromEntries(Object.entries(all).filter(([name]) => !(name in given) && !skipped.includes(name)));
}

const PREFIX = { argument: "shared_prefix", option: "shared_prefix" };

/** An error about the prefix is about the panel's own input for it. */
function renamed(error) {
  const named = Object.entries(PREFIX).filter(([key, name]) => error.params?.[key] === name);
  return { ...error, params: { ...error.params, ...Object.fromEntries(named.map(([key]) => [key, "common_prefix"])) } };
}

/** @param {Array<{id: string, prompt: string, output: string}>} lengths published ones, to start from */
export function trafficPanel(lengths) {
  const keep = keeper();
  return {
    id: ID,
    long: true,
    restoresFile: true,
    subject: ({ goodPlan, asked, given, panelFiles }) =>
      goodPlan === null ? null : subjectOf(keep(withoutLengths(asked)), given[ID], panelFiles[ID] ?? null),
    async answer({ scenario, given, file }, { call, show }) {
      const { common_prefix: prefix, ...own } = given;
      const params = { ...scenario, ...assumed({ given, file }, lengths), ...own };
      if (prefix !== undefined) params.shared_prefix = prefix;
      const answer = await call("workload", params, {
        files: file === null ? [] : [{ name: file.name, file }],
        onProgress: ({ share }) => show(null, share),
      });
      return answer.error ? { error: renamed(answer.error) } : answer;
    },
  };
}

const keepFacts = keeper();

/** Whether lengths were given at all, not only assumed. */
const stated = ({ given, file }) => file !== null || "prompt" in given || "output" in given;

/** What the lengths of an answer depend on, whatever the GPUs, the engine and the rates. */
const lengthsKey = ({ given: { prompt, output, context }, scenario: { model, model_text, edits } }) =>
  JSON.stringify([prompt, output, context, model, model_text, edits]);

/** The parameters of `levers` that this panel knows: of lengths only where some were given, and answered. */
export function factsForLevers({ asked, given, panelFiles, panels }) {
  const own = given[ID];
  const { found } = panels[ID];
  const facts = "common_prefix" in own ? { common_prefix: own.common_prefix } : {};
  if (found !== null && stated(found.subject)) {
    const now = { given: own, file: panelFiles[ID] ?? null, scenario: toPlanParams(asked) };
    if (found.subject.file === now.file && lengthsKey(found.subject) === lengthsKey(now)) {
      const { p99, mean } = found.answer.as_plan.context;
      Object.assign(facts, { traffic_context: p99, traffic_mean: mean });
    }
  }
  return keepFacts(facts);
}
