// Requests to the client with the capabilities that allow them and those that do not, and checks of their results.

import { expect, it } from "vitest";
import { checkClientRequest } from "./client-requests.ts";
import { checkClientResult } from "./client-results.ts";
import { McpError } from "./errors.ts";

const elicit = { method: "elicitation/create", params: { message: "?" } };
const elicitUrl = { method: "elicitation/create", params: { mode: "url", message: "?", url: "https://example.com" } };
const sample = { method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } };
const roots = { method: "roots/list", params: {} };
const withTools = { method: "sampling/createMessage", params: { messages: [], maxTokens: 1, tools: [] } };

it.each([
  [elicit, { elicitation: {} }],
  [elicit, { elicitation: { form: {} } }],
  [elicit, { elicitation: { form: {}, url: {} } }],
  [elicitUrl, { elicitation: { url: {} } }],
  [sample, { sampling: {} }],
  [withTools, { sampling: { tools: {} } }],
  [roots, { roots: { listChanged: true } }],
])("checkClientRequest allows %o with %o", (request, capabilities) => {
  expect(() => checkClientRequest(request, capabilities)).not.toThrow();
});

it.each([
  [elicit, {}, { elicitation: {} }, "elicitation"],
  [elicit, { elicitation: { url: {} } }, { elicitation: { form: {} } }, "elicitation.form"],
  [elicitUrl, {}, { elicitation: { url: {} } }, "elicitation.url"],
  [elicitUrl, { elicitation: {} }, { elicitation: { url: {} } }, "elicitation.url"],
  [sample, { elicitation: {} }, { sampling: {} }, "sampling"],
  [withTools, { sampling: {} }, { sampling: { tools: {} } }, "sampling.tools"],
  [roots, { sampling: {} }, { roots: {} }, "roots"],
])("checkClientRequest refuses %o with %o", (request, capabilities, requiredCapabilities, name) => {
  const error = thrown(() => checkClientRequest(request, capabilities));
  expect(error.code).toBe(-32021);
  expect(error.data).toEqual({ kind: "missing_capability", requiredCapabilities });
  expect(error.message).toContain(`the capability ${name} that ${request.method} needs`);
});

it("checkClientRequest refuses other methods", () => {
  const error = thrown(() => checkClientRequest({ method: "tools/list", params: {} }, { roots: {} }));
  expect(error.kind).toBe("method_not_found");
});

const text = { type: "text", text: "x" };
it.each([
  [roots.method, { roots: [] }],
  [roots.method, { roots: [{ uri: "file:///a", name: "a" }], more: 1 }],
  [elicit.method, { action: "accept", content: { a: 1 } }],
  [elicit.method, { action: "accept" }],
  [elicit.method, { action: "decline", content: null }],
  [elicit.method, { action: "cancel" }],
  [sample.method, { role: "assistant", model: "m", content: text }],
  [sample.method, { role: "assistant", model: "m", content: [text, text], stopReason: "endTurn" }],
  ["something/else", {}],
  ["constructor", {}],
])("checkClientResult accepts for %s: %o", (method, answer) => {
  expect(() => checkClientResult(method, answer)).not.toThrow();
});

it.each([
  [roots.method, {}, "`roots`"],
  [roots.method, { roots: {} }, "`roots`"],
  [roots.method, { roots: [{ uri: "file:///a" }, { name: "a" }] }, "`uri`"],
  [roots.method, { roots: [null] }, "`uri`"],
  [elicit.method, {}, "`action`"],
  [elicit.method, { action: "maybe" }, "`action`"],
  [elicit.method, { action: "accept", content: [] }, "`content`"],
  [elicit.method, { action: "accept", content: "x" }, "`content`"],
  [sample.method, { model: "m", content: text }, "`role`"],
  [sample.method, { role: "assistant", content: text }, "`model`"],
  [sample.method, { role: "assistant", model: "m" }, "`content`"],
  [sample.method, { role: "assistant", model: "m", content: "x" }, "`content`"],
])("checkClientResult refuses for %s: %o", (method, answer, field) => {
  const error = thrown(() => checkClientResult(method, answer));
  expect(error.data).toEqual({ kind: "invalid_params", method });
  expect(error.message).toContain(`The caller's answer to ${method} `);
  expect(error.message).toContain(field);
});

function thrown(work: () => void): McpError {
  try {
    work();
  } catch (error) {
    if (error instanceof McpError) return error;
  }
  throw new Error("It was not refused");
}
