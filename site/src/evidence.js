/** Filters of the evidence page. They live in the address, so that a link shows the same rows. */

const box = document.querySelector(".filters");
const filters = [...box.querySelectorAll("select")];
const status = box.querySelector("[role=status]");
const rows = [...document.querySelectorAll(".evidence tbody tr")];

/** What the address asks of each filter; values that no filter has are left out. */
function wanted() {
  const given = new URLSearchParams(location.hash.slice(1));
  return filters.map((select) => {
    const value = given.get(select.dataset.filter) ?? "";
    return [...select.options].some((option) => option.value === value) ? value : "";
  });
}

function show() {
  const values = wanted();
  filters.forEach((select, i) => (select.value = values[i]));
  const seen = new Set();
  for (const row of rows) {
    row.hidden = !filters.every((select, i) => values[i] === "" || row.dataset[select.dataset.filter] === values[i]);
    if (!row.hidden && row.id) seen.add(row.id);
  }
  const all = rows.filter((row) => row.id).length;
  status.textContent = `${seen.size} of ${all} shown`;
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

/** What was hidden or shown has moved the place that the address names. */
function arrive() {
  show();
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

window.addEventListener("hashchange", arrive);
arrive();
