/** Strings by key, with {name} placeholders; missing keys show themselves. */

const PLACEHOLDER = /\{(\w+)\}/;

/**
 * @param {Record<string, Record<string, string>>} locales
 * @param {string} lang
 */
export function createTranslator(locales, lang) {
  const strings = locales[lang] ?? locales.en;
  const plural = new Intl.PluralRules(lang);

  const lookup = (key) => strings[key] ?? locales.en[key] ?? key;

  /** The text with every placeholder filled in. */
  const t = (key, params = {}) => t.parts(key, params).join("");

  /** The same as a list, so that a placeholder may be a template or a node. */
  t.parts = (key, params = {}) =>
    lookup(key)
      .split(PLACEHOLDER)
      .map((piece, index) => (index % 2 ? (params[piece] ?? `{${piece}}`) : piece));

  t.has = (key) => key in strings || key in locales.en;

  /** The form of `key` for a count: key.one, key.other. */
  t.count = (key, count, params = {}) => {
    const form = `${key}.${plural.select(count)}`;
    return t(t.has(form) ? form : `${key}.other`, params);
  };

  t.lang = lang;
  return t;
}

/** The first language the reader prefers that we have. */
export function preferredLanguage(locales, wanted) {
  for (const tag of wanted) {
    const base = tag.toLowerCase().split("-")[0];
    if (base in locales) return base;
  }
  return "en";
}
