/** What the build wrote into the page: inert JSON blocks, read once. */

function block(name) {
  const node = document.getElementById(`data-${name}`);
  return node === null ? null : JSON.parse(node.textContent);
}

export function readData() {
  const catalog = block("catalog");
  return {
    ...block("build"),
    models: catalog.models,
    catalog_date: catalog.catalog_date,
    options: block("options"),
    gpus: block("gpus"),
    weight_formats: block("weight-formats"),
    answers: block("answers"),
    plans: block("plans"),
    linked_answers: block("linked-answers"),
    default_state: block("default-state"),
    default_answer: block("default-answer"),
    locales: block("locales"),
  };
}
