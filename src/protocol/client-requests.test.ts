// Requests to the client with the capabilities that allow them and those that do not, checks of their results, and the
// pending requests of a task.

import { describe, expect, it, vi } from "vitest";
import type { Request } from "../core/handler.ts";
import { checkClientRequest } from "./client-requests.ts";
import { checkClientResult, PendingInputs } from "./client-results.ts";
import { McpError } from "./errors.ts";

const elicit = { method: "elicitation/create", params: { message: "?" } };
const elicitUrl = { method: "elicitation/create", params: { mode: "url", message: "?", url: "https://example.com" } };
const sample = { method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } };
const roots = { method: "roots/list", params: {} };
const withTools = { method: "sampling/createMessage", params: { messages: [], maxTokens: 1, tools: [] } };

describe("checkClientRequest", () => {
  it.each([
    [elicit, { elicitation: {} }],
    [elicit, { elicitation: { form: {} } }],
    [elicit, { elicitation: { form: {}, url: {} } }],
    [elicitUrl, { elicitation: { url: {} } }],
    [sample, { sampling: {} }],
    [withTools, { sampling: { tools: {} } }],
    [roots, { roots: { listChanged: true } }],
  ])("allows %o with %o", (request, capabilities) => {
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
  ])("refuses %o with %o", (request, capabilities, requiredCapabilities, name) => {
    const error = thrown(() => checkClientRequest(request, capabilities));
    expect(error.code).toBe(-32021);
    expect(error.data).toEqual({ kind: "missing_capability", requiredCapabilities });
    expect(error.message).toContain(`the capability ${name} that ${request.method} needs`);
  });

  it("refuses other methods", () => {
    const error = thrown(() => checkClientRequest({ method: "tools/list", params: {} }, { roots: {} }));
    expect(error.kind).toBe("method_not_found");
  });
});

describe("checkClientResult", () => {
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
  ])("accepts for %s: %o", (method, answer) => {
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
  ])("refuses for %s: %o", (method, answer, field) => {
    const error = thrown(() => checkClientResult(method, answer));
    expect(error.data).toEqual({ kind: "invalid_params", method });
    expect(error.message).toContain(`The caller's answer to ${method} `);
    expect(error.message).toContain(field);
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

const ROOTS_REQUEST: Request = { method: "roots/list", params: {} };
const FORM_REQUEST: Request = { method: "elicitation/create", params: { message: "?" } };

describe("PendingInputs", () => {
  it("has keys that are never reused, and drops answered requests", async () => {
    const onChange = vi.fn();
    const inputs = new PendingInputs(onChange);
    expect(inputs.requests).toBeUndefined();
    const first = inputs.ask(ROOTS_REQUEST);
    const named = inputs.ask(FORM_REQUEST, { key: "name" });
    expect(inputs.requests).toEqual({ 1: ROOTS_REQUEST, name: FORM_REQUEST });
    inputs.answer({ 1: { roots: [] }, other: {} });
    expect(await first).toEqual({ roots: [] });
    expect(inputs.requests).toEqual({ name: FORM_REQUEST });
    inputs.answer({ name: { action: "decline" } });
    expect(await named).toEqual({ action: "decline" });
    expect(onChange).toHaveBeenCalledTimes(4);
    void inputs.ask(FORM_REQUEST, { key: "name" }).catch(() => undefined);
    void inputs.ask(ROOTS_REQUEST).catch(() => undefined);
    expect(Object.keys(inputs.requests ?? {})).toEqual(["4", "name4"]);
    inputs.drop(new Error("over"));
  });

  it.each([5, null, "x", [], { action: "perhaps" }])(
    "refuses a result such as %j, and all others with it",
    (answer) => {
      const inputs = new PendingInputs(() => undefined);
      void inputs.ask(ROOTS_REQUEST).catch(() => undefined);
      void inputs.ask(FORM_REQUEST, { key: "name" }).catch(() => undefined);
      expect(() => inputs.answer({ 1: { roots: [] }, name: answer })).toThrow();
      expect(inputs.size).toBe(2);
      inputs.drop(new Error("over"));
    },
  );

  it("rejects a request when its signal is aborted, before or after it starts, or when all are dropped", async () => {
    const onChange = vi.fn();
    const inputs = new PendingInputs(onChange);
    const stop = new AbortController();
    const aborted = inputs.ask(ROOTS_REQUEST, { signal: stop.signal });
    const dropped = inputs.ask(ROOTS_REQUEST);
    stop.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    expect(onChange).toHaveBeenCalledTimes(3);
    inputs.drop(new Error("over"));
    await expect(dropped).rejects.toThrow("over");
    await expect(inputs.ask(ROOTS_REQUEST, { signal: stop.signal })).rejects.toThrow("enough");
    const endless: Record<string, unknown> = {};
    endless["itself"] = endless;
    await expect(inputs.ask({ method: "roots/list", params: endless })).rejects.toThrow(TypeError);
    expect(inputs.size).toBe(0);
  });
});
