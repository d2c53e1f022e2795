/** A part of the page on which a file may be dropped: the file is its own, whatever it is called. */

import { carriesFiles } from "../files.js";

/**
 * Listeners for `dragover`, `dragleave` and `drop`.
 * @param {object} options
 * @param {(over: boolean) => void} options.mark shows that a file would be taken here
 * @param {(file: File) => void} options.take
 */
export function drops(actions, { mark, take }) {
  return {
    over(event) {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      event.stopPropagation();
      actions.setDragging(false);
      mark(true);
    },
    leave(event) {
      if (!event.currentTarget.contains(event.relatedTarget)) mark(false);
    },
    drop(event) {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      event.stopPropagation();
      mark(false);
      const [file] = event.dataTransfer.files;
      if (file) take(file);
    },
  };
}
