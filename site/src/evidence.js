/** Filters of the evidence page. They live in the address, so that a link shows the same rows. */

const box = document.querySelector(".filters");
const filters = [...box.querySelectorAll("select")];
const status = box.querySelector("[role=status]");
const rows = [...document.querySelectorAll(".evidence tbody tr")];

const LONGEST = 60;

/** What the address asks of each filter, and what of it no filter has. */
function wanted() {
  const given = new URLSearchParams(location.hash.slice(1));
  const values = filters.map((select) => {
    const value = given.get(select.dataset.filter) ?? "";
    return [...select.options].some((option) => option.value === value) ? value : "";
  });
  const known = (name, value) => filters.some((select, i) => select.dataset.filter === name && values[i] === value);
  const strange = [...given].filter(([name, value]) => value !== "" && !known(name, value));
  return { values, strange: strange.map((pair) => pair.join("=").slice(0, LONGEST)) };
}

function show() {
  const { values, strange } = wanted();
  filters.forEach((select, i) => (select.value = values[i]));
  const seen = new Set();
  for (const row of rows) {
    row.hidden = !filters.every((select, i) => values[i] === "" || row.dataset[select.dataset.filter] === values[i]);
    if (!row.hidden && row.id) seen.add(row.id);
  }
  const all = rows.filter((row) => row.id).length;
  const unknown = strange.length > 0 ? `; not known here: ${strange.join(", ")}` : "";
  status.textContent = `${seen.size} of ${all} shown${unknown}`;
}

function choose() {
  const chosen = filters.filter((select) => select.value).map((select) => [select.dataset.filter, select.value]);
  // An empty fragment would scroll to the top.
  history.replaceState(null, "", `#${new URLSearchParams(chosen).toString() || "rows"}`);
  show();
}

box.hidden = false;
box.addEventListener("change", choose);
box.querySelector("button").addEventListener("click", () => {
  for (const select of filters) select.value = "";
  choose();
});

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What was hidden or shown has moved the place that the address names. */
function arrive() {
  show();
  document.getElementById(decoded(location.hash.slice(1)))?.scrollIntoView();
}

window.addEventListener("hashchange", arrive);
arrive();
