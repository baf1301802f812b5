// The record of a call: what readers get, also of a running gateway, and that they cannot disturb a call.

import { expect, it, vi } from "vitest";
import { callRequest, fakeContext, textResult } from "../../test/support/handlers/fake-client.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Middleware } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { createServer, type Server } from "../server/server.ts";
import { chain } from "./chain.ts";
import { filter, inject, rename } from "./middleware/index.ts";
import { observe, type CallReader, type ObservedCall } from "./observe.ts";
import type { Step } from "./steps.ts";

const server = (tool: string): Server => createServer({ name: tool, version: "1" }).tool(tool, {}, () => tool);

it("observes a running gateway until it is stopped, and several readers at once", async () => {
  await using gateway = chain().to({
    notes: server("search"),
    team: chain().to({ x: server("deep"), y: server("z") }),
  });
  const { context } = fakeContext({ name: "ada" });
  const calls: ObservedCall[] = [];
  const others: string[] = [];
  await gateway(callRequest("search"), context);
  const stop = gateway.observe({ end: (call) => void calls.push(call) });
  const stopOther = gateway.observe<string>({
    begin: (call) => void (call.state = call.request.method),
    end: ({ state }) => void others.push(state),
  });
  await gateway(callRequest("search"), context);
  stopOther();
  await gateway(callRequest("deep"), context);
  await expect(gateway(callRequest("nope"), context)).rejects.toThrow();
  stop();
  stop();
  await gateway(callRequest("search"), context);
  expect(others).toEqual(["tools/call"]);
  expect(calls.map(({ name, upstream, outcome, errorKind }) => [name, upstream, outcome, errorKind])).toEqual([
    ["search", "notes", "complete", undefined],
    ["deep", "team.x", "complete", undefined],
    ["nope", undefined, "failed", "tool_not_found"],
  ]);
  const [first] = calls;
  expect(first?.caller.info?.name).toBe("ada");
  expect(first?.sent?.params["name"]).toBe("search");
  expect(first?.bytes).toBe(JSON.stringify(first?.result).length);
  expect(first?.requestBytes).toBe(JSON.stringify(first?.request.params).length);
  expect(first?.item).toMatchObject({ kind: "tools", name: "search", ownName: "search", upstream: "notes" });
  expect(calls.map(({ item }) => item?.isListed)).toEqual([true, true, undefined]);
  const ms = first?.ms;
  expect(first?.ms).toBe(ms);
});

it("knows of a running gateway what the caller sees: the item, and the part of the gateway", async () => {
  await using gateway = chain(rename({ tools: { search: "find" } })).to(
    { notes: server("search") },
    { select: () => ({ key: "part", handlerOf: (_name, handler) => handler }) },
  );
  const seen: unknown[] = [];
  gateway.observe({ end: ({ item, caller: { part } }) => void seen.push([item?.name, item?.ownName, part]) });
  const { context } = fakeContext();
  await gateway(callRequest("find"), context);
  await gateway({ method: "tools/list", params: {} }, context);
  expect(seen).toEqual([
    ["find", "search", "part"],
    [undefined, undefined, "part"],
  ]);
});

it("says how a call ended", async () => {
  const seen: unknown[] = [];
  const caller = fakeContext();
  const answers: Readonly<Record<string, Handler>> = {
    done: async () => textResult("done"),
    wrong: async () => ({ ...textResult("no"), isError: true }),
    asks: async () => ({ resultType: "input_required" }),
    refused: () => Promise.reject(McpError.of("rate_limited", "later")),
    vendor: () => Promise.reject(new McpError(-5, "x")),
    lost: () => Promise.reject(new ConnectionError("closed", "gone")),
    strange: () => Promise.reject(new Proxy(new Error("strange"), { get: () => expect.fail("read") })),
    left: async () => {
      caller.abort();
      throw new Error("left");
    },
  };
  const reader: CallReader = {
    begin: (call) => void seen.push(call.outcome),
    end: ({ outcome, errorKind, errorCode }) => void seen.push([outcome, errorKind, errorCode]),
  };
  const middleware = observe(reader);
  const upstream: Handler = (request, context) => answers[String(request.params["name"])]!(request, context);
  for (const name of Object.keys(answers)) {
    await middleware(callRequest(name), caller.context, upstream).catch(() => undefined);
  }
  expect(seen.filter((one) => one !== "running")).toEqual([
    ["complete", undefined, undefined],
    ["tool_error", undefined, undefined],
    ["input_required", undefined, undefined],
    ["failed", "rate_limited", McpError.of("rate_limited", "").code],
    ["failed", -5, -5],
    ["failed", "closed", undefined],
    ["failed", undefined, undefined],
    ["cancelled", undefined, undefined],
  ]);
  expect(seen).toHaveLength(16);
});

