// The heads of HTTP that people see have no secrets.

import { expect, it } from "vitest";
import { shownHead } from "./http-head.ts";

it("hides the values of headers that carry secrets, and shortens ids of sessions", () => {
  const head = shownHead({
    line: "POST /mcp",
    headers: {
      authorization: "Bearer abc.def",
      "proxy-authorization": "abcdef",
      cookie: "id=1",
      "x-api-key": "k",
      "x-amz-security-token": "t",
      "mcp-session-id": "0123456789abcdef0123",
      "Mcp-Name": "echo",
      "www-authenticate": 'Bearer realm="x"',
    },
  });
  expect(JSON.parse(JSON.stringify(head))).toEqual({
    line: "POST /mcp",
    headers: {
      authorization: "Bearer [redacted]",
      "proxy-authorization": "[redacted]",
      cookie: "[redacted]",
      "x-api-key": "[redacted]",
      "x-amz-security-token": "[redacted]",
      "mcp-session-id": "01234567...",
      "mcp-name": "echo",
      "www-authenticate": 'Bearer realm="x"',
    },
  });
  expect(shownHead({ line: 200, headers: { "mcp-session-id": "short", "set-cookie": "a=b" } }).headers).toEqual({
    "mcp-session-id": "[redacted]",
    "set-cookie": "[redacted]",
  });
});

it("hides what is not known to be public, if that is said", () => {
  const head = shownHead({
    line: "POST /",
    headers: { accept: "*/*", "x-own": "value" },
    isShown: (name) => name === "accept",
  });
  expect(head.headers).toEqual({ accept: "*/*", "x-own": "[redacted]" });
});

it("has the reason of the status, if it is known", () => {
  expect([404, 299].map((line) => shownHead({ line, headers: {} }).line)).toEqual(["404 Not Found", "299"]);
});
