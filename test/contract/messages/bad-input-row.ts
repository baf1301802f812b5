// Holds an answer, as the text that came over a wire, against what a row of the tables of bad inputs expects.

import { expect } from "vitest";

/** The text is cut in messages, so that one of a megabyte does not fill the screen. */
export function expectAnswer(text: string, expected: Expected): void {
  const shown = text.slice(0, 300);
  if (expected.kind === "batch") {
    const answers = JSON.parse(text) as unknown[];
    expect(answers, shown).toHaveLength(expected.answers.length);
    let rest = text.slice(1);
    for (const answer of expected.answers) {
      const end = startOf(rest.slice(1));
      expectAnswer(rest.slice(0, end), answer);
      rest = rest.slice(end + 1);
    }
    return;
  }
  if (expected.kind === "none") throw new Error(`An answer to what wants none: ${shown}`);
  const head = `{"jsonrpc":"2.0","id":${expected.id},"${expected.kind}":`;
  expect(text.startsWith(head), `${shown}\nshould begin with ${head.slice(0, 300)}`).toBe(true);
  if (expected.kind === "error") {
    const { code, data } = JSON.parse(text).error;
    expect(code, shown).toBe(expected.code);
    expect(data, shown).toEqual(expected.data ?? expect.objectContaining({ kind: expect.any(String) }));
  }
  if (expected.shows !== undefined) expect(text.slice(head.length)).toContain(expected.shows);
}

/** Where the next answer of a batch begins, or the batch ends. */
function startOf(rest: string): number {
  const next = rest.indexOf(',{"jsonrpc":"2.0","id":');
  return (next === -1 ? rest.lastIndexOf("]") : next) + 1;
}

// What a row of the tables of bad inputs is, and short words to write one. An answer is told by its id as it stands
// on the wire, byte for byte, and by its code or a piece of its result; what is no message at all, by its whole data.

export type Expected =
  | { readonly kind: "none" }
  | {
      readonly kind: "error";
      readonly id: string;
      readonly code: number;
      readonly shows?: string;
      /** The whole of it; where it is left out, it must be an object that names its kind. */
      readonly data?: unknown;
    }
  | { readonly kind: "result"; readonly id: string; readonly shows: string }
  /** One answer for a batch: an array with an answer for each of these. */
  | { readonly kind: "batch"; readonly answers: readonly Expected[] };

export interface Row {
  /** What the input is; `I-03` and its like number the kinds. */
  readonly name: string;
  /** The bytes without the last newline; of several pieces, each is written by itself. */
  readonly send: readonly (string | Uint8Array)[];
  readonly expected: Expected;
  /** The id is one that MCP does not allow; JSON-RPC does, and we echo it. */
  readonly oddId?: boolean;
}

const PARSE = -32700;
export const INVALID = -32600;
export const METHOD = -32601;
export const PARAMS = -32602;

export const NONE: Expected = { kind: "none" };
export const error = (code: number, id = "null", shows?: string): Expected => ({
  kind: "error",
  id,
  code,
  ...(shows === undefined ? undefined : { shows }),
});
/** The text is no JSON; the engine's own words say why, but for bytes that are no text. */
export const broken = (details?: string): Expected => ({
  kind: "error",
  id: "null",
  code: PARSE,
  ...(details === undefined
    ? { shows: '"data":{"kind":"parse_error","details":"' }
    : { data: { kind: "parse_error", details } }),
});
/** It is JSON, but no message. */
export const invalid = (id: string, details: string): Expected => ({
  kind: "error",
  id,
  code: INVALID,
  data: { kind: "invalid_request", details },
});
/** The two faults whose data is a plain text, as the seeds show it. */
export const missing = (id: string, field: "jsonrpc" | "method"): Expected => ({
  kind: "error",
  id,
  code: INVALID,
  data: `Missing required field: ${field}`,
});
export const result = (id = "1", shows = "{}"): Expected => ({ kind: "result", id, shows });
export const row = (
  name: string,
  send: string | Uint8Array | readonly (string | Uint8Array)[],
  expected: Expected,
): Row => ({
  name,
  send: typeof send === "string" || send instanceof Uint8Array ? [send] : send,
  expected,
});
export const odd = (one: Row): Row => ({ ...one, oddId: true });

export const ping = (id: string): string => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`;
export const request = (method: string, params = "{}", id = "1"): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`;
export const call = (name: string, args: string): string =>
  request("tools/call", `{"name":"${name}","arguments":${args}}`);
export const echo = (text: string, id = "1"): string =>
  request("tools/call", `{"name":"echo","arguments":{"text":${text}}}`, id);
export const notification = (method: string, params: string): string =>
  `{"jsonrpc":"2.0","method":"${method}","params":${params}}`;
export const bytes = (...parts: readonly (string | readonly number[])[]): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from([...part]))));
