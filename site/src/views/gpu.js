/** GPUs: how many of which, what memory they report, and how the model is split over them. */

import { html, nothing } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { comboField } from "../combobox.js";
import { bytesText, integer } from "../format.js";
import { OTHER_GPU, mebibytes } from "../gpus.js";
import { GPU } from "../kinds.js";
import { countField, messages } from "./fields.js";

/** What the driver reports, never the label turned into bytes. */
function memoryHint(app) {
  const {
    t,
    gpu,
    scenario,
    view: { unit },
  } = app;
  if (!scenario.gpu) return t("hint.no_gpu");
  if (scenario.gpu === OTHER_GPU || !gpu) return "";
  if (gpu.memory_bytes === null) return t("gpu.unknown_memory_hint");
  return t(gpu.category === "unified" ? "gpu.memory_unified" : "gpu.memory", {
    mib: integer(mebibytes(gpu.memory_bytes)),
    bytes: bytesText(gpu.memory_bytes, unit),
  });
}

function gpuCount(app, actions) {
  const { t, scenario } = app;
  const { invalid } = messages(app, "gpus");
  const shown = app.typed.gpus ?? integer(scenario.gpus ?? 1);
  return html`<label class="visually-hidden" for="gpus">${t("field.gpus")}</label
    ><input
      id="gpus"
      type="text"
      inputmode="numeric"
      autocomplete="off"
      value=${shown}
      .value=${live(shown)}
      aria-invalid=${String(invalid)}
      aria-describedby="gpus-messages"
      @input=${(event) => actions.typeCount("gpus", event.target.value, false)}
      @blur=${() => actions.settleCount("gpus")}
    /><span class="times" aria-hidden="true">×</span>`;
}

export function gpuField(app, actions) {
  const { t, scenario, gpu } = app;
  const found = messages(app, "gpu");
  const unknown = gpu !== null && gpu.memory_bytes === null;
  return html`<div class="field">
      <label for="gpu">${t("field.gpu")}</label>
      <div class="gpu-row">
        ${scenario.gpu ? gpuCount(app, actions) : nothing} ${comboField(app, actions, GPU, found)}
      </div>
      <p id="gpu-hint" class="hint">${memoryHint(app)}</p>
      ${scenario.gpu ? messages(app, "gpus").lines : nothing} ${found.lines}
    </div>
    ${
      scenario.gpu === OTHER_GPU || unknown || (scenario.gpu && scenario.memory_mib !== null)
        ? countField(app, actions, { field: "memory_mib", optional: true, hint: "" })
        : nothing
    }`;
}

/** Sizes of each kind of parallelism; blank is worked out from the GPUs. */
export function parallelFields(app, actions) {
  const { t } = app;
  const plan = app.goodPlan;
  const size = (field) =>
    countField(app, actions, {
      field,
      optional: true,
      placeholder: plan ? t("placeholder.auto_is", { value: integer(plan[field]) }) : t("placeholder.auto"),
    });
  return html`<p class="hint">${t("hint.parallel")}</p>
    <div class="pair">${["tp", "pp", "dp", "dcp"].map(size)}</div>`;
}
