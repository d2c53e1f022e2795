/** Which input a message from kvcore belongs to, and which inputs apply to a model. */

import { entryOf } from "./values.js";

const BY_CODE = {
  // errors
  missing_field: "paste",
  invalid_field: "paste",
  invalid_json: "paste",
  input_too_large: "paste",
  unsupported_model: "model",
  unknown_model: "model",
  unknown_engine: "engine",
  unknown_option: "engine",
  // warnings
  beyond_trained_context: "tokens",
  context_unknown: "tokens",
  unknown_model_type: "model",
  assumed_default: "model",
  window_not_applied: "model",
  cache_shared_between_layers: "model",
  encoder_tokens_assumed: "encoder_tokens",
  no_draft_layers: "draft",
  state_excluded: "no_state",
  engine_version_differs: "engine",
  kv_heads_replicated: "tp",
  latent_replicated: "tp",
  kv_heads_uneven: "tp",
  draft_outside_pool: "engine",
  rules_not_executed: "engine",
  small_blocks: "engine",
  context_too_small: "engine",
  unknown_accelerator: "gpu",
  memory_unknown: "gpu",
  working_set_estimated: "gpu",
  weight_files_missing: "model",
  weight_types_unknown: "model",
};

/** What may be wrong with a description of a model, and so with a field changed by hand. */
const OF_DESCRIPTION = new Set(["missing_field", "invalid_field"]);

const FORMAT_CODES = new Set(["unknown_format", "unsupported_format", "format_row_mismatch"]);
const OPTION_CODES = new Set(["invalid_argument", "unsupported_option", "setting_overridden", "does_not_shard"]);
/** The page's own names for a plan's arguments. */
const ARGUMENTS = { context: "tokens", concurrency: "sequences" };
const FORMAT_FIELDS = ["kv_format", "indexer_format", "state_format"];

/** The field changed by hand that a message is about: the one it names, else the last one changed. */
function editedPath({ code, params }, scenario) {
  const paths = Object.keys(scenario.edits);
  if (code === "edit_without_effect") return params.field;
  const ofEdits = code === "invalid_argument" && params.argument === "edits";
  if (paths.length === 0 || !(ofEdits || OF_DESCRIPTION.has(code)) || params.field in scenario) return null;
  const named = String(params.field ?? "").replace(/\[\d+\]$/, "");
  return paths.find((path) => path === named || path.endsWith(`.${named}`)) ?? paths.at(-1);
}

/**
 * The field beside which a message is shown, or null for the list of notices.
 * @param {{code: string, params: object}} message
 * @param {object} scenario what was asked
 */
export function fieldOf(message, scenario) {
  const { code, params = {} } = message;
  const edited = editedPath({ code, params }, scenario);
  if (edited !== null) return entryOf(edited);
  if (FORMAT_CODES.has(code)) {
    return FORMAT_FIELDS.find((field) => scenario[field] === params.format) ?? "kv_format";
  }
  const argument = params.argument ?? params.option;
  const named = ARGUMENTS[argument] ?? argument;
  if (OPTION_CODES.has(code) && named !== undefined) {
    if (named === "model_text") return "paste";
    if (named in scenario.engine_options) return `option-${named}`;
    return named in scenario ? named : code === "invalid_argument" ? null : "engine";
  }
  if (code === "missing_field" && (params.field === "memory_mib" || params.field === "gpu")) return "gpu";
  if (code === "missing_field" && params.field === "weight_bytes") return "weight_bytes";
  const field = BY_CODE[code] ?? null;
  // A field of the catalog's own config can't be mended by the reader.
  if (field === "paste" && scenario.model_text === null) return "model";
  return field;
}

/** Whether it is the model itself that cannot be read. */
export function isOfModel(message, scenario) {
  const field = fieldOf(message, scenario) ?? "";
  return field === "paste" || field === "model" || field.startsWith("edit-");
}

/** The inputs under "More" that change anything for this model. */
export function applicable(app) {
  const { scenario, show } = app;
  const { formats } = app.answer.estimate;
  const state = Boolean(formats?.state);
  return {
    indexer_format: Boolean(formats?.indexer) || scenario.indexer_format !== null,
    state_format: state || scenario.state_format !== null,
    no_state: state || scenario.no_state,
    checkpoint_interval: state || scenario.checkpoint_interval !== null,
    shared_prefix: Boolean(scenario.gpu),
    draft_model: Boolean(scenario.gpu),
    encoder_tokens: Boolean(show?.has_encoder) || scenario.encoder_tokens !== null,
    draft: (show?.draft_layers ?? []).length > 0 || scenario.draft,
  };
}

const ALWAYS_SHOWN = new Set(["model", "tokens", "sequences", "kv_format", "gpu", "gpus", "memory_mib"]);
const IN_RULES = new Set([
  "engine",
  "engine_version",
  "memory_fraction",
  "block_tokens",
  "batched_tokens",
  "weight_format",
  "weight_bytes",
  "reserve_bytes",
  "pool_bytes",
]);
const IN_PARALLEL = new Set(["tp", "pp", "dp", "dcp"]);

/** The same field as far as the reader can see it: what a closed or absent part hides belongs to the notices. */
export function shownFieldOf(app, message, scenario) {
  const field = fieldOf(message, scenario);
  if (field === null || ALWAYS_SHOWN.has(field)) return field;
  if (field === "paste") return app.pasteOpen ? field : null;
  if (field.startsWith("edit-")) return app.open.fields ? field : null;
  if (IN_RULES.has(field) || field.startsWith("option-")) return app.open.rules ? field : null;
  if (IN_PARALLEL.has(field)) return app.open.parallel && scenario.gpu ? field : null;
  if (!app.open.more) return null;
  return applicable(app)[field] === false ? null : field;
}

const LATENT_KINDS = new Set(["latent_attention", "compressed_attention"]);
const KEPT_ELSEWHERE = new Set(["indexer_keys"]);

/** What a KV format must be able to hold for this model: keys and values, a latent, or both. */
export function kvRoles(kinds) {
  const roles = new Set();
  for (const kind of kinds) {
    if (LATENT_KINDS.has(kind)) roles.add("latent");
    else if (/attention/.test(kind) && !KEPT_ELSEWHERE.has(kind)) roles.add("key");
  }
  return [...roles];
}
