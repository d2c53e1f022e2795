/** The inputs: model, tokens, sequences, KV format; the rest only where it applies. */

import { html, nothing } from "lit-html";
import { applicable } from "../fields.js";
import { shortTokens } from "../format.js";
import { engineName } from "../messages.js";
import { NOT_PLANNED } from "../state.js";
import { engineFields } from "./engine.js";
import { checkField, countField, formatField } from "./fields.js";
import { draftField } from "./files.js";
import { gpuField, parallelFields } from "./gpu.js";
import { modelInput, pasteBox } from "./model.js";
import { modelFields } from "./model_fields.js";

const TOKEN_CHIPS = [8192, 32768, 131072, 262144, 1048576];
const SEQUENCE_CHIPS = [1, 8, 32, 128, 512];

/** A part of the inputs that opens, with what it is set to in its summary. */
function box(app, actions, { id, summary, note = "", content }) {
  return html`<details
    class="more"
    id=${id}
    ?open=${app.open[id]}
    @toggle=${(event) => actions.toggleBox(id, event.target.open)}
  >
    <summary>${summary}${note ? html` <span class="summary-note">${note}</span>` : nothing}</summary>
    ${content}
  </details>`;
}

function rules(app, actions) {
  const { t, scenario } = app;
  const engine = scenario.engine === null ? t("engine.no_engine") : engineName(scenario.engine);
  return box(app, actions, {
    id: "rules",
    summary: scenario.gpu ? t("inputs.rules") : t("field.engine"),
    note: engine,
    content: engineFields(app, actions),
  });
}

function parallel(app, actions) {
  const { t, scenario, goodPlan: plan } = app;
  if (!scenario.gpu) return nothing;
  const note = plan ? ["tp", "pp", "dp", "dcp"].filter((size) => plan[size] > 1) : [];
  return box(app, actions, {
    id: "parallel",
    summary: t("inputs.parallel"),
    note: note.map((size) => `${size.toUpperCase()} ${plan[size]}`).join(" · "),
    content: parallelFields(app, actions),
  });
}

function more(app, actions) {
  const { t, scenario } = app;
  const applies = applicable(app);
  if (!Object.values(applies).some(Boolean)) return nothing;
  return box(app, actions, { id: "more", summary: t("inputs.more"), content: moreFields(app, actions, scenario, applies) });
}

function moreFields(app, actions, scenario, applies) {
  const { t } = app;
  const unplanned = scenario.gpu && NOT_PLANNED.some((field) => applies[field]);
  return html`${applies.shared_prefix ? countField(app, actions, { field: "shared_prefix", optional: true, hint: t("hint.shared_prefix") }) : nothing}
    ${applies.indexer_format ? formatField(app, actions, "indexer_format", "indexer") : nothing}
    ${
      applies.no_state
        ? checkField(app, actions, "no_state", {
            checked: !scenario.no_state,
            onChange: (counted) => actions.choose("no_state", !counted),
          })
        : nothing
    }
    ${applies.state_format && !scenario.no_state ? formatField(app, actions, "state_format", "state") : nothing}
    ${
      applies.checkpoint_interval && !scenario.no_state
        ? countField(app, actions, {
            field: "checkpoint_interval",
            optional: true,
            hint: t("hint.checkpoint_interval"),
          })
        : nothing
    }
    ${
      applies.draft
        ? checkField(app, actions, "draft", {
            checked: scenario.draft,
            onChange: (counted) => actions.choose("draft", counted),
          })
        : nothing
    }
    ${applies.draft_model ? draftField(app, actions) : nothing}
    ${
      applies.encoder_tokens
        ? countField(app, actions, {
            field: "encoder_tokens",
            optional: true,
            hint: t("hint.encoder_tokens"),
          })
        : nothing
    }
    ${unplanned ? html`<p class="hint">${t("hint.not_planned")}</p>` : nothing}`;
}

export function inputs(app, actions) {
  const { t } = app;
  const trained = app.answer.estimate.max_context;
  const tokenChips =
    TOKEN_CHIPS.includes(trained) || !trained ? TOKEN_CHIPS : [...TOKEN_CHIPS, trained].sort((a, b) => a - b);
  return html`<form
    class="inputs"
    aria-labelledby="inputs-heading"
    autocomplete="off"
    @submit=${(event) => event.preventDefault()}
  >
    <h2 id="inputs-heading" class="visually-hidden">${t("inputs.heading")}</h2>
    ${modelInput(app, actions)} ${modelFields(app, actions)} ${pasteBox(app, actions)}
    ${countField(app, actions, { field: "tokens", chips: tokenChips, chipLabel: shortTokens })}
    ${countField(app, actions, { field: "sequences", chips: SEQUENCE_CHIPS })}
    ${formatField(app, actions, "kv_format", "kv")} ${gpuField(app, actions)} ${rules(app, actions)}
    ${parallel(app, actions)} ${more(app, actions)}
    <p class="inputs-foot">
      <button type="button" class="link-button" @click=${actions.reset}>${t("inputs.reset")}</button>
    </p>
  </form>`;
}
