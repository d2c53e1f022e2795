/** The scenario in the address bar, and its mirror in the document for saved copies. */

import { pageAddress } from "./embed.js";
import { parse, serialize } from "./state.js";

const QUIET = 300;

const mirror = () => document.querySelector('meta[name="kvcore-state"]');

/** What the address says; switches of a frame may stand in the query too. */
export function readNavigation() {
  const given = [location.search.slice(1), location.hash.slice(1)].filter((part) => part.includes("="));
  return parse(given.join("&"));
}

/** The same at the start, else what a saved copy remembers. */
export function readAddress() {
  const found = readNavigation();
  return found.empty ? parse(mirror()?.content ?? "") : found;
}

/** @param {() => boolean} fixed whether the address must stay as it is (frames) */
export function createAddress({ fixed, onNavigate }) {
  let timer = null;
  let last = location.hash.slice(1);

  function write(fragment, push) {
    clearTimeout(timer);
    timer = null;
    // An address that is not the last one known is being navigated to.
    if (fixed() || fragment === last || location.hash.slice(1) !== last) return;
    try {
      if (push) history.pushState(null, "", `#${fragment}`);
      else history.replaceState(null, "", `#${fragment}`);
      last = fragment;
    } catch {
      // Browsers limit how often the address may change; the next change writes it.
    }
  }

  let pending = null;

  // Fired by links, edits of the address and the back button; never by what is written here.
  window.addEventListener("hashchange", () => {
    clearTimeout(timer);
    timer = null;
    last = location.hash.slice(1);
    onNavigate();
  });

  return {
    /** Replaces the entry once typing has settled, or adds one at once. */
    update(app, { push = false } = {}) {
      const { scenario, view, given, packed } = app;
      const fragment = serialize({ scenario, view, given, ...(app.cfgTooLong ? {} : packed) });
      app.link = `${pageAddress()}#${fragment}`;
      mirror()?.setAttribute("content", serialize({ scenario, view: { ...view, embed: false }, given, ...packed }));
      if (push) {
        // The entry that is left keeps what was last typed in it.
        if (timer !== null) write(pending, false);
        write(fragment, true);
        return;
      }
      pending = fragment;
      clearTimeout(timer);
      timer = setTimeout(() => write(pending, false), QUIET);
    },
  };
}
