// Scopes of tools, resources, prompts and tasks: which callers have access, what the error says, and that nothing runs
// before the check.

import { describe, expect, it, vi } from "vitest";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import type { Caller } from "../core/handler.ts";
import { TASKS_EXTENSION } from "./tasks.ts";
import { createServer, type Server } from "../server/server.ts";

const info = { name: "test", version: "1" };
const ran = vi.fn(() => "x");
const checked = vi.fn((value: unknown) => ({ value: value as object }));
const input = { "~standard": { version: 1, vendor: "test", validate: checked } } as const;
const inputSchema = { type: "object" };
const scopes = ["read", "write"];
const server = createServer(info)
  .tool("open", {}, ran)
  .tool("none", { scopes: [] }, ran)
  .tool("guarded", { scopes, input, inputSchema }, ran)
  .tool("single", { scopes: ["read"] }, ran)
  .resource("r:open", {}, ran)
  .resource("r:guarded", { scopes }, ran)
  .template("r:t/{id}", { scopes, complete: { id: () => ["1"] } }, ran)
  .template("r:o/{id}", { complete: { id: () => ["2"] } }, ran)
  .prompt("guarded", { scopes, arguments: { a: { required: true, complete: () => ["3"] } } }, ran)
  .prompt("open", { arguments: { a: { complete: () => ["4"] } } }, ran);

const ref = (uri: string) => ({ ref: { type: "ref/resource", uri }, argument: { name: "id", value: "" } });
const promptRef = (name: string) => ({ ref: { type: "ref/prompt", name }, argument: { name: "a", value: "" } });

type GuardedRequest = readonly [method: string, params: Record<string, unknown>, owner: string];
const GUARDED: readonly GuardedRequest[] = [
  ["tools/call", { name: "guarded" }, "The tool guarded"],
  ["resources/read", { uri: "r:guarded" }, "The resource r:guarded"],
  ["resources/read", { uri: "r:t/1" }, "The resource r:t/1"],
  ["prompts/get", { name: "guarded", arguments: { a: "1" } }, "The prompt guarded"],
  ["completion/complete", ref("r:t/{id}"), "The template r:t/{id}"],
  ["completion/complete", promptRef("guarded"), "The prompt guarded"],
];
const OPEN: readonly (readonly [string, Record<string, unknown>])[] = [
  ["tools/call", { name: "open" }],
  ["tools/call", { name: "none" }],
  ["resources/read", { uri: "r:open" }],
  ["resources/read", { uri: "r:o/1" }],
  ["prompts/get", { name: "open" }],
  ["completion/complete", ref("r:o/{id}")],
  ["completion/complete", promptRef("open")],
  ["tools/list", {}],
  ["resources/list", {}],
];

const ALLOWED: readonly (readonly [string, Partial<Caller>])[] = [
  ["a caller without identity, on a transport without authentication", {}],
  ["a caller with these scopes", { principal: "p", scopes: ["read", "write"] }],
  ["a caller with more scopes, in any order", { principal: "p", scopes: ["write", "other", "read"], headers: {} }],
];
const REFUSED: readonly (readonly [string, Partial<Caller>])[] = [
  ["no scopes", { principal: "p", scopes: [] }],
  ["one of two", { principal: "p", scopes: ["read"] }],
  ["the other of two", { principal: "p", scopes: ["write"] }],
  ["scopes that only look similar", { principal: "p", scopes: ["Read", "write ", "read write"] }],
  ["an identity without scopes", { principal: "p" }],
  ["no identity over HTTP", { headers: {} }],
  ["too few scopes and no identity", { scopes: ["read"] }],
];

describe.each(ALLOWED)("allows %s", (_, caller) => {
  it.each(GUARDED)("a registration with scopes allows: %s %j", async (method, params) => {
    expect(await fakeClient(server, { caller }).call(method, params)).toMatchObject({ resultType: "complete" });
  });
});

