/**
 * Fields of a model changed by hand, as text and back. As with the command line's --set, a value is
 * JSON, else a text; an empty text stands for no such field.
 */

/** The value of a field that is not there. */
const ABSENT = "";

export const isAbsent = (value) => value === ABSENT;

export function valueOf(text) {
  const trimmed = text.trim();
  try {
    return JSON.parse(trimmed);
  } catch {
    return trimmed;
  }
}

/** The shortest text that is read back as the value. */
export function textOf(value) {
  if (typeof value !== "string") return JSON.stringify(value);
  return valueOf(value) === value ? value : JSON.stringify(value);
}

export const sameValue = (one, other) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);

export const isEdited = (scenario) => Object.keys(scenario.edits).length > 0;

const ENTRY = "edit-";

/** What typed text about a field is kept under, and the id of its input. */
export const entryOf = (path) => ENTRY + path;

/** Fields with text that may differ from what is in the scenario. */
export const typedPaths = ({ typed }) =>
  Object.keys(typed)
    .filter((key) => key.startsWith(ENTRY))
    .map((key) => key.slice(ENTRY.length));

/** What the model's own description says, as far as its fields have been listed. */
export function originalOf(app, path) {
  const row = app.fields.rows.find((each) => each.path === path);
  return row === undefined ? ABSENT : row.original;
}

/** Every row to show: kvcore's, and those it does not know yet. */
export function shownRows(app) {
  const known = new Set(app.fields.rows.map(({ path }) => path));
  const more = [...new Set([...Object.keys(app.scenario.edits), ...typedPaths(app)])];
  return [
    ...app.fields.rows,
    ...more
      .filter((path) => !known.has(path))
      .map((path) => ({ path, value: ABSENT, original: ABSENT, assumed: null, kind: "unknown" })),
  ];
}

/** What stands in a field's input, and whether that differs from the model's own. */
export function currentOf(app, row) {
  const { path, original } = row;
  const typed = app.typed[entryOf(path)];
  const value = typed === undefined ? (path in app.scenario.edits ? app.scenario.edits[path] : original) : valueOf(typed);
  return { text: typed ?? textOf(value), value, changed: !sameValue(value, original) };
}
