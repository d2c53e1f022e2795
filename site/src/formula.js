/** kvcore's formula text, set for reading: once with names, once with numbers. */

import { exactInteger, integer } from "./format.js";

const TOKEN = /\s*([A-Za-z_]\w*|\d+(?:\.\d+)?|\/\/|[-+*/%(),])/gy;
const SIGNS = { "*": "×", "-": "−", "/": "/", "//": "//", "+": "+", "%": "mod" };

/**
 * @param {string} expression e.g. "layers * 2 * num_kv_heads * head_dim * tokens * bits / 8"
 * @returns {Array<{type: 'name'|'number'|'sign'|'call', text: string}>}
 */
export function tokenize(expression) {
  const tokens = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < expression.length) {
    const start = TOKEN.lastIndex;
    const match = TOKEN.exec(expression);
    if (match === null) {
      const rest = expression.slice(start).trim();
      if (rest) tokens.push({ type: "sign", text: rest });
      break;
    }
    const text = match[1];
    const type = /^[A-Za-z_]/.test(text) ? "name" : /^\d/.test(text) ? "number" : "sign";
    tokens.push({ type, text });
  }
  return tokens.map((token, index) =>
    token.type === "name" && tokens[index + 1]?.text === "(" ? { ...token, type: "call" } : token,
  );
}

function number(value) {
  if (typeof value === "number") return Number.isInteger(value) ? exactInteger(value) : String(value);
  return String(value);
}

/** Pieces to show, with the spacing a reader expects. */
function layOut(tokens, textOf) {
  const pieces = [];
  tokens.forEach((token, index) => {
    const { text } = token;
    const tight = text === "(" || tokens[index - 1]?.text === "(" || text === ")" || text === ",";
    const call = tokens[index - 1]?.type === "call";
    const space = index === 0 || (tight && !(text === "(" && !call)) || tokens[index - 1]?.text === "(" ? "" : " ";
    pieces.push({ ...textOf(token), space });
  });
  return pieces;
}

const sign = (token) => ({ kind: "sign", text: SIGNS[token.text] ?? token.text });

export function symbolic(expression) {
  return layOut(tokenize(expression), (token) =>
    token.type === "sign"
      ? sign(token)
      : token.type === "number"
        ? { kind: "number", text: integer(Number(token.text)) }
        : { kind: token.type, text: token.text },
  );
}

export function numeric(expression, values) {
  return layOut(tokenize(expression), (token) => {
    if (token.type === "sign") return sign(token);
    if (token.type === "call") return { kind: "call", text: token.text };
    if (token.type === "number") return { kind: "number", text: number(Number(token.text)) };
    if (!Object.hasOwn(values, token.text)) return { kind: "name", text: token.text };
    return { kind: "number", text: number(values[token.text]), title: token.text };
  });
}