it("records what each middleware and upstream got and returned, as references", async () => {
  const request = callRequest("search", { text: "a" });
  const changed = callRequest("search", { text: "b" });
  const shown = textResult("shown");
  const answer = textResult("answer");
  const twice: Middleware = async (_request, context, next) => {
    await next(changed, context);
    await next(changed, context);
    return shown;
  };
  const upstream: Handler = async () => answer;
  const inner: ObservedCall[] = [];
  await using gateway = chain(twice, observe({ steps: true, end: (call) => void inner.push(call) })).to(upstream);
  const calls: ObservedCall[] = [];
  gateway.observe({ steps: true, end: (call) => void calls.push(call) });
  expect(await gateway(request, fakeContext().context)).toBe(shown);
  const shape = ({ kind, name, request: got, result, steps }: Step): unknown => [
    ...[kind, name, got === request ? "request" : got === changed ? "changed" : got],
    ...[result === shown ? "shown" : result === answer ? "answer" : result, steps.map(shape)],
  ];
  const end = ["upstream", "upstream", "changed", "answer", []];
  const observed = ["middleware", "observe", "changed", "answer", [end]];
  expect(calls.map(({ steps }) => steps.map(shape))).toEqual([
    [["middleware", "twice", "request", "shown", [observed, observed]]],
  ]);
  // Steps are recorded once for all readers.
  expect(inner.map(({ steps }) => steps.map(shape))).toEqual([[end], [end]]);
  await gateway({ method: "tools/list", params: {} }, fakeContext().context);
  expect(calls[1]?.steps[0]?.endedAt).toBeGreaterThanOrEqual(calls[1]?.steps[0]?.startedAt ?? Infinity);
});

it("records the steps within a gateway that is an upstream, and steps that fail", async () => {
  const pass: Middleware = (request, context, next) => next(request, context);
  const refuse: Middleware = (request, context, next) =>
    request.method === "tools/call" ? Promise.reject(McpError.of("access_denied", "no")) : next(request, context);
  const team = chain(pass).to({ x: server("deep"), y: chain(refuse).to(server("z")) });
  await using gateway = chain().to({ notes: server("search"), team });
  const calls: ObservedCall[] = [];
  gateway.observe({ steps: true, end: (call) => void calls.push(call) });
  const names = ({ name, error, steps }: Step): unknown => [name, error === undefined, ...steps.map(names)];
  await gateway(callRequest("deep"), fakeContext().context);
  await expect(gateway(callRequest("z"), fakeContext().context)).rejects.toThrow("no");
  expect(calls.map(({ steps }) => steps.map(names))).toEqual([
    [["team", true, ["pass", true, ["x", true]]]],
    [["team", false, ["pass", false, ["y", false, ["refuse", false]]]]],
  ]);
});

it("records what transforms and the router got and returned", async () => {
  const renamed = rename({ tools: { search: "find" } });
  const hidden = filter({ tools: { exclude: ["secret*"] } });
  const filled = inject({ tools: { find: { arguments: { key: "value" } } } });
  await using gateway = chain(filled, hidden, renamed).to({ notes: server("search"), mail: server("search") });
  const calls: ObservedCall[] = [];
  gateway.observe({ steps: true, end: (call) => void calls.push(call) });
  const { context } = fakeContext();
  const { tools } = (await gateway({ method: "tools/list", params: {} }, context)) as unknown as {
    readonly tools: readonly { readonly name: string }[];
  };
  const [first] = tools.map(({ name }) => name).filter((name) => name.includes("notes"));
  await gateway(callRequest(first ?? ""), context);
  const shape = ({ kind, name, request, steps }: Step): unknown => [
    kind,
    name,
    request.params["name"],
    ...steps.map(shape),
  ];
  const [list, call] = calls;
  expect(list?.steps.map(({ kind, name }) => [kind, name])).toEqual([["transform", "inject + filter + rename"]]);
  expect(list?.steps[0]?.result).toBe(list?.result);
  const inRouter = ["router", "router", first, ["upstream", "notes", "search"]];
  expect(call?.steps.map(shape)).toEqual([
    ["middleware", "inject", first, ["transform", "filter", first, ["transform", "rename", first, inRouter]]],
  ]);
  await expect(gateway(callRequest("secret"), context)).rejects.toThrow("secret");
  const refusing = ({ name, error, steps }: Step): unknown => [name, error !== undefined, ...steps.map(refusing)];
  expect(calls[2]?.steps.map(refusing)).toEqual([["inject", true, ["filter", true]]]);
});

