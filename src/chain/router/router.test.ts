// The router between real connections: callers of every revision in front of a session-style and a stateless upstream.

import { describe, expect, it } from "vitest";
import { eventually } from "../../../test/support/waiting.ts";
import { fakeClient } from "../../../test/support/handlers/fake-client.ts";
import type { ConnectOptions } from "../../client/connect.ts";
import { NEWEST, REVISIONS } from "../../protocol/revisions/index.ts";
import { createServer, type Server } from "../../server/index.ts";
import { connectInMemory } from "../../testing.ts";
import { filterUpstream } from "../transforms/filter.ts";
import type { GatewayPart, SelectPart } from "./naming.ts";
import { createRouter } from "./router.ts";

const [OLDEST = NEWEST] = REVISIONS;

function serverOf(who: string): Server {
  return createServer({ name: who, version: "1", instructions: `I am ${who}.` })
    .tool("who", {}, () => who)
    .tool(`steps-of-${who}`, {}, async (_args, context) => {
      context.progress(1, 2);
      context.log("warning", `half way at ${who}`);
      return who;
    })
    .resource("notes://same", { name: "Same" }, () => who)
    .template(`${who}://{id}`, { name: "Things" }, ({ id }) => `${who} ${id}`)
    .prompt("greet", { arguments: { name: {} } }, ({ name }) => `${who} greets ${name ?? "no one"}`);
}

describe.each(REVISIONS.map(({ name }) => name))("a caller of %s", (revision) => {
  it("a caller sees two upstreams of different styles as one server", async () => {
    const servers = { old: serverOf("old"), young: serverOf("young") };
    const old = await connectInMemory(servers.old, { revision: OLDEST.name });
    const young = await connectInMemory(servers.young, { revision: NEWEST.name });
    const router = createRouter(
      { old: old.client.handler, young: young.client.handler },
      { info: { name: "m", version: "1" } },
    );
    const [progress, logs]: [unknown[], unknown[]] = [[], []];
    const { client, close } = await connectInMemory(router, {
      revision,
      logLevel: "info",
      onLog: ({ data }) => logs.push(data),
      onProgress: (one) => progress.push(one.progress),
    });
    try {
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(["old_who", "steps-of-old", "young_who", "steps-of-young"]);
      expect(client.instructions).toBe("# old\n\nI am old.\n\n# young\n\nI am young.");
      for (const who of ["old", "young"]) {
        expect((await client.callTool(`${who}_who`)).content).toEqual([{ type: "text", text: who }]);
        expect((await client.callTool(`steps-of-${who}`)).content).toEqual([{ type: "text", text: who }]);
        expect((await client.readResource(`${who}.notes://same`)).contents).toMatchObject([
          { uri: `${who}.notes://same`, text: who },
        ]);
        expect((await client.readResource(`${who}://7`)).contents).toMatchObject([
          { uri: `${who}://7`, text: `${who} 7` },
        ]);
        expect((await client.getPrompt(`${who}_greet`, { name: "Ada" })).messages).toMatchObject([
          { content: { text: `${who} greets Ada` } },
        ]);
      }
      expect(progress).toEqual([1, 1]);
      await eventually(() => expect(logs).toEqual(["half way at old", "half way at young"]));
      await expect(client.callTool("who")).rejects.toThrow("old_who, young_who");
      await expect(client.readResource("nowhere://x")).rejects.toMatchObject({ kind: "resource_not_found" });

      const received: unknown[] = [];
      const listening = await client.listen(
        { toolsListChanged: true, resourceSubscriptions: ["old.notes://same", "young.notes://same"] },
        ({ method, params }) => received.push(params?.["uri"] ?? method),
      );
      expect(listening.granted).toMatchObject({ toolsListChanged: true });
      for (const who of ["old", "young"] as const) servers[who].resourceUpdated("notes://same");
      await eventually(() => expect(new Set(received)).toEqual(new Set(["old.notes://same", "young.notes://same"])));
      servers.old.tool("new", {}, () => "new");
      await eventually(() => expect(received).toContain("notifications/tools/list_changed"));
      expect((await client.callTool("new")).content).toEqual([{ type: "text", text: "new" }]);
      await listening.close();
    } finally {
      await close();
      await Promise.all([old.close(), young.close()]);
    }
  });
});

