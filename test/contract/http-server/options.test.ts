// Options of the HTTP server that are refused, with the message.

import { expect, it } from "vitest";
import { fetchHandler } from "../../../src/http.ts";
import { createServer } from "../../../src/server/index.ts";

const server = createServer({ name: "s", version: "1" });
it.each([
  [{ limits: { request: 1 } }, /no option `limits\.request`; did you mean `requests`/],
  [{ limits: { requests: -1 } }, /limits.requests must be a number above 0/],
  [{ limits: { requests: "10" } }, /limits.requests must be/],
  [{ limits: { messageBytes: Number.NaN } }, /limits.messageBytes must be/],
  [{ auth: {} }, /auth must be an authenticator/],
  [{ auth: true }, /auth must be/],
  [{ auth: () => true }, /auth must be/],
  [{ auth: null }, /auth must be/],
  [{ path: "mcp" }, /must begin with a slash/],
])("options: %j are refused", (options, message) => {
  expect(() => fetchHandler(server, options as object)).toThrow(message);
});

it("options may be undefined", () => {
  expect(() => fetchHandler(server, { limits: { requests: undefined } })).not.toThrow();
});
