// Documents, APIs and callers that mean harm: what they can reach, and what it costs. Separate from index.test.ts, which
// says what the tools do.

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { connect } from "../client/connect.ts";
import { openapi, type OpenApiOptions } from "./index.ts";

const got: IncomingMessage[] = [];
let http: Server;
let baseUrl = "";

beforeAll(async () => {
  http = createServer((request, response) => {
    got.push(request);
    const { authorization, "x-app": app } = request.headers;
    response.writeHead(request.url?.startsWith("/fail") === true ? 500 : 200, { "content-type": "text/plain" });
    response.end(`Cannot answer ${request.url} with ${authorization} of ${String(app)}`);
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  baseUrl = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
});

afterAll(() => {
  http.closeAllConnections();
  http.close();
});

async function open(paths: object, options: Partial<OpenApiOptions> = {}, components: object = {}) {
  const info = { title: "Shop", version: "1" };
  const server = openapi({ document: { openapi: "3.1.0", info, paths, components }, baseUrl, ...options });
  const client = await connect(server);
  const close = async (): Promise<void> => {
    await client.close();
    await server.close();
  };
  const parameters = async (): Promise<string[]> =>
    Object.keys((await client.listTools()).tools[0]?.inputSchema.properties ?? {});
  const call = async (tool: string, args: Record<string, unknown> = {}): Promise<string> => {
    const { content } = await client.callTool(tool, args);
    return (content[0] as { text: string }).text;
  };
  return { parameters, call, close };
}

const schemes = { token: { type: "http", scheme: "bearer" }, key: { type: "apiKey", in: "query", name: "key" } };

it("shows no credential that an API quotes in an error", async () => {
  const auth = { token: "tok3n-1", key: "k&y 2" };
  const security = [{ token: [], key: [] }];
  const paths = { "/fail": { get: { operationId: "fail", security } }, "/ok": { get: { operationId: "ok" } } };
  const options = { auth, headers: { "X-App": "s3cret-app" } };
  const { call, close } = await open(paths, options, { securitySchemes: schemes });
  expect(await call("fail")).toBe("HTTP 500 Internal Server Error\n\nCannot answer /fail?key=... with ... of ...");
  expect(await call("ok")).toContain("of s3cret-app");
  await close();
});

it("sends no second key that a caller puts into an object, and no header of the connection", async () => {
  const parameters = [
    { name: "filter", in: "query", schema: { type: "object" } },
    ...["Transfer-Encoding", "Connection", "Upgrade", "X-Own"].map((name) => ({ name, in: "header", schema: {} })),
  ];
  const paths = { "/ok": { get: { operationId: "ok", security: [{ key: [] }], parameters } } };
  const opened = await open(paths, { auth: { key: "ours" } }, { securitySchemes: schemes });
  expect(await opened.parameters()).toEqual(["filter", "X-Own"]);
  await opened.call("ok", { filter: { key: "mine", a: "1" } });
  expect(got.at(-1)?.url).toBe("/ok?a=1&key=ours");
  await opened.close();
});

it("reads a body once whose schema repeats others many times, and one that contains itself", async () => {
  const levels = Array.from({ length: 12 }, (_, level) => [
    `L${level}`,
    { allOf: Array.from({ length: 10 }, () => ({ $ref: `#/components/schemas/L${level + 1}` })) },
  ]);
  const schemas = {
    ...Object.fromEntries(levels),
    L12: { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
    Loop: { allOf: [{ $ref: "#/components/schemas/Loop" }, { type: "object", properties: { b: {} } }] },
  };
  const post = (name: string): object => ({
    post: { requestBody: { content: { "application/json": { schema: { $ref: `#/components/schemas/${name}` } } } } },
  });
  const deep = await open({ "/deep": post("L0") }, {}, { schemas });
  expect(await deep.parameters()).toEqual(["a"]);
  await deep.close();
  const loop = await open({ "/loop": post("Loop") }, {}, { schemas });
  expect(await loop.parameters()).toEqual(["body"]);
  await loop.close();
});
