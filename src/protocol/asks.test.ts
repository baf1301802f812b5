// What a caller may be asked, against what it declared: each question with the capabilities that allow it and
// with those that do not.

import { describe, expect, it } from "vitest";
import { checkAsk } from "./asks.ts";
import { McpError } from "./errors.ts";

const elicit = { method: "elicitation/create", params: { message: "?" } };
const visit = { method: "elicitation/create", params: { mode: "url", message: "?", url: "https://example.com" } };
const sample = { method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } };
const roots = { method: "roots/list", params: {} };
const withTools = { method: "sampling/createMessage", params: { messages: [], maxTokens: 1, tools: [] } };

describe("what a caller may be asked", () => {
  it.each([
    [elicit, { elicitation: {} }],
    [elicit, { elicitation: { form: {} } }],
    [elicit, { elicitation: { form: {}, url: {} } }],
    [visit, { elicitation: { url: {} } }],
    [sample, { sampling: {} }],
    [withTools, { sampling: { tools: {} } }],
    [roots, { roots: { listChanged: true } }],
  ])("%o with %o", (request, capabilities) => {
    expect(() => checkAsk(request, capabilities)).not.toThrow();
  });

  it.each([
    [elicit, {}, { elicitation: {} }, "elicitation"],
    [elicit, { elicitation: { url: {} } }, { elicitation: { form: {} } }, "elicitation.form"],
    [visit, {}, { elicitation: { url: {} } }, "elicitation.url"],
    [visit, { elicitation: {} }, { elicitation: { url: {} } }, "elicitation.url"],
    [sample, { elicitation: {} }, { sampling: {} }, "sampling"],
    [withTools, { sampling: {} }, { sampling: { tools: {} } }, "sampling.tools"],
    [roots, { sampling: {} }, { roots: {} }, "roots"],
  ])("%o not with %o", (request, capabilities, requiredCapabilities, name) => {
    const error = thrown(() => checkAsk(request, capabilities));
    expect(error.code).toBe(-32021);
    expect(error.data).toEqual({ kind: "missing_capability", requiredCapabilities });
    expect(error.message).toContain(`the capability ${name} that ${request.method} needs`);
  });

  it("is nothing else", () => {
    const error = thrown(() => checkAsk({ method: "tools/list", params: {} }, { roots: {} }));
    expect(error.kind).toBe("method_not_found");
  });
});

function thrown(work: () => void): McpError {
  try {
    work();
  } catch (error) {
    if (error instanceof McpError) return error;
  }
  throw new Error("It was not refused");
}
