/** Whether it fits, how far it goes, what the engine should print, and how sure that is. */

import { html, nothing, svg } from "lit-html";
import { bytesText, factor, integer, percent, shortTokens } from "../format.js";
import { OTHER_GPU, mebibytes } from "../gpus.js";
import { componentName, engineName, errorText, formatName, itemTexts } from "../messages.js";
import { sentenceText } from "./answer.js";
import { present } from "./bar.js";

/** Refusals that mean: this model, engine and split cannot run, whatever the memory. */
const REFUSALS = new Set([
  "does_not_shard",
  "unsupported_option",
  "unsupported_model",
  "unsupported_format",
  "format_row_mismatch",
]);
/** Where searches for the most stop; reached only where memory sets no limit. */
export const ENDLESS = { requests: 10 ** 7, context: 10 ** 9 };

export function verdictKind(plan) {
  if (plan === null) return "waiting";
  if (plan.error) return REFUSALS.has(plan.error.code) ? "cannot_run" : "open";
  return plan.verdict;
}

export function explanation(app, plan) {
  const {
    t,
    view: { unit },
  } = app;
  if (plan === null) return "";
  if (plan.error) return errorText(t, plan.error, unit);
  const { pool_bytes: pool, used_bytes: used } = plan.rank;
  const short = bytesText(plan.short_bytes, unit);
  if (plan.verdict === "does_not_fit") {
    return pool > 0
      ? t("verdict.short", { short, ratio: factor(used / pool) })
      : t("verdict.no_pool", { short, usable: bytesText(plan.rank.usable_bytes, unit) });
  }
  const room = t.count("verdict.room", plan.max_requests, {
    max: integer(plan.max_requests),
    ratio: factor(plan.max_requests / plan.concurrency),
  });
  return plan.verdict === "tight" ? `${t("verdict.uses", { percent: percent(used / pool) })} ${room}` : room;
}

/** "8 × H100 80GB SXM5 · vLLM 0.33.0 · TP 8" */
export function setup(app) {
  const { t, plan, asked } = app;
  const name = asked.gpu === OTHER_GPU ? t("gpu.own_name") : (app.gpus.find(asked.gpu)?.name ?? asked.gpu);
  const pieces = [`${integer(plan?.gpus ?? asked.gpus ?? 1)} × ${name}`];
  if (asked.engine) pieces.push(`${engineName(asked.engine)} ${plan?.engine_version ?? ""}`.trim());
  for (const [size, word] of [
    ["tp", "TP"],
    ["pp", "PP"],
    ["dp", "DP"],
    ["dcp", "DCP"],
  ]) {
    if (plan?.[size] > 1) pieces.push(`${word} ${integer(plan[size])}`);
  }
  return pieces.join(" · ");
}

export const ICONS = {
  fits: svg`<circle class="icon-ground" cx="12" cy="12" r="11"></circle><path class="icon-ink" d="M6.5 12.5l3.8 3.8 7.2-8"></path>`,
  tight: svg`<path class="icon-ground" d="M12 1.5L23.3 22H.7z"></path><path class="icon-ink" d="M12 9v6M12 17.4v1.8"></path>`,
  does_not_fit: svg`<rect class="icon-ground" x="1" y="1" width="22" height="22" rx="4"></rect><path class="icon-ink" d="M7 7l10 10M17 7L7 17"></path>`,
  cannot_run: svg`<path class="icon-ground" d="M7.5 1h9L23 7.5v9L16.5 23h-9L1 16.5v-9z"></path><path class="icon-ink" d="M6.5 12h11"></path>`,
  open: svg`<circle class="icon-ground" cx="12" cy="12" r="11"></circle><path class="icon-ink" d="M12 6v7M12 16v1.8"></path>`,
  waiting: svg`<circle class="icon-ground" cx="12" cy="12" r="11"></circle>`,
};

/** Sizes that do work and that the GPUs allow, each a button. */
function legalSizes(app, actions, plan) {
  const { code, params } = plan?.error ?? {};
  const { asked } = app;
  if (code !== "does_not_shard" || !["tp", "pp", "dp", "dcp"].includes(params.argument)) return nothing;
  const gpus = asked.gpus ?? 1;
  const usable = (params.legal ?? []).filter((size) => size !== params.value && gpus % size === 0);
  if (usable.length === 0) return nothing;
  return html`<span class="verdict-ways"
    >${usable.map(
      (size) =>
        html`<button type="button" class="link-button" @click=${() => actions.fill({ [params.argument]: size })}>
            ${app.t("verdict.use", { argument: params.argument.toUpperCase(), size: integer(size) })}
          </button> `,
    )}</span
  >`;
}

