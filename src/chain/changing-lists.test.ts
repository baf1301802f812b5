// What was remembered of a list or a name is not used once it has changed, or for other callers.

import { expect, it, onTestFinished, vi } from "vitest";
import { answerAs, scriptedServer } from "../../test/support/handlers/scripted-server.ts";
import { fakeContext } from "../../test/support/handlers/fake-client.ts";
import type { Client } from "../client/client.ts";
import { connect } from "../client/connect.ts";
import type { Caller, Context, Result } from "../core/handler.ts";
import { Catalogue } from "./catalogue.ts";
import { Item } from "./item.ts";
import { chain } from "./chain.ts";
import type { Gateway } from "./gateway.ts";
import { transform, type TransformedItem } from "./transform.ts";
import { filter } from "./transforms/filter.ts";
import { readOnly } from "./transforms/read-only.ts";
import { rename } from "./transforms/rename.ts";
import { shape } from "./transforms/shape.ts";

const tool = (name: string, readOnlyHint?: boolean) => ({
  name,
  inputSchema: { type: "object" },
  ...(readOnlyHint !== undefined && { annotations: { readOnlyHint } }),
});

const namesOf = (items: readonly { readonly name: string }[]): readonly string[] => items.map(({ name }) => name);
const toolNames = async (client: Client): Promise<readonly string[]> => namesOf((await client.listTools()).tools);

async function withClient(gateway: Gateway, use: (client: Client) => Promise<void>): Promise<void> {
  const client = await connect(gateway);
  try {
    await use(client);
  } finally {
    await client.close();
    await gateway.close();
  }
}

it.each(["one upstream", "two upstreams"])("sees that %s has changed its array of tools", async (count) => {
  const tools = [tool("a"), tool("hidden")];
  const server = scriptedServer({ "tools/list": () => ({ tools }), "tools/call": answerAs("server") });
  const other = scriptedServer({ "tools/list": () => ({ tools: [] }) });
  const hiding = chain(filter({ tools: { exclude: ["hidden"] } }));
  await withClient(count === "one upstream" ? hiding.to(server) : hiding.to({ server, other }), async (client) => {
    expect(await toolNames(client)).toEqual(["a"]);
    tools.push(tool("late"));
    expect(await toolNames(client)).toEqual(["a", "late"]);
    await expect(client.callTool("late")).resolves.toMatchObject({ content: [{ text: "server: late" }] });
    tools.shift();
    expect(await toolNames(client)).toEqual(["late"]);
  });
});

it("decides again about a tool that was in no list before", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const tools: ReturnType<typeof tool>[] = [tool("a")];
  const server = scriptedServer({ "tools/list": () => ({ tools: [...tools] }), "tools/call": answerAs("server") });
  const open = transform({ item: (item) => (item.definition?.["annotations"] === undefined ? item : undefined) });
  await withClient(chain(open).to(server), async (client) => {
    for (let time = 0; time < 2; time += 1) await client.callTool("late");
    tools.push(tool("late", false));
    vi.advanceTimersByTime(60_000);
    await expect(client.callTool("late")).rejects.toMatchObject({ kind: "tool_not_found" });
  });
  tools.pop();
  await withClient(chain(readOnly()).to(server), async (client) => {
    for (let time = 0; time < 2; time += 1) {
      await expect(client.callTool("late")).rejects.toMatchObject({ kind: "tool_not_found" });
    }
    tools.push(tool("late", true));
    vi.advanceTimersByTime(60_000);
    await client.callTool("late");
  });
});

it("calls the first of two tools with one name, also after the list has another order", async () => {
  let names = ["a", "b"];
  const server = scriptedServer({
    "tools/list": () => ({ tools: names.map((name) => tool(name)) }),
    "tools/call": answerAs("server"),
  });
  const onlyZ = transform({ item: (item) => (item.kind === "tools" ? { ...item, name: "z" } : item) });
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  onTestFinished(() => warned.mockRestore());
  await withClient(chain(onlyZ).to(server), async (client) => {
    for (names of [names, names.toReversed()]) {
      expect(await toolNames(client)).toEqual(["z"]);
      await expect(client.callTool("z")).resolves.toMatchObject({ content: [{ text: `server: ${names[0]}` }] });
    }
  });
});

it("keeps lists apart for which a server uses one array", async () => {
  const none: readonly never[] = Object.freeze([]);
  const lists = {
    "tools/list": () => ({ tools: none }),
    "prompts/list": () => ({ prompts: none }),
    "resources/list": () => ({ resources: none }),
    "resources/templates/list": () => ({ resourceTemplates: none }),
  };
  const server = scriptedServer(lists, { tools: {}, prompts: {}, resources: {} });
  await withClient(chain(shape()).to(server), async (client) => {
    expect(await toolNames(client)).toEqual(["read-result"]);
    expect(namesOf((await client.listResourceTemplates()).resourceTemplates)).toEqual(["whole-result"]);
    expect((await client.listPrompts()).prompts).toEqual([]);
    expect((await client.listResources()).resources).toEqual([]);
  });
});