it("passes on what passes between a gateway and its upstreams to every reader, with the name of the upstream", async () => {
  const upstream: Handler = async (_request, { observer }) => {
    observer?.wire?.passed({ side: "upstream", sender: "server", message: {} });
    return textResult("done");
  };
  const seen: unknown[] = [];
  const note =
    (who: string): CallReader["passed"] =>
    (_call, { upstream: name, side }) =>
      void seen.push([who, side, name]);
  const inner = chain(observe({ passed: note("inside") })).to({ x: upstream, y: server("y") });
  await using gateway = chain(observe({ end: () => undefined })).to({ inner, z: server("z") });
  const reported: unknown[] = [];
  const wire = { reportTo: (observer: object, reader: object) => void reported.push([observer, reader]) };
  const { context } = fakeContext();
  await gateway({ method: "ping", params: {} }, { ...context, wire }).catch(() => undefined);
  expect(reported).toHaveLength(1);
  seen.length = 0;
  gateway.observe({ passed: note("outside") });
  await gateway({ method: "acme/do", params: {} }, { ...context, wire });
  expect(seen).toEqual([
    ["inside", "upstream", "x"],
    ["outside", "upstream", "inner.x"],
  ]);
});

it("reports notifications, questions and how long the answers took, and when a call is cancelled", async () => {
  const events: unknown[] = [];
  const caller = fakeContext();
  const reader: CallReader = {
    notified: (_call, { method }) => void events.push(method),
    asked: (_call, { request, ms }) => void events.push([request.method, ms]),
    answered: (_call, { result, error, ms }) => void events.push([result ?? error, typeof ms]),
    cancelled: ({ status }) => void events.push(["cancelled", status]),
    end: ({ messages }) => void events.push([messages?.notifications, messages?.questions, typeof messages?.waitedMs]),
  };
  const answer = { action: "accept" };
  const refusal = new Error("no");
  let asked = 0;
  const context = {
    ...caller.context,
    ask: async () => ((asked += 1) === 1 ? answer : Promise.reject(refusal)),
  };
  const upstream: Handler = async (_request, given) => {
    given.notify({ method: "notifications/progress", params: { progress: 1 } });
    const question = { method: "elicitation/create", params: {} };
    await given.ask(question);
    await given.ask(question).catch(() => undefined);
    caller.abort();
    return textResult("late");
  };
  await observe(reader)(callRequest("x"), context, upstream);
  expect(events).toEqual([
    "notifications/progress",
    ["elicitation/create", undefined],
    [answer, "number"],
    ["elicitation/create", undefined],
    [refusal, "number"],
    ["cancelled", "running"],
    [1, 2, "number"],
  ]);
});

it("is not disturbed by a reader, and refuses one that it does not understand", async () => {
  const printed = vi.spyOn(console, "error").mockReturnValue();
  const fail = (): never => {
    throw new Error("broken reader");
  };
  const slow = (): Promise<void> => new Promise(() => undefined);
  const upstream: Handler = async (_request, context) => {
    context.notify({ method: "notifications/message", params: {} });
    return textResult("done");
  };
  await using gateway = chain(observe({ begin: fail, notified: fail, end: fail })).to(upstream);
  gateway.observe({ begin: slow, end: () => Promise.reject(new Error("rejected")) });
  expect(await gateway(callRequest("x"), fakeContext().context)).toEqual(textResult("done"));
  await expect.poll(() => printed.mock.calls.length).toBe(4);
  printed.mockRestore();
  expect(() => observe({ ended: fail } as CallReader)).toThrow(/`ended`.*; did you mean `end`\?/);
  expect(() => gateway.observe({ end: 1 } as never)).toThrow("observe(): `end` must be a function");
});
