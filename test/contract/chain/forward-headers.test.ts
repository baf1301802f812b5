// Headers of callers that an upstream gets by name: each caller's own values, in both styles, and nothing else of them.
// Headers that middleware adds to requests.

import { afterEach, expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { breaker, inject } from "../../../src/chain/middleware/index.ts";
import { nodeHandler } from "../../../src/http.ts";
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

it.each([NEWEST.name, NEWEST_SESSION.name])("headers of middleware reach an upstream with %s", async (revision) => {
  const echo = createServer({ name: "echo", version: "1.0.0" });
  for (const name of ["all", "own"]) {
    echo.tool(name, {}, (_, { caller }) => {
      const { "x-tenant": tenant, "x-key": key, "mcp-method": method } = caller.headers ?? {};
      return JSON.stringify([tenant, key, method]);
    });
  }
  const add = inject({
    headers: { "X-Tenant": "acme", "X-Key": "1" },
    tools: { own: { headers: { "X-Tenant": "own" } } },
  });
  const target = upstream(await start(echo), { revision, headers: { "x-key": "2" } });
  const client = await connect(await start(chain(add, breaker()).to(target)), { headers: { "X-Tenant": "caller" } });
  closing.push(client);
  const method = revision === NEWEST.name ? "tools/call" : null;
  expect(JSON.parse(String(text(await client.callTool("all"))))).toEqual(["acme", "1", method]);
  expect(JSON.parse(String(text(await client.callTool("own"))))).toEqual(["own", "1", method]);
});

it("headers of middleware reach an upstream over legacy HTTP+SSE", async () => {
  const { createServer: createHttp } = await import("node:http");
  const server = createServer({ name: "echo", version: "1.0.0" })
    .tool("echo", {}, () => "hi")
    .tool("own", {}, () => "hi");
  const handle = nodeHandler(server);
  const seen: (string | undefined)[][] = [];
  const http = createHttp((request, response) => {
    // As a server that knows nothing newer.
    if (request.method === "POST" && request.url?.startsWith("/sse") === true) response.writeHead(405).end();
    else {
      const { "x-tenant": tenant, "x-key": key } = request.headers;
      seen.push([request.method, tenant?.toString(), key?.toString()]);
      handle(request, response);
    }
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  closing.push({
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  });
  closing.push(handle);
  const { port } = http.address() as { port: number };
  const add = inject({ headers: { "X-Tenant": "acme" }, tools: { own: { headers: { "X-Key": "1" } } } });
  const gateway = chain(add).to(upstream(`http://127.0.0.1:${port}/sse`, { headers: { "x-key": "2" } }));
  const client = await connect(gateway);
  closing.push(client, gateway);
  await client.callTool("echo");
  await client.callTool("own");
  // The gateway opens the session itself, so those requests have only the headers of the upstream.
  expect(seen[0]).toEqual(["GET", undefined, "2"]);
  expect(seen.slice(-2)).toEqual([
    ["POST", "acme", "2"],
    ["POST", "acme", "1"],
  ]);
});

it("an error response that quotes an added header does not show it", async () => {
  const { createServer: createHttp } = await import("node:http");
  const refusing = createHttp((request, response) => {
    response.writeHead(500).end(`No: ${String(request.headers["x-key"])}`);
  });
  await new Promise<void>((resolve) => refusing.listen(0, "127.0.0.1", resolve));
  closing.push({ close: () => new Promise((resolve) => void refusing.close(() => resolve())) });
  const { port } = refusing.address() as { port: number };
  const gateway = chain(inject({ headers: { "x-key": "sk-123456" } })).to(
    upstream(`http://127.0.0.1:${port}`, { revision: NEWEST.name }),
  );
  closing.push(gateway);
  const error: unknown = await connect(gateway).catch((thrown: unknown) => thrown);
  expect(String(error)).toContain("500");
  expect(String(error)).not.toContain("sk-123456");
});
