/** The page as a file that opens with the present scenario. */

/**
 * Everything in the document, payload included, is the page; the scenario is in its meta element.
 * What is marked as private is nobody else's: it is taken out meanwhile.
 */
export function documentText() {
  const taken = [...document.querySelectorAll("[data-private]")].map((node) => [node, document.createComment("")]);
  for (const [node, stand] of taken) node.replaceWith(stand);
  try {
    return `<!doctype html>\n${document.documentElement.outerHTML}\n`;
  } finally {
    for (const [node, stand] of taken) stand.replaceWith(node);
  }
}

/**
 * Points a plain download link at the page as it is now, for this one click.
 * Without scripts the same link downloads the page as it was published.
 */
export function pointAtCopy(link) {
  const address = URL.createObjectURL(new Blob([documentText()], { type: "text/html" }));
  const published = link.getAttribute("href");
  link.setAttribute("href", address);
  setTimeout(() => {
    link.setAttribute("href", published);
    URL.revokeObjectURL(address);
  }, 10_000);
}

export function fileName(app) {
  const { estimate } = app.answer;
  const model = String(app.asked.hub ?? estimate.name ?? estimate.model)
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, "-")
    .replace(/^-+|-+$/g, "");
  return `kvcore-${model}-${estimate.tokens}x${estimate.sequences}.html`;
}

/** Writes to the clipboard; where that is refused, selects the text for the reader to copy. */
export async function copyText(text, field) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    field?.focus();
    if (field?.select) field.select();
    else if (field) getSelection().selectAllChildren(field);
    try {
      return document.execCommand("copy");
    } catch {
      return false;
    }
  }
}
