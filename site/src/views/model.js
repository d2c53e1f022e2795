/** The model: chosen from the catalog, or read from a config.json of one's own. */

import { html, nothing } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { comboField } from "../combobox.js";
import { integer, parameterCount } from "../format.js";
import { lookUpOf, pending } from "../hub.js";
import { MODEL } from "../kinds.js";
import { attentionName } from "../messages.js";
import { isEdited } from "../values.js";
import { layerKinds, messages } from "./fields.js";
import { fileButton, modelFiles } from "./files.js";
import { hubStatus } from "./hub.js";

/** A number all layers agree on, or null. */
function common(show, name) {
  const values = new Set((show?.layers ?? []).flatMap(({ specs }) => specs.map((spec) => spec[name])).filter(Boolean));
  return values.size === 1 ? [...values][0] : null;
}

/** One grey line of the facts that drive the result. */
function modelFacts(app) {
  const { t, model, ownShow: show } = app;
  // The field holds a name that is looked up, and not that of this model.
  if (pending(app) !== null) return "";
  const facts = show?.facts ?? {};
  const pieces = isEdited(app.scenario) ? [t("facts.edited")] : [];
  if (facts.num_layers) pieces.push(t("facts.layers", { count: integer(facts.num_layers) }));
  const heads = common(show, "num_kv_heads");
  if (heads) pieces.push(t.count("facts.kv_heads", heads, { count: integer(heads) }));
  const width = common(show, "head_dim");
  if (width) pieces.push(t("facts.head_dim", { count: integer(width) }));
  const kinds = layerKinds(app);
  if (kinds.length > 0) pieces.push(attentionName(t, kinds));
  const parameters = facts.parameters ?? (isEdited(app.scenario) ? null : model?.parameters);
  if (parameters) pieces.push(t("facts.parameters", { count: parameterCount(parameters) }));
  return pieces.join(" · ");
}

export function pasteBox(app, actions) {
  const { t } = app;
  const { invalid, describedBy, lines } = messages(app, "paste");
  const custom = app.scenario.model_text !== null;
  return html`<details
    class="paste"
    id="paste-box"
    ?open=${app.pasteOpen}
    @toggle=${(event) => actions.togglePaste(event.target.open)}
  >
    <summary>${custom ? t("paste.summary_custom") : t("paste.summary")}</summary>
    <div class="drop-box">
      <p>${t("files.drop")}</p>
      <p class="paste-actions">
        ${fileButton("config-file", t("files.choose"), (files) => actions.importFiles(files))}
        ${fileButton("config-folder", t("files.choose_folder"), (files) => actions.importFiles(files), { folder: true })}
      </p>
      <p class="hint">${t("files.private")}</p>
    </div>
    <div class="field">
      <label for="paste">${t("field.paste")}</label>
      <textarea
        id="paste"
        rows="6"
        spellcheck="false"
        autocomplete="off"
        autocapitalize="none"
        placeholder=${'{ "model_type": "llama", … }'}
        aria-invalid=${String(invalid)}
        aria-describedby=${describedBy}
        .value=${live(app.typed.paste ?? "")}
        @input=${(event) => actions.typeConfig(event.target.value)}
      ></textarea>
      <span id="paste-hint" class="hint">${t("hint.paste")}</span>
      ${lines}
      ${app.typed.paste ? html`<p class="paste-actions"><button type="button" class="link-button" @click=${actions.clearConfig}>${t("paste.clear")}</button></p>` : nothing}
    </div>
  </details>`;
}

export function modelInput(app, actions) {
  const model = messages(app, "model");
  return html`<div class="field">
    <label for="model">${app.t("field.model")}</label>
    ${comboField(app, actions, MODEL, {
      invalid: model.invalid || lookUpOf(app)?.state === "failed",
      describedBy: `model-hub ${model.describedBy}`,
    })}
    ${hubStatus(app, actions)}
    <p id="model-hint" class="hint model-facts">${modelFacts(app)}</p>
    ${modelFiles(app, actions)}
    ${model.lines}
  </div>`;
}
