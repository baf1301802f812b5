// Scopes of registrations: who is let through, what a refusal says, and that nothing was looked at or run before.

import { describe, expect, it, vi } from "vitest";
import { desk } from "../../../test/support/desk.ts";
import type { Caller } from "../../core/handler.ts";
import { TASKS, TASKS_LISTED } from "../../protocol/tasks.ts";
import { createServer, type Server } from "../../server/server.ts";

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

type Ask = readonly [method: string, params: Record<string, unknown>, owner: string];
const GUARDED: readonly Ask[] = [
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

const LET_THROUGH: readonly (readonly [string, Partial<Caller>])[] = [
  ["a caller of whom nothing is proved, on a wire that proves nothing", {}],
  ["a caller with these scopes", { principal: "p", scopes: ["read", "write"] }],
  ["a caller with more scopes, in any order", { principal: "p", scopes: ["write", "other", "read"], headers: {} }],
];
const REFUSED: readonly (readonly [string, Partial<Caller>])[] = [
  ["no scopes", { principal: "p", scopes: [] }],
  ["one of two", { principal: "p", scopes: ["read"] }],
  ["the other of two", { principal: "p", scopes: ["write"] }],
  ["scopes that only look alike", { principal: "p", scopes: ["Read", "write ", "read write"] }],
  ["an identity and nothing said of scopes", { principal: "p" }],
  ["no identity, on a wire that is open to others", { headers: {} }],
  ["scopes that lack it, and no identity", { scopes: ["read"] }],
];

describe("what needs scopes", () => {
  describe.each(LET_THROUGH)("lets through %s", (_, caller) => {
    it.each(GUARDED)("%s %j", async (method, params) => {
      expect(await desk(server, { caller }).call(method, params)).toMatchObject({ resultType: "complete" });
    });
  });

  describe.each(REFUSED)("refuses who has %s", (_, caller) => {
    it.each(GUARDED)("%s %j", async (method, params, owner) => {
      vi.clearAllMocks();
      const error = await desk(server, { caller }).refused(method, params);
      expect(error.message).toBe(`${owner} needs the scopes read, write`);
      expect(error.data).toEqual({ kind: "access_denied", requiredScopes: ["read", "write"] });
      expect(ran).not.toHaveBeenCalled();
      expect(checked).not.toHaveBeenCalled();
    });

    it.each(OPEN)("but not for what needs none: %s %j", async (method, params) => {
      expect(await desk(server, { caller }).call(method, params)).toMatchObject({ resultType: "complete" });
    });

    it("and tells no news of what it may not read: the listen is refused whole", async () => {
      const at = desk(server, { caller });
      for (const uri of ["r:guarded", "r:t/1"]) {
        const notifications = { toolsListChanged: true, resourceSubscriptions: ["r:open", uri] };
        const error = await at.refused("subscriptions/listen", { notifications });
        expect(error.message).toBe("What is listened to needs the scopes read, write");
        expect(error.data).toEqual({ kind: "access_denied", requiredScopes: ["read", "write"] });
      }
      expect(at.told).toEqual([]);
    });

    it("but tells it of the rest", async () => {
      const at = desk(server, { caller });
      const notifications = { resourceSubscriptions: ["r:open", "r:o/1", "r:none"] };
      const listening = at.call("subscriptions/listen", { notifications });
      expect(at.told).toMatchObject([{ params: { notifications: { resourceSubscriptions: ["r:open", "r:o/1"] } } }]);
      at.abort();
      await listening;
    });
  });

  it("promises news to who may read", async () => {
    const at = desk(server, { caller: { principal: "p", scopes } });
    const resourceSubscriptions = ["r:guarded", "r:t/1"];
    const listening = at.call("subscriptions/listen", { notifications: { resourceSubscriptions } });
    expect(at.told).toMatchObject([{ params: { notifications: { resourceSubscriptions } } }]);
    at.abort();
    await listening;
  });

  it("says so of one scope too", async () => {
    const error = await desk(server, { caller: { principal: "p" } }).refused("tools/call", { name: "single" });
    expect(error.message).toBe("The tool single needs the scope read");
  });

  it("refuses before it finds fault with arguments", async () => {
    const caller = { principal: "p", scopes: [] };
    const error = await desk(server, { caller }).refused("prompts/get", { name: "guarded" });
    expect(error.kind).toBe("access_denied");
  });

  it("stays in the lists, and does not show its scopes", async () => {
    const { tools } = await desk(server, { caller: { principal: "p", scopes: [] } }).call("tools/list");
    expect(tools).toContainEqual({ name: "guarded", inputSchema });
  });

  it("does not hand out its own list", async () => {
    const caller = { principal: "p", scopes: [] };
    const first = await desk(server, { caller }).refused("tools/call", { name: "single" });
    (first.data as { requiredScopes: string[] }).requiredScopes.pop();
    const second = await desk(server, { caller }).refused("tools/call", { name: "single" });
    expect(second.data).toMatchObject({ requiredScopes: ["read"] });
  });
});

describe("a task of a tool that needs scopes", () => {
  const capabilities = { extensions: { [TASKS]: {} } };
  const wide = { capabilities, principal: "ada", scopes: ["read", "write"] };
  const narrow = { ...wide, scopes: ["read"] };
  const stranger = { ...wide, principal: "bob" };

  async function begun(): Promise<{ taskId: string; guarded: Server; signal: AbortSignal }> {
    let signal: AbortSignal | undefined;
    const guarded = createServer(info)
      .resource("r:guarded", { scopes: ["more"] }, ran)
      .tool("job", { task: "required", scopes }, (_args, context) => {
        ({ signal } = context);
        return new Promise<never>((_, reject) => {
          context.signal.addEventListener("abort", () => reject(context.signal.reason as Error), { once: true });
        });
      });
    const { taskId } = await desk(guarded, { caller: wide }).call("tools/call", { name: "job" });
    if (signal === undefined) throw new Error("It does not run");
    return { taskId: taskId as string, guarded, signal };
  }

  const ASKS = (taskId: string): readonly Ask[] => [
    ["tasks/get", { taskId }, `The task ${taskId}`],
    ["tasks/update", { taskId, inputResponses: {} }, `The task ${taskId}`],
    ["tasks/cancel", { taskId }, `The task ${taskId}`],
    ["subscriptions/listen", { notifications: { taskIds: [taskId] } }, "What is listened to"],
  ];

  it("is for who has them, with each request anew", async () => {
    const { taskId, guarded, signal } = await begun();
    const at = desk(guarded, { caller: narrow });
    for (const [method, params, owner] of ASKS(taskId)) {
      const error = await at.refused(method, params);
      expect([method, error.message]).toEqual([method, `${owner} needs the scopes read, write`]);
      expect(error.data).toEqual({ kind: "access_denied", requiredScopes: ["read", "write"] });
    }
    expect(at.told).toEqual([]);
    expect(signal.aborted).toBe(false);
    const again = desk(guarded, { caller: wide });
    expect(await again.call("tasks/get", { taskId })).toMatchObject({ status: "working" });
    await again.call("tasks/cancel", { taskId });
    expect(signal.aborted).toBe(true);
    // Also when it is over.
    expect((await at.refused("tasks/get", { taskId })).kind).toBe("access_denied");
  });

  it("is unknown to others, whatever they have", async () => {
    const { taskId, guarded } = await begun();
    for (const caller of [stranger, { ...stranger, scopes: [] }]) {
      for (const [method, params] of ASKS(taskId).slice(0, 3)) {
        expect((await desk(guarded, { caller }).refused(method, params)).kind).toBe("invalid_params");
      }
      const at = desk(guarded, { caller });
      await at.call("subscriptions/listen", { notifications: { taskIds: [taskId] } });
      expect(at.told).toMatchObject([{ params: { notifications: {} } }]);
    }
    await guarded.close();
  });

  it("says all that is needed at once, where more is listened to", async () => {
    const { taskId, guarded } = await begun();
    const notifications = { taskIds: [taskId], resourceSubscriptions: ["r:guarded", "r:guarded"] };
    const error = await desk(guarded, { caller: narrow }).refused("subscriptions/listen", { notifications });
    expect((error.data as { requiredScopes: string[] }).requiredScopes.toSorted()).toEqual(["more", "read", "write"]);
    await guarded.close();
  });

  it("is listed for its principal, where it has them", async () => {
    const { taskId, guarded } = await begun();
    const listed = async (caller: Partial<Caller>): Promise<unknown[]> => {
      const { tasks } = await desk(guarded, { caller }).call("tasks/list", { [TASKS_LISTED]: true });
      return (tasks as { taskId: string }[]).map((task) => task.taskId);
    };
    expect(await listed(wide)).toEqual([taskId]);
    expect(await listed(narrow)).toEqual([]);
    expect(await listed(stranger)).toEqual([]);
    await guarded.close();
  });
});

describe("scopes that are none", () => {
  const list = 'its scopes must be a list of strings, as in ["notes:write"]';
  const strings = "its scopes must be strings of visible ASCII, without blanks, quotes and backslashes";
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
  it.each(odd)("are refused when they are registered: %j", (scopes, text) => {
    const options = { scopes: scopes as string[] };
    const fresh = createServer(info);
    expect(() => fresh.tool("t", options, ran)).toThrow(new TypeError(`Tool t: ${text}`));
    expect(() => fresh.resource("a:b", options, ran)).toThrow(new TypeError(`Resource a:b: ${text}`));
    expect(() => fresh.template("a:{b}", options, ran)).toThrow(new TypeError(`Template a:{b}: ${text}`));
    expect(() => fresh.prompt("p", options, ran)).toThrow(new TypeError(`Prompt p: ${text}`));
  });

  it("are not those of every character that a scope may have", () => {
    const all = Array.from({ length: 94 }, (_, n) => String.fromCharCode(33 + n)).filter((c) => !'"\\'.includes(c));
    expect(() => createServer(info).tool("t", { scopes: [all.join("")] }, ran)).not.toThrow();
  });
});
