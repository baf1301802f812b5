// Headers of callers that an upstream gets by name: each caller's own values, in both styles, and nothing else of them.

import { afterEach, expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { chain, connect, createServer, serve, upstream, type Serving } from "../../../src/index.ts";

const closing: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of closing.splice(0).toReversed()) await one.close();
});

async function start(handler: Parameters<typeof serve>[0]): Promise<string> {
  const front: Serving = await serve(handler, { http: { port: 0 } });
  closing.push(front);
  return front.url ?? "";
}

const text = ({ content }: { content?: unknown }): unknown => (content as { text: string }[])[0]?.text;

it.each([NEWEST.name, NEWEST_SESSION.name])("each caller's own values reach an upstream with %s", async (revision) => {
  const server = createServer({ name: "echo", version: "1.0.0" }).tool("headers", {}, (_, { caller }) => {
    const { "x-tenant": tenant, "x-other": other, authorization, cookie } = caller.headers ?? {};
    return JSON.stringify([tenant ?? null, other ?? null, authorization ?? null, cookie ?? null]);
  });
  const url = await start(server);
  const gateway = await start(chain().to(upstream(url, { forwardHeaders: ["X-Tenant"], revision })));
  const as = async (headers: Record<string, string>): Promise<unknown> => {
    const client = await connect(gateway, { headers: { "X-Other": "no", Authorization: "Bearer no", ...headers } });
    closing.push(client);
    return text(await client.callTool("headers"));
  };
  const [ada, bob, none] = await Promise.all([as({ "X-Tenant": "ada" }), as({ "x-tenant": "bob" }), as({})]);
  expect([ada, bob, none]).toEqual(['["ada",null,null,null]', '["bob",null,null,null]', "[null,null,null,null]"]);
});

it.each(["Authorization", "cookie", "Mcp-Session-Id", "host", "bad name"])("%s cannot be passed on", (name) => {
  expect(() => upstream("http://127.0.0.1:1", { forwardHeaders: [name] })).toThrow("cannot be passed on");
});
