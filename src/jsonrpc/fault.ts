// The two answers that JSON-RPC itself gives to input that is no message: -32700 where the text is not
// JSON, -32600 where it is JSON but no message. They stand apart because codec and framing both give
// them. What a method thinks of its params is not decided here.

import type { ErrorMessage, Id } from "./message.ts";

export function parseError(data: string): ErrorMessage {
  return { jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error", data } };
}

export function invalidRequest(id: Id | null, data: string): ErrorMessage {
  return { jsonrpc: "2.0", id, error: { code: -32600, message: "Invalid Request", data } };
}

export function tooLong(maxBytes: number): ErrorMessage {
  return invalidRequest(null, `Message longer than ${maxBytes} bytes (limits.messageBytes)`);
}
