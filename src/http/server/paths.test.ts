// Endpoints besides the main one: which callers have them, and what the handler is told.

import { afterEach, expect, it, onTestFinished, vi } from "vitest";
import { nodeHttpServer } from "../../../test/support/http/node-http-server.ts";
import { bearer } from "../../auth/bearer/bearer.ts";
import { chain } from "../../chain/chain.ts";
import { metrics } from "../../chain/middleware/metrics.ts";
import { connect } from "../../client/connect.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { createServer } from "../../server/server.ts";
import { serve, type Serving } from "../../serve.ts";
import { createFront, type ServeHttpOptions } from "./mount.ts";

let front: (Serving & { readonly url: string }) | undefined;
afterEach(() => front?.close());

const server = createServer({ name: "s", version: "1" }).tool(
  "where",
  {},
  (_args, { caller }) => `${caller.principal ?? "nobody"} at ${caller.endpoint ?? "the main endpoint"}`,
);

async function start(options: ServeHttpOptions): Promise<string> {
  front = await serve(server, { http: { port: 0, ...options } });
  return new URL(front.url).origin;
}

async function statusOf(url: string, method = "POST", headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { method, headers });
  await response.text();
  return response.status;
}

it("other paths are endpoints if the option says so", async () => {
  const origin = await start({ paths: (path) => path === "/mcp/work" });
  for (const [path, said] of [
    ["/mcp", "nobody at the main endpoint"],
    ["/mcp/work", "nobody at /mcp/work"],
    ["/mcp/work/", "nobody at /mcp/work"],
  ] as const) {
    for (const revision of [NEWEST_SESSION.name, undefined]) {
      const client = await connect(`${origin}${path}`, revision === undefined ? {} : { revision });
      expect((await client.callTool("where")).content).toMatchObject([{ text: said }]);
      await client.close();
    }
  }
  expect(await statusOf(`${origin}/mcp/home`)).toBe(404);
  expect(await statusOf(`${origin}/mcp/work`, "PUT")).toBe(405);
});

it("other paths have one endpoint for all spellings of a path, until it holds nothing and another one is used", async () => {
  const all = ["/mcp/work", "/mcp/a%20b@c", "/mcp/next"];
  const router = createFront(server, { paths: (path) => all.includes(path) });
  const { port } = await nodeHttpServer((request) => router.handle(request));
  const origin = `http://127.0.0.1:${port}`;
  for (const path of ["/mcp/work", "/mcp/w%6Frk", "/mcp/%77ork", "/mcp/%77%6F%72%6B", "/mcp/w%6frk/"]) {
    expect([path, await statusOf(`${origin}${path}`)]).toEqual([path, 415]);
  }
  expect(router.openPaths).toEqual(["/mcp/work"]);
  const client = await connect(`${origin}/mcp/a%20b%40c`, { revision: NEWEST_SESSION.name });
  for (const path of ["/mcp/work%2F", "/mcp%2Fwork", "/mcp/%E0%A4%A", "/mcp/work%3F"]) {
    expect([path, await statusOf(`${origin}${path}`)]).toEqual([path, 404]);
  }
  const later = performance.now() + 2 * router.limits.bodyMs + 1_000;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => later);
  onTestFinished(() => clock.mockRestore());
  expect(await statusOf(`${origin}/mcp/next`)).toBe(415);
  // The session is still open.
  expect(router.openPaths).toEqual(["/mcp/a%20b@c", "/mcp/next"]);
  expect((await client.callTool("where")).content).toMatchObject([{ text: "nobody at /mcp/a%20b@c" }]);
  await client.close();
  await router.close();
});

it("other paths depend on the caller, and are unknown to those who are not authenticated", async () => {
  const verify = (token: string): { principal: string } => ({ principal: token });
  const paths: ServeHttpOptions["paths"] = (path, principal) => path === `/of/${principal}`;
  const origin = await start({ paths, auth: bearer({ verify, resource: "http://127.0.0.1/mcp" }) });
  const as = (who: string): Record<string, string> => ({ authorization: `Bearer ${who}` });
  expect(await statusOf(`${origin}/of/ada`)).toBe(401);
  expect(await statusOf(`${origin}/of/nobody`)).toBe(401);
  expect(await statusOf(`${origin}/of/ada`, "POST", as("bob"))).toBe(404);
  const client = await connect(`${origin}/of/ada`, { headers: as("ada") });
  expect((await client.callTool("where")).content).toMatchObject([{ text: "ada at /of/ada" }]);
  await client.close();
});

const get = async (url: string, token?: string): Promise<[number, string]> => {
  const response = await fetch(url, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });
  return [response.status, await response.text()];
};

it("/metrics shows the figures of a gateway", async () => {
  const gateway = chain(metrics()).to(server);
  const serving = await serve(gateway, { http: { port: 0 } });
  front = serving;
  const { origin } = new URL(serving.url);
  const client = await connect(serving.url);
  await client.callTool("where");
  await client.close();
  const response = await fetch(`${origin}/metrics`);
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(await response.text()).toContain('_count{mcp_method_name="tools/call",gen_ai_tool_name="where"} 1\n');
  expect(await statusOf(`${origin}/metrics`, "POST")).toBe(405);
  expect(await statusOf(`${origin}/metrics`, "GET", { origin: "https://evil.example" })).toBe(403);
});

it("/metrics are not there without the middleware", async () => {
  expect(await statusOf(`${await start({})}/metrics`, "GET")).toBe(404);
  await front?.close();
  front = await serve(chain().to(server), { http: { port: 0 } });
  expect(await statusOf(`${new URL(front.url).origin}/metrics`, "GET")).toBe(404);
});

it("/metrics need a token if the endpoint does, and can be for some callers only", async () => {
  const verify = async (token: string): Promise<{ principal: string } | undefined> =>
    token === "wrong" ? undefined : { principal: token };
  const origin = await start({
    auth: bearer({ verify }),
    metrics: (principal) => (principal === "ada" ? "figures 1\n" : undefined),
  });
  expect((await get(`${origin}/metrics`))[0]).toBe(401);
  expect((await get(`${origin}/metrics`, "wrong"))[0]).toBe(401);
  expect(await get(`${origin}/metrics`, "ada")).toEqual([200, "figures 1\n"]);
  expect((await get(`${origin}/metrics`, "bob"))[0]).toBe(404);
});
