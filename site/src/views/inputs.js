/** The inputs: model, tokens, sequences, KV format; the rest only where it applies. */

import {html, nothing} from 'lit-html';
import {live} from 'lit-html/directives/live.js';
import {modelField} from '../combobox.js';
import {applicable, fieldOf, kvRoles} from '../fields.js';
import {integer, parameterCount, parseCount, shortTokens} from '../format.js';
import {attentionName, errorText, formatName, warningText} from '../messages.js';

const TOKEN_CHIPS = [8192, 32768, 131072, 262144, 1048576];
const SEQUENCE_CHIPS = [1, 8, 32, 128, 512];

/** Error and warning lines of one field, with the ids that describe it. */
function messages(app, field) {
  const {t, view: {unit}, scenario} = app;
  const entry = app.entryErrors[field];
  const errors = [];
  if (entry) errors.push(t(`entry.${entry.code}`, entry.params));
  if (app.error && fieldOf(app.error, scenario) === field) errors.push(errorText(t, app.error, unit));
  const warnings = app.answer.stale ? [] : (app.answer.estimate.warnings ?? [])
    .filter((warning) => fieldOf(warning, scenario) === field)
    .map((warning) => warningText(t, warning, unit));
  return {
    invalid: errors.length > 0,
    describedBy: `${field}-hint ${field}-messages`,
    lines: html`<div id="${field}-messages" class="messages">
      ${errors.map((text) => html`<p class="message error">${text}</p>`)}
      ${warnings.map((text) => html`<p class="message warning">${text}</p>`)}
      ${field === 'model' ? suggestions(app) : nothing}</div>`,
  };
}

function suggestions(app) {
  if (app.error?.code !== 'unknown_model') return nothing;
  return (app.error.params?.suggestions ?? []).map((id) => html`<button type="button" class="link-button"
    @click=${() => app.actions.setModel(id)}>${id}</button> `);
}

function countField(app, actions, {field, chips = [], chipLabel = integer, optional = false, hint}) {
  const {t} = app;
  const {invalid, describedBy, lines} = messages(app, field);
  const typed = app.typed[field];
  const value = app.scenario[field];
  const read = typed === undefined ? null : parseCount(typed);
  // What was understood, where it isn't what stands there already.
  const echo = read !== null && typed.trim() !== integer(read) && typed.trim() !== String(read)
    ? t.count(`echo.${field}`, read, {count: integer(read)}) : hint ?? '';
  const shown = typed ?? (value === null ? '' : integer(value));
  return html`<div class="field">
    <label for=${field}>${t(`field.${field}`)}</label>
    <div class="count">
      <input id=${field} type="text" inputmode="numeric" autocomplete="off" spellcheck="false"
        placeholder=${optional ? t(`placeholder.${field}`) : nothing}
        value=${shown} .value=${live(shown)} aria-invalid=${String(invalid)} aria-describedby=${describedBy}
        @input=${(event) => actions.typeCount(field, event.target.value, optional)}
        @blur=${() => actions.settleCount(field)}>
      <span id="${field}-hint" class="hint">${echo}</span>
    </div>
    ${lines}
    ${chips.length === 0 ? nothing : html`<div class="chips" role="group" aria-label=${t(`chips.${field}`)}>
      ${chips.map((count) => html`<button type="button" class="chip" aria-pressed=${String(value === count)}
        @click=${() => actions.chooseCount(field, count)}>${chipLabel(count)}</button>`)}</div>`}
  </div>`;
}

/** Formats that can hold what this model keeps; the scenario's own value is always among them. */
function formatOptions(app, field, part) {
  const {t, scenario, options} = app;
  const value = scenario[field];
  const roles = {kv: kvRoles(layerKinds(app)), indexer: ['indexer'], state: ['recurrent']}[part];
  const known = (options?.formats ?? []).filter((format) => roles.every((role) => format.roles.includes(role))
    && (roles.length > 0 || format.roles.some((role) => role === 'key' || role === 'latent')));
  const own = app.answer.estimate.formats?.[part];
  const automatic = own && value === null ? t('format.auto_is', {format: formatName(t, own)}) : t('format.auto');
  const option = (id, label) => html`<option value=${id} ?selected=${value === id}>${label}</option>`;
  const bits = ({id, bits_per_element: width}) =>
    (width === null ? formatName(t, id) : t('format.with_bits', {format: formatName(t, id), bits: width}));
  return html`<option value="" ?selected=${value === null}>${automatic}</option>
    ${known.map((format) => option(format.id, bits(format)))}
    ${value !== null && !known.some((format) => format.id === value) ? option(value, formatName(t, value)) : nothing}`;
}

