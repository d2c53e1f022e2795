// The engine's parts travel as base64 of gzip, so that they survive inside an HTML file.

/** @param {string} base64 @returns {Uint8Array} */
export function fromBase64(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** @param {Uint8Array} bytes @returns {string} */
export function toBase64(bytes) {
  if (bytes.toBase64) return bytes.toBase64();
  const slice = 0x8000; // as many arguments as every browser lets one call have
  let text = '';
  for (let start = 0; start < bytes.length; start += slice) {
    text += String.fromCharCode(...bytes.subarray(start, start + slice));
  }
  return btoa(text);
}

/**
 * Rejects when the text is not base64 or the gzip checksum does not match.
 * @param {string} base64 @returns {Promise<Uint8Array>}
 */
export async function unpack(base64) {
  const unzipped = new Blob([fromBase64(base64)]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(unzipped).arrayBuffer());
}
