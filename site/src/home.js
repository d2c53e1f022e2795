/**
 * Where the pages beside this one are: those of the models and the evidence. A copy on a disk has none
 * beside it, so it remembers the address it was published at.
 */

import { pageAddress } from "./embed.js";

const meta = () => document.querySelector('meta[name="kvcore-home"]');

/** The folder's address, with a slash at the end; null where nobody knows it. */
export function homeAddress() {
  const remembered = meta()?.content || null;
  if (!/^https?:$/.test(location.protocol)) return remembered;
  const own = new URL(".", pageAddress()).href;
  // What only this machine serves is no place for a copy to point at.
  if (remembered === null && location.protocol === "https:") meta()?.setAttribute("content", own);
  return own;
}
