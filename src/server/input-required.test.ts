// `inputRequired`: the sealed state that the client keeps, what it is bound to, and when it is refused.

import { afterEach, expect, it, vi } from "vitest";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import type { Params, Result } from "../core/handler.ts";
import { Seal } from "../core/seal.ts";
import { META } from "../protocol/model/base.ts";
import { createServer, inputRequired } from "./index.ts";
import type { ServerOptions } from "./index.ts";

const info = { name: "test", version: "1" };
const request = {
  method: "elicitation/create",
  params: { message: "Your name?", requestedSchema: { type: "object", properties: { name: { type: "string" } } } },
} as const;
const answer = { action: "accept", content: { name: "Ann" } };
const caller = { capabilities: { elicitation: {} } };

const make = (more: Partial<ServerOptions> = {}) =>
  createServer({ ...info, ...more })
    .tool("greet", {}, (args, { answers, state }) => {
      const name = answers["name"];
      if (name === undefined) return inputRequired({ name: request }, { round: 1, args });
      return { name, state };
    })
    .tool("bare", {}, (_args, { answers }) => (answers["name"] ? "done" : inputRequired({ name: request })))
    .tool("twice", {}, (_args, { state }) => {
      const round = (state as { round: number } | undefined)?.round ?? 0;
      return round === 2 ? "done" : inputRequired({ name: request }, { round: round + 1 });
    })
    .prompt("p", {}, (_args, { answers, state }) =>
      answers["name"] === undefined ? inputRequired({ name: request }, "kept") : `Hello, ${String(state)}`,
    )
    .resource("r:1", {}, (_uri, { answers, state }) =>
      answers["name"] === undefined ? inputRequired({ name: request }, 7) : { state },
    );

const retry = (first: Result, params: Params, more: Params = {}): Params => ({
  ...params,
  requestState: first["requestState"],
  inputResponses: { name: answer },
  ...more,
});

afterEach(() => {
  vi.restoreAllMocks();
});

it("inputRequired returns the requests, and gets state and answers in the retry", async () => {
  const at = fakeClient(make(), { caller });
  const params = { name: "greet", arguments: { a: 1, b: 2 } };
  const first = await at.call("tools/call", params);
  expect(first).toEqual({
    resultType: "input_required",
    inputRequests: { name: request },
    requestState: expect.stringMatching(/^[\w-]+$/),
    _meta: { [META.serverInfo]: info },
  });
  // The order of keys, and `_meta`, may differ between a call and its retry.
  const again = retry(first, { _meta: { progressToken: 1 }, arguments: { b: 2, a: 1 }, name: "greet" });
  expect((await at.call("tools/call", again))["structuredContent"]).toEqual({
    name: answer,
    state: { round: 1, args: { a: 1, b: 2 } },
  });
});

it("inputRequired can be returned several times, each time with its own state", async () => {
  const at = fakeClient(make(), { caller });
  const first = await at.call("tools/call", { name: "twice" });
  const second = await at.call("tools/call", retry(first, { name: "twice" }));
  expect(second["resultType"]).toBe("input_required");
  expect(second["requestState"]).not.toBe(first["requestState"]);
  expect(await at.call("tools/call", retry(second, { name: "twice" }))).toMatchObject({
    content: [{ text: "done" }],
  });
});

it("inputRequired works for prompts and resources too", async () => {
  const at = fakeClient(make(), { caller });
  for (const [method, params, expected] of [
    ["prompts/get", { name: "p" }, { messages: [{ content: { text: "Hello, kept" } }] }],
    ["resources/read", { uri: "r:1" }, { contents: [{ text: '{"state":7}' }] }],
    ["tools/call", { name: "bare" }, { content: [{ text: "done" }] }],
  ] as const) {
    const first = await at.call(method, params);
    expect(first["resultType"]).toBe("input_required");
    expect(first).not.toHaveProperty("ttlMs");
    expect(await at.call(method, retry(first, params))).toMatchObject(expected);
  }
});

it("inputRequired accepts answers without a state as a first call", async () => {
  const at = fakeClient(make(), { caller });
  const result = await at.call("tools/call", { name: "greet", inputResponses: { name: answer, extra: {} } });
  expect(result["structuredContent"]).toEqual({ name: answer, state: undefined });
});

