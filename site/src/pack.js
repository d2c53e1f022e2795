/** A pasted config.json as a short piece of a link: deflate, then base64url. */

export const MAX_PACKED = 4096;
const MAX_UNPACKED = 1 << 20;

async function pump(text, transform) {
  const stream = new Blob([text]).stream().pipeThrough(transform);
  const reader = stream.getReader();
  const chunks = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MAX_UNPACKED) {
      await reader.cancel();
      throw new RangeError("too large");
    }
    chunks.push(value);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

export async function pack(text) {
  const bytes = await pump(text, new CompressionStream("deflate-raw"));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** @throws when the text is not what `pack` makes, or unpacks to more than 1 MiB */
export async function unpack(packed) {
  const binary = atob(packed.replace(/-/g, "+").replace(/_/g, "/"));
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  return new TextDecoder("utf-8", { fatal: true }).decode(await pump(bytes, new DecompressionStream("deflate-raw")));
}