/** @param {boolean} fixed whether nothing can be filled in from here */
export function verdict(app, actions, { fixed = false } = {}) {
  const { t, plan } = app;
  if (!app.asked.gpu) return nothing;
  const kind = verdictKind(plan);
  const old = plan !== null && (!app.planCurrent || app.answer.stale || app.behind);
  return html`<div class="verdict ${kind} ${old ? "old" : ""}">
    <p class="verdict-line">
      <svg class="verdict-icon" aria-hidden="true" width="24" height="24" viewBox="0 0 24 24">${ICONS[kind]}</svg>
      <span><strong>${t(`verdict.${kind}`)}</strong> <span class="verdict-why">${explanation(app, plan)}</span></span>
    </p>
    ${fixed ? nothing : legalSizes(app, actions, plan)}
    <p class="verdict-setup">${setup(app)}</p>
  </div>`;
}

/** All of the answer in words, for the status region. */
export function spokenAnswer(app) {
  const sentence = sentenceText(app);
  if (!app.asked.gpu || app.plan === null) return sentence;
  return `${app.t(`verdict.${verdictKind(app.plan)}`)} ${explanation(app, app.plan)} ${setup(app)}. ${sentence}`;
}

/** "✓ Fits" where there is room for no more. */
export const shortVerdict = (app) => (app.asked.gpu ? app.t(`verdict.${verdictKind(app.plan)}`) : "");

function inverseEntry({ label, text, fill, fixed, note = "" }) {
  const value = !fill || fixed ? html`<strong>${text}</strong>` : html`<button type="button" class="link-button" @click=${fill}>${text}</button>`;
  return html`<div>
    <dt>${label}</dt>
    <dd>${value}${note ? html` <span class="muted">${note}</span>` : nothing}</dd>
  </div>`;
}

/** Most requests, longest context, fewest GPUs: each fills the form. */
export function inverse(app, actions, { fixed = false } = {}) {
  const { t, plan } = app;
  if (!app.asked.gpu || plan === null || plan.error) return nothing;
  const { max_requests: requests, max_context: context, min_gpus: gpus, concurrency } = plan;
  const endless = { requests: requests >= ENDLESS.requests, context: context >= ENDLESS.context };
  const { trained } = app;
  return html`<dl class="inverse ${app.planCurrent ? "" : "old"}">
    ${inverseEntry({
      label: t("inverse.requests", { context: shortTokens(plan.context) }),
      text: endless.requests ? t("inverse.endless") : integer(requests),
      fill: requests > 0 && !endless.requests ? () => actions.fill({ sequences: requests }) : null,
      fixed,
    })}
    ${inverseEntry({
      label: t.count("inverse.context", concurrency, { requests: integer(concurrency) }),
      text: endless.context ? t("inverse.endless") : t.count("count.tokens", context, { count: integer(context) }),
      fill: context > 0 && !endless.context ? () => actions.fill({ tokens: context }) : null,
      note: trained !== null && context > trained ? t("curve.trained", { tokens: integer(trained) }) : "",
      fixed,
    })}
    ${inverseEntry({
      label: t("inverse.gpus"),
      text: gpus === null ? t("inverse.unknown") : integer(gpus),
      fill: gpus === null ? null : () => actions.fillFewestGpus(gpus),
      fixed,
    })}
  </dl>`;
}

/** What the engine's log should say, to hold against one's own. */
export function engineLines(app, actions) {
  const { t, plan } = app;
  const lines = plan?.pool?.log_lines ?? [];
  if (lines.length === 0 || plan.rank.pool_bytes === 0) return nothing;
  const text = lines.join("\n");
  const engine = `${engineName(plan.engine)} ${plan.engine_version}`;
  return html`<div class="engine-lines ${app.planCurrent ? "" : "old"}">
    <p class="engine-lines-head">
      <span>${t("lines.prints", { engine })}</span>
      <button type="button" class="link-button" @click=${() => actions.copy("lines", text, "log-lines")}>
        ${app.share.copied === "lines" ? t("share.copied") : t("lines.copy")}
      </button>
    </p>
    <pre id="log-lines" tabindex="0">${text}</pre>
    <p><button type="button" class="link-button" @click=${actions.openLog}>${t("log.heading")}</button></p>
  </div>`;
}

/** What drafting adds: its cache on one GPU and its weights, each as a share of the model's. */
function draftAccount({ t, view: { unit } }, { cache_bytes: cache, cache_ratio: ofCache, weight_bytes: weights, weight_ratio: ofWeights }) {
  const share = (ratio) => (ratio ? t("account.draft_share", { share: percent(ratio[0] / ratio[1]) }) : "");
  const pieces = [[t("account.draft_cache", { bytes: bytesText(cache, unit) }), share(ofCache)]];
  if (weights) pieces.push([t("account.draft_weights", { bytes: bytesText(weights, unit) }), share(ofWeights)]);
  return html`<div>
    <dt>${t("account.draft")}</dt>
    <dd>${pieces.map((piece) => piece.filter(Boolean).join(" ")).join(" · ")}</dd>
  </div>`;
}