it("inputRequired refuses requests that the client has not declared", async () => {
  const error = await fakeClient(make()).callError("tools/call", { name: "greet" });
  expect(error.data).toEqual({ kind: "missing_capability", requiredCapabilities: { elicitation: {} } });
});

const params = { name: "greet", arguments: { a: 1 } };
const start = async (more: Partial<ServerOptions> = {}, principal?: string) => {
  const who = principal === undefined ? caller : { ...caller, principal };
  const server = make(more);
  return {
    server,
    at: fakeClient(server, { caller: who }),
    first: await fakeClient(server, { caller: who }).call("tools/call", params),
  };
};

it("a returned state is refused if it was altered or invented", async () => {
  const { at, first } = await start();
  const token = first["requestState"] as string;
  const others = ["", "x", token + "-TAMPERED", token.slice(1), token.toUpperCase(), 1, null, {}];
  for (const requestState of others) {
    const error = await at.callError("tools/call", retry(first, params, { requestState }));
    expect(error.kind).toBe("invalid_params");
    expect(error.message).toContain("requestState");
  }
});

it("a returned state is refused by a tool that never returned one", async () => {
  const server = createServer(info).tool("t", {}, () => "x");
  const error = await fakeClient(server).callError("tools/call", { name: "t", requestState: "x" });
  expect(error.kind).toBe("invalid_params");
});

it("a returned state is refused with other arguments, another name or another method", async () => {
  const { at, first } = await start();
  for (const [method, other] of [
    ["tools/call", { name: "greet", arguments: { a: 2 } }],
    ["tools/call", { name: "greet" }],
    ["tools/call", { name: "bare", arguments: { a: 1 } }],
    ["prompts/get", { name: "p" }],
    ["resources/read", { uri: "r:1" }],
  ] as const) {
    const error = await at.callError(method, retry(first, other));
    expect(error.kind).toBe("invalid_params");
    expect(error.message).toContain("belongs to another call");
  }
});

it("a returned state is refused from another principal", async () => {
  const { server, at, first } = await start({}, "ann");
  expect(await at.call("tools/call", retry(first, params))).toMatchObject({ isError: false });
  for (const who of [{ ...caller, principal: "bob" }, caller]) {
    const error = await fakeClient(server, { caller: who }).callError("tools/call", retry(first, params));
    expect(error.message).toContain("belongs to another call");
  }
});

it("a returned state is refused after ten minutes", async () => {
  const { at, first } = await start();
  const now = Date.now();
  const clock = vi.spyOn(Date, "now");
  clock.mockReturnValue(now + 590_000);
  expect(await at.call("tools/call", retry(first, params))).toMatchObject({ isError: false });
  clock.mockReturnValue(now + 601_000);
  expect((await at.callError("tools/call", retry(first, params))).message).toContain("expired");
});

it("a returned state is accepted by another server only with the same key", async () => {
  const { first } = await start({ sealKey: "shared" });
  const same = fakeClient(make({ sealKey: "shared" }), { caller });
  expect(await same.call("tools/call", retry(first, params))).toMatchObject({ isError: false });
  const other = fakeClient(make(), { caller });
  expect((await other.callError("tools/call", retry(first, params))).kind).toBe("invalid_params");
});

it("a returned state is refused if the same key sealed something else", async () => {
  const { at, first } = await start({ sealKey: "shared" });
  const requestState = new Seal("shared").seal({ state: { round: 1 } }, 60_000);
  const error = await at.callError("tools/call", retry(first, params, { requestState }));
  expect(error.kind).toBe("invalid_params");
});

it.each([[1], ["x"], [null], [[]], [{ name: 1 }], [{ name: null }], [{ name: [] }]])(
  "invalid answers are refused: %o",
  async (inputResponses) => {
    const at = fakeClient(make(), { caller });
    const error = await at.callError("tools/call", { name: "greet", inputResponses });
    expect(error.kind).toBe("invalid_params");
    expect(error.message).toContain("inputResponses");
  },
);

it("invalid answers are ignored by methods without input requests", async () => {
  const result = await fakeClient(make()).call("tools/list", { inputResponses: 1, requestState: 2 });
  expect(result["resultType"]).toBe("complete");
});
