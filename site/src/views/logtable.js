/** The numbers an engine printed beside kvcore's, and why they differ. */

import { html, nothing } from "lit-html";
import { integer } from "../format.js";
import { errorText, formatName } from "../messages.js";

/** Characters of a line shown before its number. */
const BEFORE = 24;
const MAX_ALSO = 24;
const COUNTS = new Set(["tokens", "blocks", "slots"]);

export const busy = ({ state }) => state === "reading" || state === "explaining";

// Numbers ------------------------------------------------------------------------

const formats = new Map();

/** With as many digits after the point as the engine prints. */
function digits(value, decimals) {
  if (!formats.has(decimals)) {
    const fixed = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
    formats.set(decimals, new Intl.NumberFormat("en-US", fixed));
  }
  return formats.get(decimals).format(value);
}

/** A number with its unit in words where it is a count. */
function withUnit(t, value, unit, decimals) {
  const text = digits(value, decimals);
  if (unit === "x") return `${text}×`;
  if (unit === "%") return `${text}%`;
  return `${text} ${COUNTS.has(unit) ? t(`log.unit_${unit}`) : unit}`;
}

const theirs = (t, { theirs: value, unit, printed_unit: printed, decimals }) =>
  withUnit(t, value, printed ?? unit, decimals);
const ours = (t, { ours: value, unit, decimals }) => withUnit(t, value, unit, decimals);
const quantityName = (t, quantity) => t(`quantity.${quantity}`);
const isExact = (found) => digits(found.ours, found.decimals) === digits(found.theirs, found.decimals);

const lineName = (t, line) =>
  line > 0 ? t("log.line", { line: integer(line) }) : t("log.line_from_end", { line: integer(-line) });

function difference(t, found) {
  if (found.ours === null) return "–";
  const value = found.ours - found.theirs;
  const sign = value < 0 ? "−" : "+";
  const share = found.difference === null ? "" : ` (${sign}${digits(Math.abs(100 * found.difference), 2)}%)`;
  return `${sign}${withUnit(t, Math.abs(value), found.unit, found.decimals)}${share}`;
}

// Causes -------------------------------------------------------------------------

/** A cause's values as a reader wants them. */
function causeText(app, { code, params }) {
  const { t } = app;
  const shown = {};
  for (const [name, value] of Object.entries(params)) {
    if (typeof value === "boolean") shown[name] = t(value ? "log.on" : "log.off");
    else if (name === "percent") shown[name] = String(Math.abs(value));
    else if (name === "format") shown[name] = formatName(t, value);
    else if (name === "gpu") shown[name] = app.gpus.find(value)?.name ?? value;
    else if (typeof value === "number" && Number.isInteger(value)) shown[name] = integer(value);
    else shown[name] = String(value);
  }
  return t(`cause.${code}`, shown);
}

/** What has to hold at once to give the printed number. */
export const together = (app, cause) => [cause, ...cause.and].map((each) => causeText(app, each));

export const isOpen = (cause) => cause === undefined || ["unexplained", "not_computed"].includes(cause.code);

function causes(app, found) {
  const { t, log, view } = app;
  if (found.causes.length === 0) return html`<span class="muted">${t(busy(log) ? "log.looking" : "log.not_looked")}</span>`;
  const [first, ...others] = found.causes;
  const parts = (cause) =>
    together(app, cause).map(
      (text, index) => html`${index ? html` <b class="log-and">${t("log.and")}</b> ` : nothing}<span>${text}.</span>`,
    );
  return html`<span class="log-cause">${parts(first)}</span>
    ${found.error ? html`<span class="muted">${errorText(t, found.error, view.unit)}</span>` : nothing}
    ${
      others.length === 0
        ? nothing
        : html`<details class="log-others">
            <summary>${t.count("log.others", others.length, { count: others.length })}</summary>
            <ol start="2">
              ${others.map((cause) => html`<li>${parts(cause)}</li>`)}
            </ol>
          </details>`
    }`;
}