/** Logical bytes beside what the engine allocates, the difference by its parts. */
export function account(app) {
  const {
    t,
    plan,
    view: { unit },
  } = app;
  if (plan === null || plan.error) return nothing;
  const { request, allocated } = plan;
  const items = Object.values(allocated.items).reduce((sum, bytes) => sum + bytes, 0);
  const parts = present(allocated.components);
  const text = (bytes) => bytesText(bytes, unit);
  const added = itemTexts(t, allocated.items, unit);
  return html`<dl class="account ${app.planCurrent ? "" : "old"}">
    <div>
      <dt>${t("account.request")}</dt>
      <dd>
        ${t("account.request_bytes", { logical: text(request.logical_bytes), allocated: text(request.allocated_bytes) })}${
          request.blocks > 0 ? ` (${t.count("account.blocks", request.blocks, { count: integer(request.blocks) })})` : ""
        }
      </dd>
    </div>
    <div>
      <dt>${t("account.gpu")}</dt>
      <dd>
        ${
          added.length > 0
            ? t("account.sum", {
                logical: text(allocated.bytes_per_rank - items),
                items: added.join(" + "),
                allocated: text(allocated.bytes_per_rank),
              })
            : t("account.same", { allocated: text(allocated.bytes_per_rank) })
        }${parts.length > 1 ? html`<br />${parts.map((part) => `${componentName(t, part)} ${text(allocated.components[part])}`).join(" · ")}` : nothing}
      </dd>
    </div>
    ${plan.draft ? draftAccount(app, plan.draft) : nothing}
  </dl>`;
}

function certainties(app, plan) {
  const {
    t,
    view: { unit },
    asked,
  } = app;
  const text = (bytes) => bytesText(bytes, unit);
  const gpu = app.gpus.find(asked.gpu);
  const exact = [t("sure.cache")];
  const given = [];
  const estimate = [];
  const memory =
    asked.memory_mib !== null || !gpu?.memory_bytes
      ? t("sure.memory_by_hand", { mib: integer(mebibytes(plan.rank.memory_bytes)) })
      : t("sure.memory", { mib: integer(mebibytes(gpu.memory_bytes)), visible: text(plan.rank.memory_bytes) });
  (gpu?.working_set_estimated && asked.memory_mib === null ? estimate : given).push(memory);
  if (asked.pool_bytes !== null) {
    given.push(t("sure.pool", { bytes: text(plan.rank.pool_bytes) }));
    return { exact, given, estimate };
  }
  const { source, total_bytes: total } = plan.weights;
  const drafting = plan.draft?.separate ? plan.draft : null;
  const weigh = (from, bytes, format, ofDraft = false) => {
    const say = (key, params = {}) => {
      const said = t(key, { bytes: text(bytes), ...params });
      return ofDraft ? t("sure.of_draft", { said }) : said;
    };
    if (from === "checkpoint") exact.push(say("sure.weights_checkpoint"));
    else if (from === "file") exact.push(say("sure.weights_file"));
    else if (from === "given") given.push(say("sure.weights_given"));
    else estimate.push(say("sure.weights", { format: formatName(t, format) }));
  };
  weigh(source, drafting ? drafting.target_weight_bytes : total, plan.formats.weights);
  if (drafting) weigh(drafting.weight_source, drafting.weight_bytes ?? 0, drafting.weight_format, true);
  const { host_bytes: host } = plan.weights;
  if (host > 0) (source === "counted" ? estimate : exact).push(t("sure.weights_host", { bytes: text(host) }));
  if (asked.reserve_bytes !== null) given.push(t("sure.reserve_given", { bytes: text(plan.rank.reserve_bytes) }));
  else {
    estimate.push(
      t("sure.reserve", {
        bytes: text(plan.rank.reserve_bytes),
        low: text(plan.reserve.low_bytes),
        high: text(plan.reserve.high_bytes),
      }),
    );
  }
  return { exact, given, estimate };
}

/** What of the answer is exact, what was given, and what is an estimate. */
export function confidence(app) {
  const { t, plan } = app;
  if (plan === null || plan.error) return nothing;
  const found = certainties(app, plan);
  return html`<dl class="confidence ${app.planCurrent ? "" : "old"}">
    ${["exact", "given", "estimate"]
      .filter((kind) => found[kind].length > 0)
      .map(
        (kind) =>
          html`<div>
            <dt class=${kind}>${t(`sure.${kind}`)}</dt>
            <dd>${found[kind].join(" · ")}</dd>
          </div>`,
      )}
  </dl>`;
}
