// The two answers that JSON-RPC itself gives to input that is no message: -32700 where the text is not
// JSON, -32600 where it is JSON but no message. They stand apart because codec and framing both give
// them. `data` names the kind and tells the rest in words; only the two missing fields that the seed
// documents show keep the plain text that they have there. What a method thinks of its params is not
// decided here.

import type { ErrorMessage, Id } from "./message.ts";

interface FaultData {
  readonly kind: "parse_error" | "invalid_request";
  readonly details: string;
}

export const PARSE_ERROR = -32700;

export function parseError(details: string): ErrorMessage {
  const data: FaultData = { kind: "parse_error", details };
  return { jsonrpc: "2.0", id: null, error: { code: PARSE_ERROR, message: "Parse error", data } };
}

export function invalidRequest(id: Id | null, details: string): ErrorMessage {
  return invalid(id, { kind: "invalid_request", details });
}

export function missingField(id: Id | null, field: "jsonrpc" | "method"): ErrorMessage {
  return invalid(id, `Missing required field: ${field}`);
}

export function tooLong(maxBytes: number): ErrorMessage {
  return invalidRequest(null, `Message longer than ${maxBytes} bytes (limits.messageBytes)`);
}

/** The whole fault on one line, for people. */
export function faultText({ error }: ErrorMessage): string {
  const { data } = error;
  return `${error.message}: ${typeof data === "string" ? data : (data as FaultData).details}`;
}

function invalid(id: Id | null, data: FaultData | string): ErrorMessage {
  return { jsonrpc: "2.0", id, error: { code: -32600, message: "Invalid Request", data } };
}
