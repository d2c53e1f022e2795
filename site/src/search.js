/** Typo-tolerant search over the catalog; built once, a few thousand words. */

/** "Llama-3.1-70B" -> ["llama", "3.1", "70b"]. Digits are never guessed at. */
function words(text) {
  return (
    text
      .normalize("NFKC")
      .toLowerCase()
      .match(/\d+(\.\d+)*[a-z]*|[\p{L}]+/gu) ?? []
  );
}

const hasDigit = (word) => /\d/.test(word);

/** Edits allowed between a typed word and a name's word. */
function tolerance(word) {
  if (hasDigit(word) || word.length < 4) return 0;
  return word.length < 7 ? 1 : 2;
}

/** Optimal string alignment distance, given up once it exceeds `limit`. */
export function editDistance(a, b, limit) {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let before = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const substitution = previous[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      current[j] = Math.min(previous[j] + 1, current[j - 1] + 1, substitution);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        current[j] = Math.min(current[j], before[j - 2] + 1);
      }
    }
    if (Math.min(...current) > limit) return limit + 1;
    [before, previous] = [previous, current];
  }
  return previous[b.length];
}

/** How well a typed word fits one word of a name: 0 is best, null is not at all. */
function wordScore(typed, word, limit) {
  if (word === typed) return 0;
  if (word.startsWith(typed)) return 1;
  if (!hasDigit(typed) && typed.length > 2 && word.includes(typed)) return 2;
  if (limit === 0) return null;
  // While typing, the word is a prefix of what is meant: "mixtrla" for "mixtral".
  const distance = Math.min(editDistance(typed, word, limit), editDistance(typed, word.slice(0, typed.length), limit));
  return distance <= limit ? 3 + distance : null;
}

/** Scores of every word that occurs in the catalog, each compared once. */
function scoreVocabulary(typed, vocabulary, limit) {
  const scores = new Map();
  for (const word of vocabulary) {
    const score = wordScore(typed, word, limit);
    if (score !== null) scores.set(word, score);
  }
  return scores;
}

/** The best score of a field's words; earlier words count a little more. */
function fieldScore(scores, field) {
  let best = null;
  field.forEach((word, position) => {
    const score = scores.get(word);
    if (score === undefined) return;
    const total = score + Math.min(position, 9) / 100;
    if (best === null || total < best) best = total;
  });
  return best;
}

/** @param {Array<object>} models catalog entries of the api's `models` */
export function createSearch(models) {
  const entries = models.map((model) => ({
    model,
    // The name counts most, the rest only helps to find it.
    fields: [
      [words(model.name), 0],
      [words(model.id), 0.2],
      [words(model.family ?? ""), 0.3],
      [words(model.hf_id ?? ""), 0.4],
      [(model.aliases ?? []).flatMap(words), 0.5],
    ],
    length: model.name.length,
  }));

  const vocabulary = new Set(entries.flatMap(({ fields }) => fields.flatMap(([field]) => field)));

  function match(typed, forgiving) {
    const scored = typed.map((word) => scoreVocabulary(word, vocabulary, forgiving ? tolerance(word) : 0));
    const hits = [];
    for (const { model, fields, length } of entries) {
      let total = length / 1000;
      for (const scores of scored) {
        const best = fields
          .map(([field, weight]) => [fieldScore(scores, field), weight])
          .filter(([score]) => score !== null)
          .reduce((least, [score, weight]) => Math.min(least, score + weight), Infinity);
        total += best;
      }
      if (total < Infinity) hits.push([total, model]);
    }
    return hits;
  }

  return function find(query, limit = 60) {
    const typed = words(query);
    if (typed.length === 0) return models;
    let hits = match(typed, false);
    if (hits.length === 0) hits = match(typed, true);
    hits.sort((a, b) => a[0] - b[0]);
    return hits.slice(0, limit).map(([, model]) => model);
  };
}

/** Models under their family's name, families in the order of their first model. */
export function byFamily(models) {
  const groups = new Map();
  for (const model of models) {
    const family = model.family ?? "";
    if (!groups.has(family)) groups.set(family, []);
    groups.get(family).push(model);
  }
  return [...groups].map(([family, members]) => ({ family, members }));
}

/** The entry a person or a link means: by id, Hugging Face id or alias. */
export function createResolver(models) {
  const byName = new Map();
  for (const model of models) {
    for (const name of [...(model.aliases ?? []), model.name, model.hf_id, model.id]) {
      if (name) byName.set(name.toLowerCase(), model);
    }
  }
  return (name) =>
    byName.get(
      name
        .trim()
        .toLowerCase()
        .replace(/^https:\/\/huggingface\.co\//, "")
        .replace(/\/+$/, ""),
    ) ?? null;
}
