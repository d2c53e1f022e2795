/** The accelerators of the catalog: in the order people look for them, by name, and what memory they report. */

import { createResolver, createSearch } from "./search.js";

export const NO_GPU = "";
export const OTHER_GPU = "other";

const CATEGORIES = ["datacenter", "workstation", "consumer", "laptop", "unified"];
const MIB = 2 ** 20;

/** Makers in the catalog's order; of each the newest data-center parts first. */
function ordered(gpus) {
  const vendors = [...new Set(gpus.map(({ vendor }) => vendor))];
  const rank = ({ vendor, category, year }) => [vendors.indexOf(vendor), CATEGORIES.indexOf(category), -(year ?? 0)];
  const compare = (a, b) => {
    const [left, right] = [rank(a), rank(b)];
    const differs = left.findIndex((value, index) => value !== right[index]);
    return differs < 0 ? 0 : left[differs] - right[differs];
  };
  return [...gpus].sort(compare);
}

export function createGpus(gpus) {
  const entries = ordered(gpus).map((gpu) => ({ ...gpu, family: gpu.vendor }));
  const search = createSearch(entries);
  const resolve = createResolver(entries);
  return {
    /** The choices for a query; those that are no catalog entry stand first where nothing is typed. */
    search: (query, special) => (query.trim() === "" ? [...special, ...entries] : search(query)),
    find: (id) => (id ? resolve(id) : null),
  };
}

export const mebibytes = (bytes) => Math.floor(bytes / MIB);