it("hides a tool whose definition is also that of a prompt that is shown", async () => {
  const both = tool("x");
  const lists = { "tools/list": () => ({ tools: [both] }), "prompts/list": () => ({ prompts: [both] }) };
  const server = scriptedServer(lists, { tools: {}, prompts: {} });
  await withClient(chain(filter({ tools: { exclude: ["x"] } })).to(server), async (client) => {
    expect(namesOf((await client.listPrompts()).prompts)).toEqual(["x"]);
    expect(await toolNames(client)).toEqual([]);
  });
});

it("judges a tool by the last list, also if that is an earlier one again", async () => {
  const lists = [[tool("x", false)], [tool("x", true)]] as const;
  let now: 0 | 1 = 0;
  const server = scriptedServer({ "tools/list": () => ({ tools: lists[now] }), "tools/call": answerAs("server") });
  await withClient(chain(readOnly()).to(server), async (client) => {
    expect(await toolNames(client)).toEqual([]);
    now = 1;
    expect(await toolNames(client)).toEqual(["x"]);
    await expect(client.callTool("x")).resolves.toMatchObject({ content: [{ text: "server: x" }] });
    now = 0;
    expect(await toolNames(client)).toEqual([]);
    await expect(client.callTool("x")).rejects.toMatchObject({ kind: "tool_not_found" });
  });
});

it.each(["the only upstream", "one of two"])("follows names again when a gateway that is %s changes", async (which) => {
  const server = scriptedServer({
    "tools/list": () => ({ tools: [tool("safe"), tool("erase")] }),
    "tools/call": answerAs("server"),
  });
  const other = scriptedServer({ "tools/list": () => ({ tools: [tool("other")] }) });
  const inner = chain(rename({ tools: { safe: "tidy" } })).to(server);
  const hiding = chain(filter({ tools: { exclude: ["erase"] } }));
  await withClient(which === "one of two" ? hiding.to({ inner, other }) : hiding.to(inner), async (client) => {
    await expect(client.callTool("tidy")).resolves.toMatchObject({ content: [{ text: "server: safe" }] });
    await expect(client.callTool("tidy")).resolves.toMatchObject({ content: [{ text: "server: safe" }] });
    inner.replace("rename", rename({ tools: { erase: "tidy" } }));
    await expect(client.callTool("tidy")).rejects.toMatchObject({ kind: "tool_not_found" });
  });
});

it("asks a transform of items again about each request, if it may look at the caller", async () => {
  const asAdmin = (caller: Caller): boolean => caller.headers?.["x-role"] === "admin";
  const tools = { tools: [tool("read"), tool("erase")] };
  const server = scriptedServer({ "tools/list": () => tools, "tools/call": answerAs("server") });
  for (const item of [
    (one: TransformedItem, { caller }: { caller: Caller }) => (asAdmin(caller) || one.name !== "erase" ? one : null),
    (...[one, { caller }]: [TransformedItem, { caller: Caller }]) =>
      asAdmin(caller) || one.name === "read" ? one : null,
  ]) {
    const gateway = chain(transform({ item })).to(server);
    const context = (role: string): Context => {
      const { context: made } = fakeContext();
      return { ...made, caller: { ...made.caller, style: "session", key: "one", headers: { "x-role": role } } };
    };
    const call = (role: string): Promise<Result> =>
      gateway({ method: "tools/call", params: { name: "erase" } }, context(role));
    for (let times = 0; times < 3; times += 1) await expect(call("admin")).resolves.toHaveProperty("content");
    await expect(call("guest")).rejects.toMatchObject({ kind: "tool_not_found" });
    for (const [role, count] of [
      ["admin", 2],
      ["guest", 1],
    ] as const) {
      expect((await gateway({ method: "tools/list", params: {} }, context(role)))["tools"]).toHaveLength(count);
    }
    await gateway.close();
  }
});

it("asks a transform of items about each item once, not for each name", async () => {
  let asked = 0;
  const item = (one: TransformedItem): TransformedItem => {
    asked += 1;
    return { ...one, name: `my-${one.name}` };
  };
  const tools = { tools: Array.from({ length: 500 }, (_, at) => tool(`t${at}`)) };
  const server = scriptedServer({ "tools/list": () => tools, "tools/call": answerAs("server") });
  await withClient(chain(transform({ item })).to(server), async (client) => {
    for (let at = 0; at < 20; at += 1) await client.callTool(`my-t${at}`);
    expect(asked).toBeLessThan(600);
  });
});

it("remembers a limited number of names, and no long ones", () => {
  const catalogue = new Catalogue();
  const { caller } = fakeContext().context;
  const followed = catalogue.followed(caller, 1);
  catalogue.remember(followed.items, new Item({ kind: "tools", name: "x".repeat(10_000) }));
  expect(followed.items.size).toBe(0);
  const remember = (at: number): void =>
    catalogue.remember(followed.items, new Item({ kind: "tools", name: `t${at}` }));
  for (let at = 0; at < 100_000; at += 1) remember(at);
  expect(catalogue.followed(caller, 1).items.get("tools")?.size).toBe(100_000);
  remember(100_000);
  expect(catalogue.followed(caller, 1).items.size).toBe(0);
});
