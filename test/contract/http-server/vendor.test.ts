// Methods, notifications and requests that the specification does not define, over HTTP in both styles: to a server, and
// through a gateway to a server over HTTP.

import { chain, connect, createServer, serve, upstream, type Notification, type Server } from "catenary";
import { afterEach, describe, expect, it, vi } from "vitest";
import { eventually } from "../../support/waiting.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";

const TICK = "notifications/acme/tick";
const OPENED = "notifications/acme/opened";

const serving: Awaited<ReturnType<typeof serve>>[] = [];
afterEach(async () => {
  for (const one of serving.splice(0).toReversed()) await one.close();
});

async function start(handler: Parameters<typeof serve>[0]): Promise<string> {
  const served = await serve(handler, { http: { port: 0 } });
  serving.push(served);
  return served.url ?? "";
}

function vendorServer(onOpened: (file: unknown) => void): Server {
  return createServer({ name: "vendor", version: "1", capabilities: { experimental: { a: {} } } })
    .tool("a", {}, () => "a")
    .method("acme/search", ({ text }, context) => {
      context.notify({ method: TICK, params: { within: true } });
      return { text, extensions: context.caller.capabilities["extensions"] };
    })
    .onNotification(OPENED, ({ file }) => onOpened(file));
}

const STYLES = [NEWEST_SESSION.name, NEWEST.name];
const PAIRS = STYLES.flatMap((revision) => ["a server", "a gateway"].map((target) => [revision, target] as const));

describe.each(PAIRS)("a client of %s and %s", (revision, target) => {
  it("a client and a server exchange what the specification does not define", async () => {
    const opened: unknown[] = [];
    const seen: Notification[] = [];
    const server = vendorServer((file) => opened.push(file));
    const url = await start(server);
    const extensions = { "com.example/ui": { a: 1 } };
    const client = await connect(target === "a server" ? url : await start(chain().to(upstream(url))), {
      revision,
      capabilities: { extensions },
      onNotification: (one) => seen.push(one),
    });
    try {
      expect(client.capabilities.experimental).toEqual({ a: {} });
      expect(await client.request("acme/search", { text: "x" })).toMatchObject({ text: "x", extensions });
      expect(seen).toEqual([{ method: TICK, params: { within: true } }]);
      await expect(client.request("acme/none")).rejects.toMatchObject({ code: -32601 });
      await client.notify(OPENED, { file: "a" });
      await eventually(() => expect(opened).toEqual(["a"]));
      await client.listen({ toolsListChanged: true });
      await eventually(() => {
        server.notify({ method: TICK, params: { count: 1 } });
        expect(seen.at(-1)).toEqual({ method: TICK, params: { count: 1 } });
      });
    } finally {
      await client.close();
    }
  });
});

it.each(REVISIONS.map(({ name, style }) => [name, style] as const))(
  "a method of another revision is unknown in %s",
  async (revision, style) => {
    const handler = vi.fn(vendorServer(() => undefined));
    const client = await connect(await start(handler), { revision });
    const calls = handler.mock.calls.length;
    const method = style === "session" ? "tasks/update" : "logging/setLevel";
    const params = style === "session" ? { taskId: "a", inputResponses: {} } : { level: "info" };
    await expect(client.request(method, params)).rejects.toMatchObject({ code: -32601 });
    expect(handler.mock.calls.slice(calls).map(([request]) => request.method)).not.toContain(method);
    await client.close();
  },
);
