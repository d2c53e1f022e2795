/** The stacked bar: what the bytes are, as lengths, with a legend in words. */

import { html, svg, nothing } from "lit-html";
import { bytesText, percent } from "../format.js";
import { componentName, engineName, itemTexts } from "../messages.js";

export const COMPONENTS = ["kv", "window", "indexer", "state", "cross", "draft"];

export const present = (components) => COMPONENTS.filter((name) => (components?.[name] ?? 0) > 0);

const share = (part, whole) => `${(whole > 0 ? (100 * part) / whole : 0).toFixed(3)}%`;

function strip({ components, scale, label }) {
  let start = 0;
  const segments = present(components).map((name) => {
    const segment = svg`<rect class="segment ${name}" x=${share(start, scale)} y="0"
      width=${share(components[name], scale)} height="100%"></rect>`;
    start += components[name];
    return segment;
  });
  return html`<svg class="strip" role="img" aria-label=${label} width="100%" height="32">
    <rect class="track" x="0" y="0" width="100%" height="100%"></rect>
    ${segments}
  </svg>`;
}

function legend({ t, unit, components, total }) {
  return html`<ul class="legend">
    ${present(components).map(
      (name) =>
        html`<li>
          <svg class="swatch" aria-hidden="true" width="14" height="14">
            <rect class="segment ${name}" width="14" height="14"></rect>
          </svg>
          <span class="legend-name">${componentName(t, name)}</span>
          <span class="legend-bytes">${bytesText(components[name], unit)}</span>
          <span class="legend-share">${percent(components[name] / total)}</span>
        </li>`,
    )}
  </ul>`;
}

const spoken = (t, unit, components) =>
  present(components)
    .map((name) => `${componentName(t, name)} ${bytesText(components[name], unit)}`)
    .join(", ");

/** The logical bytes alone, or above what the chosen engine allocates for them. */
export function bar(app) {
  const {
    t,
    view: { unit },
    answer: { estimate },
  } = app;
  const { components, total_bytes: total, allocated } = estimate;
  if (!allocated) {
    return html`<figure class="bar">
      ${strip({ components, scale: total, label: t("bar.label", { parts: spoken(t, unit, components) }) })}
      <figcaption class="visually-hidden">${t("bar.caption")}</figcaption>
      ${legend({ t, unit, components, total })}
    </figure>`;
  }
  const reserved = allocated.bytes_per_rank;
  const scale = Math.max(total, reserved);
  const row = (name, parts, bytes, note) =>
    html`<div class="bar-row">
      <p class="bar-name"><span>${name}</span> <strong>${bytesText(bytes, unit)}</strong>${note}</p>
      ${strip({ components: parts, scale, label: t("bar.label", { parts: spoken(t, unit, parts) }) })}
    </div>`;
  return html`<figure class="bar two">
    ${row(t("bar.logical"), components, total, nothing)}
    ${row(
      t("bar.allocated", { engine: `${engineName(allocated.engine)} ${allocated.engine_version ?? ""}`.trim() }),
      allocated.components,
      reserved,
      html` <span class="bar-note">${difference(t, total, reserved)}</span>`,
    )}
    <figcaption class="visually-hidden">${t("bar.caption_allocated")}</figcaption>
    ${legend({ t, unit, components, total })} ${items(t, allocated.items, unit)}
  </figure>`;
}

function items(t, found, unit) {
  const texts = itemTexts(t, found, unit);
  if (texts.length === 0) return nothing;
  return html`<p class="bar-items">${t("bar.items", { items: texts.join(" · ") })}</p>`;
}

function difference(t, logical, allocated) {
  if (allocated === logical) return t("bar.same");
  if (logical === 0) return "";
  const ratio = percent(Math.abs(allocated - logical) / logical);
  return allocated > logical ? t("bar.more", { ratio }) : t("bar.less", { ratio });
}
