/** The inputs: model, tokens, sequences, KV format; the rest only where it applies. */

import { html, nothing } from "lit-html";
import { applicable } from "../fields.js";
import { shortTokens } from "../format.js";
import { engineFields } from "./engine.js";
import { checkField, countField, formatField } from "./fields.js";
import { modelInput, pasteBox } from "./model.js";

const TOKEN_CHIPS = [8192, 32768, 131072, 262144, 1048576];
const SEQUENCE_CHIPS = [1, 8, 32, 128, 512];

function more(app, actions) {
  const { t, scenario } = app;
  const applies = applicable(app);
  return html`<details
    class="more"
    id="more"
    ?open=${app.moreOpen}
    @toggle=${(event) => actions.toggleMore(event.target.open)}
  >
    <summary>${t("inputs.more")}</summary>
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
    ${
      applies.encoder_tokens
        ? countField(app, actions, {
            field: "encoder_tokens",
            optional: true,
            hint: t("hint.encoder_tokens"),
          })
        : nothing
    }
    ${engineFields(app, actions)}
  </details>`;
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
    ${modelInput(app, actions)} ${pasteBox(app, actions)}
    ${countField(app, actions, { field: "tokens", chips: tokenChips, chipLabel: shortTokens })}
    ${countField(app, actions, { field: "sequences", chips: SEQUENCE_CHIPS })}
    ${formatField(app, actions, "kv_format", "kv")} ${more(app, actions)}
    <p class="inputs-foot">
      <button type="button" class="link-button" @click=${actions.reset}>${t("inputs.reset")}</button>
    </p>
  </form>`;
}