/** The part of a line that has the number, without the marks of time and place before it. */
function excerptOf({ text, theirs: value, decimals }) {
  const printed = [digits(value, decimals), value.toFixed(decimals)].map((form) => text.indexOf(form));
  const at = Math.max(...printed);
  if (at <= BEFORE) return text;
  const start = text.indexOf(" ", at - BEFORE);
  return `… ${text.slice(start >= 0 && start < at ? start + 1 : at)}`;
}

// The table ----------------------------------------------------------------------

function row(app, found, previous) {
  const { t } = app;
  const excerpt =
    previous?.line === found.line ? nothing : html` <code class="log-excerpt">${excerptOf(found)}</code>`;
  const meant = found.printed_unit ? html` <span class="muted">${t("log.meant", { unit: found.unit })}</span>` : nothing;
  return html`<tr role="row" class=${found.agrees ? "agrees" : "differs"}>
    <th role="rowheader" scope="row">${quantityName(t, found.quantity)}</th>
    <td role="cell" class="log-number" data-label=${t("log.theirs")}><span>${theirs(t, found)}${meant}</span></td>
    <td role="cell" class="log-number" data-label=${t("log.ours")}><span>${found.ours === null ? "–" : ours(t, found)}</span></td>
    <td role="cell" class="log-number" data-label=${t("log.difference")}>
      <span>${found.agrees && isExact(found) ? t("log.none") : difference(t, found)}</span>
    </td>
    <td role="cell" class="log-where"><span class="log-line">${lineName(t, found.line)}</span>${excerpt}</td>
    <td role="cell" class="log-why" data-label=${found.agrees || isOpen(found.causes[0]) ? nothing : t("log.cause")}>
      <div>${found.agrees ? agreement(t, found) : causes(app, found)}</div>
    </td>
  </tr>`;
}

function agreement(t, found) {
  const how = !isExact(found) ? "log.within" : found.unit === "B" ? "log.to_the_byte" : "log.exact";
  return html`<span class="log-agrees"
    ><svg class="tick" aria-hidden="true" width="14" height="14" viewBox="0 0 14 14">
      <path d="M2 7.5 5.5 11 12 3.5" fill="none" stroke="currentColor" stroke-width="2"></path></svg
    >${t(how)}</span
  >`;
}

export function table(app, comparisons) {
  const { t } = app;
  if (comparisons.length === 0) return nothing;
  const column = (key, hidden) =>
    html`<th role="columnheader" scope="col"><span class=${hidden ? "visually-hidden" : nothing}>${t(key)}</span></th>`;
  return html`<table role="table" class="log-table" aria-label=${t("log.table")}>
    <thead role="rowgroup">
      <tr role="row">
        ${["log.number", "log.theirs", "log.ours", "log.difference"].map((key) => column(key, false))}
        ${["log.where", "log.cause"].map((key) => column(key, true))}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${comparisons.map((found, index) => row(app, found, comparisons[index - 1]))}
    </tbody>
  </table>`;
}

/** Numbers that were read and that kvcore has none beside. */
export function alsoRead(app, { numbers, comparisons }) {
  const { t } = app;
  const compared = new Set(comparisons.map(({ quantity, line }) => `${quantity} ${line}`));
  const others = numbers.filter(({ quantity, line }) => !compared.has(`${quantity} ${line}`)).slice(0, MAX_ALSO);
  if (others.length === 0) return nothing;
  return html`<div class="log-also">
    <h3>${t(comparisons.length > 0 ? "log.also" : "log.numbers")}</h3>
    <ul>
      ${others.map(
        ({ quantity, value, unit, printed_unit: printed, decimals, line }) =>
          html`<li>
            ${quantityName(t, quantity)} <b>${withUnit(t, value, printed ?? unit, decimals)}</b>
            <span class="log-line">${lineName(t, line)}</span>
          </li>`,
      )}
    </ul>
  </div>`;
}
