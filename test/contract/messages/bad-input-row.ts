// A row of the tables of bad inputs: the bytes that are sent and the expected answer, with helpers to write one and to
// check one. The id of an answer is compared byte for byte.

import { expect } from "vitest";

export type Expected =
  | { readonly kind: "none" }
  | {
      readonly kind: "error";
      readonly id: string;
      readonly code: number;
      readonly contains?: string;
      /** The complete `data`; by default it must be an object with `kind`. */
      readonly data?: unknown;
    }
  | { readonly kind: "result"; readonly id: string; readonly contains: string }
  /** A batch with these answers. */
  | { readonly kind: "batch"; readonly answers: readonly Expected[] };

export interface Row {
  /** Describes the input; `I-03` is the number of its kind. */
  readonly name: string;
  /** The bytes without the last newline; each piece is written separately. */
  readonly send: readonly (string | Uint8Array)[];
  readonly expected: Expected;
  /** Whether the id is valid in JSON-RPC but not in MCP; we echo it. */
  readonly oddId?: boolean;
}

const PARSE = -32700;
export const INVALID = -32600;
export const METHOD = -32601;
export const PARAMS = -32602;

export const NONE: Expected = { kind: "none" };
export const error = (code: number, id = "null", contains?: string): Expected => ({
  kind: "error",
  id,
  code,
  ...(contains === undefined ? undefined : { contains }),
});
/** Not JSON. The details come from the JavaScript engine, unless they are given. */
export const broken = (details?: string): Expected => ({
  kind: "error",
  id: "null",
  code: PARSE,
  ...(details === undefined
    ? { contains: '"data":{"kind":"parse_error","details":"' }
    : { data: { kind: "parse_error", details } }),
});
/** JSON, but not a message. */
export const invalid = (id: string, details: string): Expected => ({
  kind: "error",
  id,
  code: INVALID,
  data: { kind: "invalid_request", details },
});
/** The two errors whose data is a string, as in the seeds. */
export const missing = (id: string, field: "jsonrpc" | "method"): Expected => ({
  kind: "error",
  id,
  code: INVALID,
  data: `Missing required field: ${field}`,
});
export const result = (id = "1", contains = "{}"): Expected => ({ kind: "result", id, contains });
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

/** Compares an answer with the expected one. Assertion messages show only the beginning of a long answer. */
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
  if (expected.kind === "none") throw new Error(`Expected no answer: ${shown}`);
  const head = `{"jsonrpc":"2.0","id":${expected.id},"${expected.kind}":`;
  expect(text.startsWith(head), `${shown}\nshould begin with ${head.slice(0, 300)}`).toBe(true);
  if (expected.kind === "error") {
    const { code, data } = JSON.parse(text).error;
    expect(code, shown).toBe(expected.code);
    expect(data, shown).toEqual(expected.data ?? expect.objectContaining({ kind: expect.any(String) }));
  }
  if (expected.contains !== undefined) expect(text.slice(head.length)).toContain(expected.contains);
}

/** The index where the next answer of a batch begins, or where the batch ends. */
function startOf(rest: string): number {
  const next = rest.indexOf(',{"jsonrpc":"2.0","id":');
  return (next === -1 ? rest.lastIndexOf("]") : next) + 1;
}