const of = (who: string): Server =>
  createServer({ name: who, version: "1", instructions: `I am ${who}.` })
    .tool("search", {}, () => `${who} found`)
    .tool("delete", {}, () => `${who} deleted`)
    .resource(`${who}://x`, { name: who }, () => who);
const only = (...names: readonly string[]): GatewayPart => ({
  key: names.join(" "),
  handlerOf: (name, handler, labelled) =>
    names.includes(name) ? filterUpstream({ tools: { exclude: ["b_delete"] } }, handler, labelled) : undefined,
});

it("a part of a router has some upstreams with some tools, under the same names, and reaches no other", async () => {
  const select: SelectPart = ({ principal }) => (principal === undefined ? undefined : only(...principal.split(" ")));
  const router = createRouter({ a: of("a"), b: of("b"), c: of("c") }, { select });
  const whole = fakeClient(router);
  const part = fakeClient(router, { caller: { principal: "a b" } });
  const alone = fakeClient(router, { caller: { principal: "b" } });
  const nothing = fakeClient(router, { caller: { principal: "" } });
  const names = async (client: typeof whole): Promise<unknown[]> =>
    ((await client.call("tools/list"))["tools"] as { name: string }[]).map(({ name }) => name);
  expect(await names(whole)).toEqual(["a_search", "a_delete", "b_search", "b_delete", "c_search", "c_delete"]);
  expect(await names(part)).toEqual(["a_search", "a_delete", "b_search"]);
  expect(await names(alone)).toEqual(["b_search"]);
  expect(await names(nothing)).toEqual([]);
  expect(await alone.call("server/discover")).toMatchObject({
    instructions: "# b\n\nI am b.",
    cacheScope: "private",
  });
  for (const name of ["b_delete", "delete", "search", "c_search", "a_search", "c.search"]) {
    expect((await alone.callError("tools/call", { name })).kind).toBe("tool_not_found");
  }
  for (const uri of ["c://x", "c.c://x", "a://x"]) {
    expect((await alone.callError("resources/read", { uri })).kind).toBe("resource_not_found");
  }
  expect((await alone.callError("tasks/get", { taskId: "c.1" })).kind).toBe("invalid_params");
  expect(await alone.call("tools/call", { name: "b_search" })).toMatchObject({ content: [{ text: "b found" }] });
});

it.each(REVISIONS.map(({ name }) => name))(
  "what the specification does not define passes between a caller of %s and two upstreams",
  async (revision) => {
    const opened: unknown[] = [];
    const vendor = (who: string): Server =>
      createServer({ name: who, version: "1" })
        .tool("who", {}, () => who)
        .method(`${who}/only`, () => ({ who }))
        .method("acme/both", () => ({ who }))
        .onNotification("notifications/acme/opened", ({ file }) => opened.push(`${who} ${String(file)}`));
    const servers = { old: vendor("old"), young: vendor("young") };
    const old = await connectInMemory(servers.old, { revision: OLDEST.name });
    const young = await connectInMemory(servers.young, { revision: NEWEST.name });
    const router = createRouter({ old: old.client.handler, young: young.client.handler });
    const seen: unknown[] = [];
    const onNotification: ConnectOptions["onNotification"] = ({ method, params }) => {
      if (method.startsWith("notifications/acme/")) seen.push(params?.["who"]);
    };
    const { client, close } = await connectInMemory(router, { revision, onNotification });
    try {
      expect(await client.request("young/only")).toMatchObject({ who: "young" });
      expect(await client.request("acme/both")).toMatchObject({ who: "old" });
      await expect(client.request("acme/none")).rejects.toMatchObject({ code: -32601 });
      await client.notify("notifications/acme/opened", { file: "a" });
      await eventually(() => expect(new Set(opened)).toEqual(new Set(["old a", "young a"])));
      await client.listen({ toolsListChanged: true });
      for (const who of ["old", "young"] as const) {
        servers[who].notify({ method: "notifications/acme/tick", params: { who } });
      }
      await eventually(() => expect(new Set(seen)).toEqual(new Set(["old", "young"])));
    } finally {
      await close();
      await Promise.all([old.close(), young.close()]);
    }
  },
);