describe.each(REFUSED)("refuses a caller with %s", (_, caller) => {
  it.each(GUARDED)("a registration with scopes refuses a caller: %s %j", async (method, params, owner) => {
    vi.clearAllMocks();
    const error = await fakeClient(server, { caller }).callError(method, params);
    expect(error.message).toBe(`${owner} needs the scopes read, write`);
    expect(error.data).toEqual({ kind: "access_denied", requiredScopes: ["read", "write"] });
    expect(ran).not.toHaveBeenCalled();
    expect(checked).not.toHaveBeenCalled();
  });

  it.each(OPEN)(
    "a registration with scopes refuses a caller but not for a registration without scopes: %s %j",
    async (method, params) => {
      expect(await fakeClient(server, { caller }).call(method, params)).toMatchObject({ resultType: "complete" });
    },
  );

  it("a registration with scopes refuses a caller and refuses a whole subscription that includes it", async () => {
    const at = fakeClient(server, { caller });
    for (const uri of ["r:guarded", "r:t/1"]) {
      const notifications = { toolsListChanged: true, resourceSubscriptions: ["r:open", uri] };
      const error = await at.callError("subscriptions/listen", { notifications });
      expect(error.message).toBe("The subscription needs the scopes read, write");
      expect(error.data).toEqual({ kind: "access_denied", requiredScopes: ["read", "write"] });
    }
    expect(at.notifications).toEqual([]);
  });

  it("a registration with scopes refuses a caller but allows a subscription to the rest", async () => {
    const at = fakeClient(server, { caller });
    const notifications = { resourceSubscriptions: ["r:open", "r:o/1", "r:none"] };
    const listening = at.call("subscriptions/listen", { notifications });
    expect(at.notifications).toMatchObject([
      { params: { notifications: { resourceSubscriptions: ["r:open", "r:o/1"] } } },
    ]);
    at.abort();
    await listening;
  });
});

it("a registration with scopes allows a subscription to a caller with the scopes", async () => {
  const at = fakeClient(server, { caller: { principal: "p", scopes } });
  const resourceSubscriptions = ["r:guarded", "r:t/1"];
  const listening = at.call("subscriptions/listen", { notifications: { resourceSubscriptions } });
  expect(at.notifications).toMatchObject([{ params: { notifications: { resourceSubscriptions } } }]);
  at.abort();
  await listening;
});

it("a registration with scopes names a single scope in the error", async () => {
  const error = await fakeClient(server, { caller: { principal: "p" } }).callError("tools/call", { name: "single" });
  expect(error.message).toBe("The tool single needs the scope read");
});

it("a registration with scopes is checked before the arguments", async () => {
  const caller = { principal: "p", scopes: [] };
  const error = await fakeClient(server, { caller }).callError("prompts/get", { name: "guarded" });
  expect(error.kind).toBe("access_denied");
});

it("a registration with scopes is in the lists, without its scopes", async () => {
  const { tools } = await fakeClient(server, { caller: { principal: "p", scopes: [] } }).call("tools/list");
  expect(tools).toContainEqual({ name: "guarded", inputSchema });
});

it("a registration with scopes copies its scopes into the error", async () => {
  const caller = { principal: "p", scopes: [] };
  const first = await fakeClient(server, { caller }).callError("tools/call", { name: "single" });
  (first.data as { requiredScopes: string[] }).requiredScopes.pop();
  const second = await fakeClient(server, { caller }).callError("tools/call", { name: "single" });
  expect(second.data).toMatchObject({ requiredScopes: ["read"] });
});

const capabilities = { extensions: { [TASKS_EXTENSION]: {} } };
const wide = { capabilities, principal: "ada", scopes: ["read", "write"] };
const narrow = { ...wide, scopes: ["read"] };
const otherCaller = { ...wide, principal: "bob" };

async function startTask(): Promise<{ taskId: string; guarded: Server; signal: AbortSignal }> {
  let signal: AbortSignal | undefined;
  const guarded = createServer(info)
    .resource("r:guarded", { scopes: ["more"] }, ran)
    .tool("job", { task: "required", scopes }, (_args, context) => {
      ({ signal } = context);
      return new Promise<never>((_, reject) => {
        context.signal.addEventListener("abort", () => reject(context.signal.reason as Error), { once: true });
      });
    });
  const { taskId } = await fakeClient(guarded, { caller: wide }).call("tools/call", { name: "job" });
  if (signal === undefined) throw new Error("The task does not run");
  return { taskId: taskId as string, guarded, signal };
}

const REQUESTS = (taskId: string): readonly GuardedRequest[] => [
  ["tasks/get", { taskId }, `The task ${taskId}`],
  ["tasks/update", { taskId, inputResponses: {} }, `The task ${taskId}`],
  ["tasks/cancel", { taskId }, `The task ${taskId}`],
  ["subscriptions/listen", { notifications: { taskIds: [taskId] } }, "The subscription"],
];

