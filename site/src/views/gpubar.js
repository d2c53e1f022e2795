/** One GPU's memory as a bar: weights, reserve, the cache in use and free, the limit, and what does not fit. */

import { html, svg } from "lit-html";
import { bytesText, integer } from "../format.js";
import { OTHER_GPU } from "../gpus.js";

const share = (part, whole) => `${(whole > 0 ? (100 * part) / whole : 0).toFixed(3)}%`;

/**
 * The parts in the order in which memory is given out, and where the engine's limit lies.
 * Some engines (SGLang) keep the reserve outside their limit: it then follows the cache.
 */
export function memoryParts({ rank }) {
  const { memory_bytes: memory, usable_bytes: usable, weight_bytes: weights, reserve_bytes: reserve } = rank;
  const { pool_bytes: pool, used_bytes: used } = rank;
  const inside = pool === 0 || weights + reserve + pool <= usable;
  const cache = [
    ["used", Math.min(used, pool)],
    ["over", Math.max(used - pool, 0)],
    ["free", Math.max(pool - used, 0)],
  ];
  const parts = [["weights", weights], ...(inside ? [["reserve", reserve]] : []), ...cache, ...(inside ? [] : [["reserve", reserve]])];
  const present = parts.filter(([, bytes]) => bytes > 0);
  const total = present.reduce((sum, [, bytes]) => sum + bytes, 0);
  return {
    parts: present,
    limit: pool === 0 ? usable : weights + (inside ? reserve : 0) + pool,
    memory,
    scale: Math.max(memory, total),
  };
}

export function gpuBar(app) {
  const {
    t,
    view: { unit },
    plan,
    asked,
  } = app;
  const text = (bytes) => bytesText(bytes, unit);
  const estimated = { weights: [plan.weights.source, plan.draft?.weight_source].includes("counted"), reserve: asked.reserve_bytes === null };
  const { parts, limit, memory, scale } = memoryParts(plan);
  const name = asked.gpu === OTHER_GPU ? t("gpu.own_name") : (app.gpus.find(asked.gpu)?.name ?? asked.gpu);
  const heading = t(plan.gpus === 1 ? "gpubar.one" : "gpubar.one_of", {
    gpus: integer(plan.gpus),
    name,
    memory: text(memory),
  });
  let start = 0;
  const segments = parts.map(([part, bytes]) => {
    const segment = svg`<rect class="segment ${part}" x=${share(start, scale)} y="0" width=${share(bytes, scale)} height="32"></rect>`;
    start += bytes;
    return segment;
  });
  const spoken = parts.map(([part, bytes]) => `${t(`gpubar.${part}`)} ${text(bytes)}`).join(", ");
  const left = limit / scale < 0.3;
  return html`<figure class="bar gpu-bar ${app.planCurrent ? "" : "old"}">
    <p class="bar-name">${heading}</p>
    <svg
      class="strip memory"
      role="img"
      aria-label=${t("gpubar.label", { parts: spoken, limit: text(limit) })}
      width="100%"
      height="54"
    >
      <rect class="track" x="0" y="0" width=${share(memory, scale)} height="32"></rect>
      ${segments}
      <rect class="memory-edge" x="0" y="0" width=${share(memory, scale)} height="32"></rect>
      <line class="limit" x1=${share(limit, scale)} x2=${share(limit, scale)} y1="0" y2="38"></line>
      <text class="limit-label" x=${share(limit, scale)} y="51" text-anchor=${left ? "start" : "end"}>${t("gpubar.limit", { limit: text(limit) })}</text>
    </svg>
    <figcaption class="visually-hidden">${heading}</figcaption>
    <ul class="legend">
      ${parts.map(
        ([part, bytes]) =>
          html`<li>
            <svg class="swatch" aria-hidden="true" width="14" height="14">
              <rect class="segment ${part}" width="14" height="14"></rect>
            </svg>
            <span class="legend-name">${t(`gpubar.${part}`)}</span>
            ${
              estimated[part]
                ? html`<span class="legend-bytes estimate" title=${t("sure.estimate")}>≈ ${text(bytes)}</span>`
                : html`<span class="legend-bytes">${text(bytes)}</span>`
            }
          </li>`,
      )}
    </ul>
  </figure>`;
}

/** The bar while no verdict is there to draw, at the same height. */
export const emptyGpuBar = () => html`<div class="gpu-bar empty" aria-hidden="true"></div>`;