function formatField(app, actions, field, part) {
  const {t} = app;
  const {invalid, describedBy, lines} = messages(app, field);
  return html`<div class="field">
    <label for=${field}>${t(`field.${field}`)}</label>
    <select id=${field} aria-invalid=${String(invalid)} aria-describedby=${describedBy}
      .value=${live(app.scenario[field] ?? '')}
      @change=${(event) => actions.choose(field, event.target.value || null)}>${formatOptions(app, field, part)}</select>
    <span id="${field}-hint" class="hint" hidden></span>
    ${lines}
  </div>`;
}

function checkField(app, actions, field, {checked, onChange}) {
  const {describedBy, lines, invalid} = messages(app, field);
  return html`<div class="field check">
    <label><input id=${field} type="checkbox" ?checked=${checked} .checked=${live(checked)} aria-invalid=${String(invalid)}
      aria-describedby=${describedBy} @change=${(event) => onChange(event.target.checked)}> ${app.t(`field.${field}`)}</label>
    <span id="${field}-hint" class="hint">${app.t(`hint.${field}`)}</span>
    ${lines}
  </div>`;
}

/** Kinds of layers, from the layers themselves or, before they are known, from the catalog. */
const layerKinds = ({show, model}) =>
  (show ? [...new Set(show.layers.flatMap(({specs}) => specs.map(({kind}) => kind)))] : model?.attention ?? []);

/** A number all layers agree on, or null. */
function common(show, name) {
  const values = new Set((show?.layers ?? []).flatMap(({specs}) => specs.map((spec) => spec[name])).filter(Boolean));
  return values.size === 1 ? [...values][0] : null;
}

/** One grey line of the facts that drive the result. */
function modelFacts(app) {
  const {t, model, show} = app;
  const facts = show?.facts ?? {};
  const pieces = [];
  if (facts.num_layers) pieces.push(t('facts.layers', {count: integer(facts.num_layers)}));
  const heads = common(show, 'num_kv_heads');
  if (heads) pieces.push(t.count('facts.kv_heads', heads, {count: integer(heads)}));
  const width = common(show, 'head_dim');
  if (width) pieces.push(t('facts.head_dim', {count: integer(width)}));
  const kinds = layerKinds(app);
  if (kinds.length > 0) pieces.push(attentionName(t, kinds));
  const parameters = facts.parameters ?? model?.parameters;
  if (parameters) pieces.push(t('facts.parameters', {count: parameterCount(parameters)}));
  return pieces.join(' · ');
}

function pasteBox(app, actions) {
  const {t} = app;
  const {invalid, describedBy, lines} = messages(app, 'paste');
  const custom = app.scenario.model_text !== null;
  return html`<details class="paste" id="paste-box" ?open=${app.pasteOpen} @toggle=${(event) => actions.togglePaste(event.target.open)}>
    <summary>${custom ? t('paste.summary_custom') : t('paste.summary')}</summary>
    <div class="field">
      <label for="paste">${t('field.paste')}</label>
      <textarea id="paste" rows="6" spellcheck="false" autocomplete="off" autocapitalize="none" placeholder=${'{ "model_type": "llama", … }'}
        aria-invalid=${String(invalid)} aria-describedby=${describedBy}
        .value=${live(app.typed.paste ?? '')} @input=${(event) => actions.typeConfig(event.target.value)}></textarea>
      <span id="paste-hint" class="hint">${t('hint.paste')}</span>
      ${lines}
      <div class="paste-actions">
        <label class="button file-button">${t('paste.choose')}<input id="config-file" type="file" class="visually-hidden" accept=".json,application/json,text/plain"
          @change=${(event) => { actions.readFile(event.target.files[0]); event.target.value = ''; }}></label>
        ${app.typed.paste ? html`<button type="button" class="link-button" @click=${actions.clearConfig}>${t('paste.clear')}</button>` : nothing}
      </div>
    </div></details>`;
}

function engineOption(app, actions, {name, type, choices, default: fallback}) {
  const {t, scenario} = app;
  const value = scenario.engine_options[name];
  const id = `option-${name}`;
  const set = (next) => actions.setEngineOption(name, next);
  const label = html`<label for=${id}><code>${name}</code></label>`;
  if (type === 'flag') {
    const standard = t('option.default', {value: fallback === true ? t('option.on') : fallback === false ? t('option.off') : '–'});
    const shown = value === undefined ? '' : String(value);
    return html`<div class="field">${label}<select id=${id} .value=${live(shown)}
      @change=${(event) => set(event.target.value === '' ? null : event.target.value)}>
      <option value="" ?selected=${shown === ''}>${standard}</option>
      <option value="true" ?selected=${shown === 'true'}>${t('option.on')}</option>
      <option value="false" ?selected=${shown === 'false'}>${t('option.off')}</option></select></div>`;
  }
  if (choices?.length) {
    return html`<div class="field">${label}<select id=${id} .value=${live(value ?? '')}
      @change=${(event) => set(event.target.value || null)}>
      <option value="" ?selected=${value === undefined}>${t('option.default', {value: fallback ?? '–'})}</option>
      ${choices.map((choice) => html`<option value=${choice} ?selected=${value === String(choice)}>${choice}</option>`)}</select></div>`;
  }
  return html`<div class="field">${label}<input id=${id} type="text" autocomplete="off" spellcheck="false"
    inputmode=${type === 'integer' ? 'numeric' : nothing} placeholder=${fallback === null || fallback === undefined ? '' : String(fallback)}
    value=${value ?? ''} .value=${live(value ?? '')}
    @input=${(event) => set(event.target.value.trim() || null)}></div>`;
}