it("a task of a tool that needs scopes requires them for every request", async () => {
  const { taskId, guarded, signal } = await startTask();
  const at = fakeClient(guarded, { caller: narrow });
  for (const [method, params, owner] of REQUESTS(taskId)) {
    const error = await at.callError(method, params);
    expect([method, error.message]).toEqual([method, `${owner} needs the scopes read, write`]);
    expect(error.data).toEqual({ kind: "access_denied", requiredScopes: ["read", "write"] });
  }
  expect(at.notifications).toEqual([]);
  expect(signal.aborted).toBe(false);
  const again = fakeClient(guarded, { caller: wide });
  expect(await again.call("tasks/get", { taskId })).toMatchObject({ status: "working" });
  await again.call("tasks/cancel", { taskId });
  expect(signal.aborted).toBe(true);
  // Also after the task has ended.
  expect((await at.callError("tasks/get", { taskId })).kind).toBe("access_denied");
});

it("a task of a tool that needs scopes is unknown to other principals, whatever their scopes", async () => {
  const { taskId, guarded } = await startTask();
  for (const caller of [otherCaller, { ...otherCaller, scopes: [] }]) {
    for (const [method, params] of REQUESTS(taskId).slice(0, 3)) {
      expect((await fakeClient(guarded, { caller }).callError(method, params)).kind).toBe("invalid_params");
    }
    const at = fakeClient(guarded, { caller });
    await at.call("subscriptions/listen", { notifications: { taskIds: [taskId] } });
    expect(at.notifications).toMatchObject([{ params: { notifications: {} } }]);
  }
  await guarded.close();
});

it("a task of a tool that needs scopes names all scopes of a subscription at once", async () => {
  const { taskId, guarded } = await startTask();
  const notifications = { taskIds: [taskId], resourceSubscriptions: ["r:guarded", "r:guarded"] };
  const error = await fakeClient(guarded, { caller: narrow }).callError("subscriptions/listen", { notifications });
  expect((error.data as { requiredScopes: string[] }).requiredScopes.toSorted()).toEqual(["more", "read", "write"]);
  await guarded.close();
});

it("a task of a tool that needs scopes is listed for its principal with the scopes", async () => {
  const { taskId, guarded } = await startTask();
  const listed = async (caller: Partial<Caller>): Promise<unknown[]> => {
    const { tasks } = await fakeClient(guarded, { caller: { ...caller, style: "session" } }).call("tasks/list");
    return (tasks as { taskId: string }[]).map((task) => task.taskId);
  };
  expect(await listed(wide)).toEqual([taskId]);
  expect(await listed(narrow)).toEqual([]);
  expect(await listed(otherCaller)).toEqual([]);
  await guarded.close();
});

const list = '`scopes` must be an array of strings, such as ["notes:write"]';
const strings = "`scopes` must be strings of visible ASCII, without spaces, quotes and backslashes";
const odd: readonly (readonly [unknown, string])[] = [
  ["read", list],
  [null, list],
  [{ 0: "read" }, list],
  [[""], strings],
  [["read write"], strings],
  [['"'], strings],
  [["\\"], strings],
  [["é"], strings],
  [["a\n"], strings],
  [["a\u007f"], strings],
  [["read", 7], strings],
  [[undefined], strings],
];
it.each(odd)("scopes that are not valid are refused at registration: %j", (scopes, text) => {
  const options = { scopes: scopes as string[] };
  const fresh = createServer(info);
  expect(() => fresh.tool("t", options, ran)).toThrow(new TypeError(`Tool t: ${text}`));
  expect(() => fresh.resource("a:b", options, ran)).toThrow(new TypeError(`Resource a:b: ${text}`));
  expect(() => fresh.template("a:{b}", options, ran)).toThrow(new TypeError(`Template a:{b}: ${text}`));
  expect(() => fresh.prompt("p", options, ran)).toThrow(new TypeError(`Prompt p: ${text}`));
});

it("scopes that are not valid are not those with every allowed character", () => {
  const all = Array.from({ length: 94 }, (_, n) => String.fromCharCode(33 + n)).filter((c) => !'"\\'.includes(c));
  expect(() => createServer(info).tool("t", { scopes: [all.join("")] }, ran)).not.toThrow();
});
