// The router between real connections: callers of every revision in front of a session-style and a stateless upstream.

import { describe, expect, it, vi } from "vitest";
import type { ConnectOptions } from "../../client/connect.ts";
import { NEWEST, REVISIONS } from "../../protocol/revisions/index.ts";
import { createServer, type Server } from "../../server/index.ts";
import { connectInMemory } from "../../testing.ts";
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
  it("sees two upstreams of different styles as one server", async () => {
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
      await vi.waitFor(() => expect(logs).toEqual(["half way at old", "half way at young"]));
      await expect(client.callTool("who")).rejects.toThrow("old_who, young_who");
      await expect(client.readResource("nowhere://x")).rejects.toMatchObject({ kind: "resource_not_found" });

      const received: unknown[] = [];
      const listening = await client.listen(
        { toolsListChanged: true, resourceSubscriptions: ["old.notes://same", "young.notes://same"] },
        ({ method, params }) => received.push(params?.["uri"] ?? method),
      );
      expect(listening.honoured).toMatchObject({ toolsListChanged: true });
      for (const who of ["old", "young"] as const) servers[who].resourceUpdated("notes://same");
      await vi.waitFor(() => expect(new Set(received)).toEqual(new Set(["old.notes://same", "young.notes://same"])));
      servers.old.tool("new", {}, () => "new");
      await vi.waitFor(() => expect(received).toContain("notifications/tools/list_changed"));
      expect((await client.callTool("new")).content).toEqual([{ type: "text", text: "new" }]);
      await listening.close();
    } finally {
      await close();
      await Promise.all([old.close(), young.close()]);
    }
  });
});

describe("what the specification does not define", () => {
  it.each(REVISIONS.map(({ name }) => name))("passes between a caller of %s and two upstreams", async (revision) => {
    const opened: unknown[] = [];
    const vendor = (who: string): Server =>
      createServer({ name: who, version: "1" })
        .tool("who", {}, () => who)
        .method(`${who}/only`, () => ({ who }))
        .method("acme/both", () => ({ who }))
        .notification("notifications/acme/opened", ({ file }) => opened.push(`${who} ${String(file)}`));
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
      await vi.waitFor(() => expect(new Set(opened)).toEqual(new Set(["old a", "young a"])));
      await client.listen({ toolsListChanged: true });
      for (const who of ["old", "young"] as const) {
        servers[who].notify({ method: "notifications/acme/tick", params: { who } });
      }
      await vi.waitFor(() => expect(new Set(seen)).toEqual(new Set(["old", "young"])));
    } finally {
      await close();
      await Promise.all([old.close(), young.close()]);
    }
  });
});