function engineFields(app, actions) {
  const {t, scenario, options} = app;
  const engines = options?.engines ?? [];
  const engine = engines.find(({id}) => id === scenario.engine);
  const {invalid, describedBy, lines} = messages(app, 'engine');
  const listed = engines.some(({id}) => id === scenario.engine) || scenario.engine === null;
  return html`<div class="field">
      <label for="engine">${t('field.engine')}</label>
      <select id="engine" aria-invalid=${String(invalid)} aria-describedby=${describedBy} .value=${live(scenario.engine ?? '')}
        @change=${(event) => actions.chooseEngine(event.target.value || null)}>
        <option value="" ?selected=${scenario.engine === null}>${t('engine.none')}</option>
        ${engines.map(({id}) => html`<option value=${id} ?selected=${scenario.engine === id}>${id}</option>`)}
        ${listed ? nothing : html`<option value=${scenario.engine} selected>${scenario.engine}</option>`}</select>
      <span id="engine-hint" class="hint">${t('hint.engine')}</span>${lines}
    </div>
    ${engine && engine.versions.length > 1 ? html`<div class="field">
      <label for="engine_version">${t('field.engine_version')}</label>
      <select id="engine_version" .value=${live(scenario.engine_version ?? '')}
        @change=${(event) => actions.choose('engine_version', event.target.value || null)}>
        <option value="" ?selected=${scenario.engine_version === null}>${t('engine.latest')}</option>
        ${engine.versions.map((version) => html`<option value=${version} ?selected=${scenario.engine_version === version}>${version}</option>`)}</select>
    </div>` : nothing}
    ${engine && engine.options.length > 0 ? html`<fieldset class="engine-options">
      <legend>${t('engine.options', {engine: engine.id})}</legend>
      ${engine.options.map((option) => engineOption(app, actions, option))}
      ${messages(app, 'engine_options').lines}</fieldset>` : nothing}`;
}

function more(app, actions) {
  const {t, scenario} = app;
  const applies = applicable(app);
  return html`<details class="more" id="more" ?open=${app.moreOpen} @toggle=${(event) => actions.toggleMore(event.target.open)}>
    <summary>${t('inputs.more')}</summary>
    ${applies.indexer_format ? formatField(app, actions, 'indexer_format', 'indexer') : nothing}
    ${applies.no_state ? checkField(app, actions, 'no_state', {
      checked: !scenario.no_state, onChange: (counted) => actions.choose('no_state', !counted)}) : nothing}
    ${applies.state_format && !scenario.no_state ? formatField(app, actions, 'state_format', 'state') : nothing}
    ${applies.checkpoint_interval && !scenario.no_state ? countField(app, actions, {
      field: 'checkpoint_interval', optional: true, hint: t('hint.checkpoint_interval')}) : nothing}
    ${applies.draft ? checkField(app, actions, 'draft', {
      checked: scenario.draft, onChange: (counted) => actions.choose('draft', counted)}) : nothing}
    ${applies.encoder_tokens ? countField(app, actions, {
      field: 'encoder_tokens', optional: true, hint: t('hint.encoder_tokens')}) : nothing}
    ${engineFields(app, actions)}
  </details>`;
}

export function inputs(app, actions) {
  const {t} = app;
  const model = messages(app, 'model');
  const trained = app.answer.estimate.max_context;
  const tokenChips = TOKEN_CHIPS.includes(trained) || !trained ? TOKEN_CHIPS
    : [...TOKEN_CHIPS, trained].sort((a, b) => a - b);
  return html`<form class="inputs" aria-labelledby="inputs-heading" autocomplete="off" @submit=${(event) => event.preventDefault()}>
    <h2 id="inputs-heading" class="visually-hidden">${t('inputs.heading')}</h2>
    <div class="field">
      <label for="model">${t('field.model')}</label>
      ${modelField(app, actions, model)}
      <p id="model-hint" class="hint model-facts">${modelFacts(app)}</p>
      ${model.lines}
    </div>
    ${pasteBox(app, actions)}
    ${countField(app, actions, {field: 'tokens', chips: tokenChips, chipLabel: shortTokens})}
    ${countField(app, actions, {field: 'sequences', chips: SEQUENCE_CHIPS})}
    ${formatField(app, actions, 'kv_format', 'kv')}
    ${more(app, actions)}
    <p class="inputs-foot"><button type="button" class="link-button" @click=${actions.reset}>${t('inputs.reset')}</button></p>
  </form>`;
}
