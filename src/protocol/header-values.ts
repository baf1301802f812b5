// How headers carry text that a header cannot express: in Base64, within markers (specification,
// basic/transports/streamable-http).

import { Buffer } from "node:buffer";

const PREFIX = "=?base64?";
const SUFFIX = "?=";

/** Visible ASCII, space and tab. */
const PLAIN = /^[\t\x20-\x7e]*$/;

// A byte order mark is kept, as in a JSON body.
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function encodeHeaderValue(text: string): string {
  // Receivers trim values, so a string with surrounding spaces must be encoded.
  if (PLAIN.test(text) && text.trim() === text && !isEncoded(text)) return text;
  return `${PREFIX}${Buffer.from(text).toString("base64")}${SUFFIX}`;
}

/** Undefined if the value is malformed. */
export function decodeHeaderValue(value: string): string | undefined {
  if (!PLAIN.test(value)) return undefined;
  if (!value.startsWith(PREFIX) || !isEncoded(value)) return value;
  // In "=?base64?=", the prefix and the suffix overlap.
  if (value.length < PREFIX.length + SUFFIX.length) return undefined;
  const inner = value.slice(PREFIX.length, -SUFFIX.length);
  const bytes = Buffer.from(inner, "base64");
  // Buffer ignores invalid characters, missing padding and leftover bits; accept only the canonical form.
  if (bytes.toString("base64") !== inner) return undefined;
  try {
    return UTF8.decode(bytes);
  } catch {
    return undefined;
  }
}

function isEncoded(value: string): boolean {
  return value.startsWith(PREFIX) && value.endsWith(SUFFIX);
}
