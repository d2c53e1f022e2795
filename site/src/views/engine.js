/** The engine whose allocation is shown, with its own settings under their own names. */

import { html, nothing } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { bytesText } from "../format.js";
import { engineName, formatName } from "../messages.js";
import { countField, fractionField, messages } from "./fields.js";

/** What stands for "not said": the engine's default, by value where it has one. */
function unsaid(t, fallback) {
  if (fallback === null || fallback === undefined) return t("option.default_own");
  return t("option.default", {
    value: typeof fallback === "boolean" ? t(fallback ? "option.on" : "option.off") : fallback,
  });
}

/** The values a select offers for a setting, with their labels; none where it is typed. */
function choicesOf(t, { type, choices }) {
  if (type === "flag") {
    return [
      ["true", t("option.on")],
      ["false", t("option.off")],
    ];
  }
  return (choices ?? []).map((choice) => [String(choice), choice]);
}

function engineOption(app, actions, option) {
  const { t, scenario } = app;
  const { name, type, default: fallback } = option;
  const id = `option-${name}`;
  const value = scenario.engine_options[name] ?? "";
  const set = (text) => actions.setEngineOption(name, text.trim() || null);
  const { invalid, lines } = messages(app, id);
  const choices = choicesOf(t, option);
  const control =
    choices.length > 0
      ? html`<select
          id=${id}
          aria-invalid=${String(invalid)}
          aria-describedby="${id}-messages"
          .value=${live(value)}
          @change=${(event) => set(event.target.value)}
        >
          <option value="" ?selected=${value === ""}>${unsaid(t, fallback)}</option>
          ${choices.map(([id, label]) => html`<option value=${id} ?selected=${value === id}>${label}</option>`)}
        </select>`
      : html`<input
          id=${id}
          type="text"
          autocomplete="off"
          spellcheck="false"
          inputmode=${type === "integer" ? "numeric" : nothing}
          placeholder=${unsaid(t, fallback)}
          aria-invalid=${String(invalid)}
          aria-describedby="${id}-messages"
          value=${value}
          .value=${live(value)}
          @input=${(event) => set(event.target.value)}
        />`;
  return html`<div class="field">
    <label for=${id}><code>${name}</code></label
    >${control}${lines}
  </div>`;
}

/** What each engine calls the settings that the page has in common for all of them. */
const NAMES = {
  vllm: {
    memory_fraction: "--gpu-memory-utilization",
    block_tokens: "--block-size",
    batched_tokens: "--max-num-batched-tokens",
  },
  sglang: {
    memory_fraction: "--mem-fraction-static",
    block_tokens: "--page-size",
    batched_tokens: "--chunked-prefill-size",
  },
  tensorrt_llm: {
    memory_fraction: "free_gpu_memory_fraction",
    block_tokens: "tokens_per_block",
    batched_tokens: "max_num_tokens",
  },
  llama_cpp: { batched_tokens: "-ub" },
};

/** The memory rules: what the engine may take, and what else is in the way. */
function memoryFields(app, actions) {
  const {
    t,
    scenario,
    goodPlan: plan,
    view: { unit },
  } = app;
  const names = NAMES[scenario.engine] ?? {};
  const count = (field, extra = {}) => countField(app, actions, { field, optional: true, name: names[field], ...extra });
  const known = (bytes) => (plan ? t("placeholder.auto_is", { value: `≈ ${bytesText(bytes(plan), unit)}` }) : undefined);
  return html`${names.memory_fraction ? fractionField(app, actions, { field: "memory_fraction", name: names.memory_fraction }) : nothing}
    ${names.block_tokens ? count("block_tokens") : nothing} ${names.batched_tokens ? count("batched_tokens") : nothing}
    ${weightFormat(app, actions)}
    ${count("weight_bytes", { placeholder: known(({ weights }) => weights.total_bytes) })}
    ${count("reserve_bytes", {
      placeholder: known(({ rank }) => rank.reserve_bytes),
      hint: plan
        ? t("hint.reserve_range", {
            low: bytesText(plan.reserve.low_bytes, unit),
            high: bytesText(plan.reserve.high_bytes, unit),
          })
        : t("hint.reserve_bytes"),
    })}
    ${count("pool_bytes", { hint: t("hint.pool_bytes") })}`;
}

function weightFormat(app, actions) {
  const { t, scenario, data } = app;
  const { invalid, describedBy, lines } = messages(app, "weight_format");
  const value = scenario.weight_format;
  const own = app.goodPlan?.formats.weights;
  const automatic = own && value === null ? t("format.auto_is", { format: formatName(t, own) }) : t("format.auto");
  return html`<div class="field">
    <label for="weight_format">${t("field.weight_format")}</label>
    <select
      id="weight_format"
      aria-invalid=${String(invalid)}
      aria-describedby=${describedBy}
      .value=${live(value ?? "")}
      @change=${(event) => actions.choose("weight_format", event.target.value || null)}
    >
      <option value="" ?selected=${value === null}>${automatic}</option>
      ${data.weight_formats.map((id) => html`<option value=${id} ?selected=${value === id}>${formatName(t, id)}</option>`)}
    </select>
    <span id="weight_format-hint" class="hint" hidden></span>
    ${lines}
  </div>`;
}

export function engineFields(app, actions) {
  const { t, scenario, options } = app;
  const engines = options?.engines ?? [];
  const engine = engines.find(({ id }) => id === scenario.engine);
  const { invalid, describedBy, lines } = messages(app, "engine");
  const listed = engines.some(({ id }) => id === scenario.engine) || scenario.engine === null;
  return html`<div class="field">
      <label for="engine">${t("field.engine")}</label>
      <select
        id="engine"
        aria-invalid=${String(invalid)}
        aria-describedby=${describedBy}
        .value=${live(scenario.engine ?? "")}
        @change=${(event) => actions.chooseEngine(event.target.value || null)}
      >
        <option value="" ?selected=${scenario.engine === null}>${t("engine.none")}</option>
        ${engines.map(({ id }) => html`<option value=${id} ?selected=${scenario.engine === id}>${engineName(id)}</option>`)}
        ${listed ? nothing : html`<option value=${scenario.engine} selected>${scenario.engine}</option>`}
      </select>
      <span id="engine-hint" class="hint">${t("hint.engine")}</span>${lines}
    </div>
    ${engine && engine.versions.length > 1 ? versionField(app, actions, engine) : nothing}
    ${scenario.gpu ? memoryFields(app, actions) : nothing}
    ${engine && engine.options.length > 0 ? settings(app, actions, engine) : nothing}`;
}

function versionField(app, actions, { versions }) {
  const { t, scenario } = app;
  const value = scenario.engine_version;
  const offered = value === null || versions.includes(value) ? versions : [value, ...versions];
  return html`<div class="field">
    <label for="engine_version">${t("field.engine_version")}</label>
    <select
      id="engine_version"
      .value=${live(value ?? "")}
      @change=${(event) => actions.choose("engine_version", event.target.value || null)}
    >
      <option value="" ?selected=${value === null}>${t("engine.latest", { version: versions[0] })}</option>
      ${offered.map((version) => html`<option value=${version} ?selected=${value === version}>${version}</option>`)}
    </select>
  </div>`;
}

function settings(app, actions, engine) {
  const changed = Object.keys(app.scenario.engine_options).length > 0;
  return html`<details class="engine-options" ?open=${changed}>
    <summary>${app.t("engine.options", { engine: engineName(engine.id), count: engine.options.length })}</summary>
    <div class="engine-fields">${engine.options.map((option) => engineOption(app, actions, option))}</div>
  </details>`;
}
