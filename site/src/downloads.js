/** What a panel shows, as files: its table as CSV, its chart as SVG or PNG. */

const SVG = "http://www.w3.org/2000/svg";
const PNG_SCALE = 2;
const MARGIN = 16;
/** What the style sheet decides of a drawing, which a file must carry in itself. */
const STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-opacity",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linejoin",
  "stroke-linecap",
  "paint-order",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "font-variant-numeric",
  "text-anchor",
];

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A text that a spreadsheet would take for a formula is marked as text. */
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

/** RFC 4180. @param {Array<Array<string|number|null>>} rows the header first */
export const csvText = (rows) => rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");

export const saveCsv = (rows, name) => save(new Blob([csvText(rows)], { type: "text/csv;charset=utf-8" }), name);

/** A drawing that looks the same without the page: its styles as attributes, on the page's ground. */
function standalone(chart, title) {
  const copy = chart.cloneNode(true);
  const [originals, copies] = [chart, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  for (const [index, node] of originals.entries()) {
    const style = getComputedStyle(node);
    for (const name of STYLES) copies[index].setAttribute(name, style.getPropertyValue(name));
    copies[index].removeAttribute("class");
  }
  const [, , width, height] = chart.getAttribute("viewBox").split(" ").map(Number);
  const box = [-MARGIN, -MARGIN, width + 2 * MARGIN, height + 2 * MARGIN];
  const ground = document.createElementNS(SVG, "rect");
  const names = ["x", "y", "width", "height"];
  for (const [index, name] of names.entries()) ground.setAttribute(name, box[index]);
  ground.setAttribute("fill", getComputedStyle(document.documentElement).backgroundColor);
  const heading = document.createElementNS(SVG, "title");
  heading.textContent = title;
  copy.prepend(heading, ground);
  copy.removeAttribute("aria-labelledby");
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("viewBox", box.join(" "));
  copy.setAttribute("width", box[2]);
  copy.setAttribute("height", box[3]);
  return { text: new XMLSerializer().serializeToString(copy), width: box[2], height: box[3] };
}

export function saveSvg(chart, title, name) {
  save(new Blob([standalone(chart, title).text], { type: "image/svg+xml" }), name);
}

/** The page's policy lets images come from data: addresses alone. */
export async function savePng(chart, title, name) {
  const { text, width, height } = standalone(chart, title);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * PNG_SCALE);
  canvas.height = Math.round(height * PNG_SCALE);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  save(blob, name);
}
