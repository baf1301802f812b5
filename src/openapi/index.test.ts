// An HTTP API as tools, against a real HTTP server that tells what it got: tools, requests in all styles, results,
// credentials, and what is refused.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { Client } from "../client/client.ts";
import { connect } from "../client/connect.ts";
import { openapi, type OpenApi, type OpenApiOptions } from "./index.ts";

const folder = mkdtempSync(join(tmpdir(), "catenary-openapi-"));
let http: Server;
let origin = "";
let respond: (request: IncomingMessage, response: ServerResponse) => void;
const opened: { client: Client; server: OpenApi }[] = [];

/** Answers with what it got. */
function echo(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const { accept, cookie, authorization, ...headers } = request.headers;
    const own = Object.entries(headers).filter(([name]) => name.startsWith("x-") || name === "content-type");
    const got = { line: `${request.method} ${request.url}`, body: Buffer.concat(chunks).toString() || undefined };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ ...got, cookie, authorization, headers: Object.fromEntries(own) }));
    expect(accept).toContain("application/json");
  });
}

beforeAll(async () => {
  http = createServer((request, response) => respond(request, response));
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
});

afterEach(async () => {
  for (const { client, server } of opened.splice(0)) {
    await client.close();
    await server.close();
  }
});

afterAll(() => {
  http.closeAllConnections();
  http.close();
  rmSync(folder, { recursive: true });
});

type Paths = Readonly<Record<string, unknown>>;

function documentOf(paths: Paths, more: object = {}): Record<string, unknown> {
  return { openapi: "3.0.3", info: { title: "Shop", version: "1" }, paths, ...more };
}

async function open(paths: Paths, options: Partial<OpenApiOptions> = {}, more: object = {}): Promise<Client> {
  respond = echo;
  const server = openapi({ document: documentOf(paths, more), baseUrl: `${origin}/v1/`, ...options });
  const client = await connect(server);
  opened.push({ client, server });
  return client;
}

async function call(client: Client, tool: string, args: object = {}): Promise<{ text: string; isError?: boolean }> {
  const { content, isError } = await client.callTool(tool, args as Record<string, unknown>);
  return { text: (content[0] as { text: string }).text, ...(isError === true && { isError }) };
}

/** What the server got. */
async function sent(client: Client, tool: string, args: object = {}): Promise<Record<string, unknown>> {
  const { text } = await call(client, tool, args);
  expect(text).toMatch(/^\{/);
  return JSON.parse(text) as Record<string, unknown>;
}

const param = (name: string, place: string, schema: object = { type: "string" }, more: object = {}): object => ({
  name,
  in: place,
  schema,
  ...(place === "path" && { required: true }),
  ...more,
});
const json = (schema: object): object => ({ content: { "application/json": { schema } } });
const LIST = { type: "array", items: { type: "string" } };
const MAP = { type: "object", additionalProperties: { type: "string" } };

it("the tools have names, texts, hints and one flat schema", async () => {
  const paths = {
    "/pets/{id}": {
      parameters: [param("id", "path", { type: "integer" })],
      get: { operationId: "pets.get one!", summary: "Gets a pet", description: "By its id.", deprecated: true },
      put: {
        requestBody: {
          required: true,
          ...json({
            type: "object",
            required: ["id", "made", "by", "name"],
            properties: {
              id: { type: "string", description: "the new id" },
              name: { type: "string", nullable: true },
              made: { type: "string", readOnly: true },
              by: { $ref: "#/components/schemas/By" },
            },
          }),
        },
      },
      delete: {},
      head: {},
    },
    "/pets": { post: { requestBody: { ...json(LIST) } } },
  };
  const client = await open(paths, {}, { components: { schemas: { By: { type: "string", readOnly: true } } } });
  const { tools } = await client.listTools();
  expect(tools.map(({ name, annotations }) => [name, annotations])).toEqual([
    ["pets_get_one", { readOnlyHint: true, openWorldHint: true }],
    ["head_pets_id", { readOnlyHint: true, openWorldHint: true }],
    ["put_pets_id", { readOnlyHint: false, idempotentHint: true, openWorldHint: true }],
    ["delete_pets_id", { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: true }],
    ["post_pets", { readOnlyHint: false, openWorldHint: true }],
  ]);
  expect(tools[0]).toMatchObject({ title: "Gets a pet", description: "Gets a pet\n\nBy its id.\n\nDeprecated." });
  expect(tools[2]?.inputSchema).toEqual({
    type: "object",
    properties: {
      id: { type: "integer" },
      body_id: { type: "string", description: "the new id" },
      name: { type: ["string", "null"] },
    },
    required: ["id", "body_id", "name"],
    additionalProperties: false,
  });
  expect(tools[4]?.inputSchema).toMatchObject({ properties: { body: { type: "array" } } });
  expect(await sent(client, "put_pets_id", { id: 7, body_id: "x", name: null })).toMatchObject({
    line: "PUT /v1/pets/7",
    body: '{"id":"x","name":null}',
    headers: { "content-type": "application/json" },
  });
  expect(await call(client, "put_pets_id", { id: 7 })).toMatchObject({ isError: true });
});

it("the tools are those that are included and not excluded, by name, method and path, or tag", async () => {
  const paths = {
    "/a": { get: { operationId: "listA", tags: ["x"] }, delete: { operationId: "dropA" } },
    "/b": { get: { operationId: "listB" }, post: { operationId: "addB", tags: ["y"] } },
  };
  const names = async (options: Partial<OpenApiOptions>): Promise<string[]> =>
    (await (await open(paths, options)).listTools()).tools.map(({ name }) => name);
  expect(await names({ include: ["list*"] })).toEqual(["listA", "listB"]);
  expect(await names({ include: ["GET /a", "tag:y"] })).toEqual(["listA", "addB"]);
  expect(await names({ exclude: ["DELETE *", "tag:x"] })).toEqual(["listB", "addB"]);
  const none = 'no operation that can be a tool: the pattern "nothing" of include matches no operation';
  await expect(names({ include: ["nothing"] })).rejects.toThrow(none);
  await expect(names({ exclude: ["*"] })).rejects.toThrow("no operation that can be a tool: check include");
});

it("the tools are chosen by patterns that match, or there is a warning", async () => {
  const paths = { "/a": { get: { operationId: "listA" }, delete: { operationId: "dropA" } } };
  const print = vi.spyOn(console, "error").mockReturnValue(undefined);
  const client = await open(paths, { include: ["listA", "lsit*", "dropA"], exclude: ["DELTE *"] });
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["listA", "dropA"]);
  expect(print.mock.calls).toEqual([
    [
      'catenary: openapi(): the pattern "lsit*" of include matches no operation; ' +
        'the pattern "DELTE *" of exclude matches no operation',
    ],
  ]);
  print.mockRestore();
});

it("the tools keep cycles as definitions, and turn what only 3.0 has into JSON Schema", async () => {
  const schemas = {
    Node: {
      type: "object",
      properties: { children: { type: "array", items: { $ref: "#/components/schemas/Node" } } },
      discriminator: { propertyName: "kind" },
      xml: {},
    },
    Other: { type: "integer", minimum: 1, exclusiveMinimum: true, example: 3, "x-own": true },
  };
  const properties = {
    node: { $ref: "#/components/schemas/Node" },
    other: { nullable: true, allOf: [{ $ref: "#/components/schemas/Other" }] },
    choice: { type: "string", enum: ["a"], nullable: true },
    strange: { type: "file", pattern: "(?i)x", format: "uuid" },
  };
  const body = { requestBody: json({ type: "object", properties }) };
  const client = await open({ "/nodes": { post: body } }, {}, { components: { schemas } });
  const { tools } = await client.listTools();
  expect(tools[0]?.inputSchema).toEqual({
    type: "object",
    properties: {
      node: { $ref: "#/$defs/Node" },
      other: { anyOf: [{ allOf: [{ $ref: "#/$defs/Other" }] }, { type: "null" }] },
      choice: { type: ["string", "null"], enum: ["a", null] },
      strange: { format: "uuid" },
    },
    additionalProperties: false,
    $defs: {
      Node: { type: "object", properties: { children: { type: "array", items: { $ref: "#/$defs/Node" } } } },
      Other: { type: "integer", exclusiveMinimum: 1 },
    },
  });
  expect(await sent(client, "post_nodes", { node: { children: [{ children: [] }] } })).toMatchObject({
    body: '{"node":{"children":[{"children":[]}]}}',
  });
  expect(await call(client, "post_nodes", { other: 1 })).toMatchObject({ isError: true });
});

it("the tools leave out the deepest parts of a schema that is very long", async () => {
  const level = (at: number): object => ({
    type: "object",
    description: "x".repeat(400),
    properties: { next: { $ref: `#/components/schemas/L${at + 1}` } },
  });
  const schemas = {
    ...Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`L${at}`, level(at)])),
    L100: { type: "string" },
  };
  const body = { requestBody: json({ $ref: "#/components/schemas/L0" }) };
  const client = await open({ "/x": { post: body } }, {}, { components: { schemas } });
  const [tool] = (await client.listTools()).tools;
  const text = JSON.stringify(tool);
  expect(text.length).toBeLessThan(40_000);
  expect(text.includes("its schema is left out here")).toBe(true);
  expect((await call(client, "post_x", { next: { next: {} } })).isError).toBeUndefined();
});

it.each<[string, object, unknown, string]>([
  ["a path parameter", param("p", "path"), "a b/c?d", "/v1/x/a%20b%2Fc%3Fd"],
  ["a list in the path", param("p", "path", LIST), ["a", "b,c"], "/v1/x/a,b%2Cc"],
  ["a label", param("p", "path", LIST, { style: "label", explode: true }), ["a", "b"], "/v1/x/.a.b"],
  ["a matrix", param("p", "path", MAP, { style: "matrix", explode: true }), { a: "1", b: "2" }, "/v1/x/;a=1;b=2"],
  ["an object in the path", param("p", "path", MAP), { a: "1" }, "/v1/x/a,1"],
  ["JSON in the path", { name: "p", in: "path", ...json({}) }, { p: [1] }, "/v1/x/%7B%22p%22%3A%5B1%5D%7D"],
])("a request has: %s", async (_, parameter, value, url) => {
  const client = await open({ "/x/{p}": { get: { operationId: "get", parameters: [parameter] } } });
  expect(await sent(client, "get", { p: value })).toMatchObject({ line: `GET ${url}` });
});

it.each<[string, object, unknown, string]>([
  ["a query", param("q", "query"), "a&b=c d", "q=a%26b%3Dc%20d"],
  ["a list", param("q", "query", LIST), ["a", "b"], "q=a&q=b"],
  ["a list with commas", param("q", "query", LIST, { explode: false }), ["a,b", "c d"], "q=a%2Cb,c%20d"],
  ["a list with spaces", param("q", "query", LIST, { style: "spaceDelimited" }), ["a,b", "c"], "q=a%2Cb%20c"],
  ["a list with pipes", param("q", "query", LIST, { style: "pipeDelimited", explode: false }), ["a", "b"], "q=a%7Cb"],
  ["an object with commas", param("q", "query", MAP, { explode: false }), { a: "1,2", b: "3" }, "q=a,1%2C2,b,3"],
  ["an object with pipes", param("q", "query", MAP, { style: "pipeDelimited" }), { a: "1" }, "q=a%7C1"],
  ["an object", param("q", "query", MAP), { a: "1", b: "2" }, "a=1&b=2"],
  ["a deep object", param("q", "query", {}, { style: "deepObject" }), { a: { b: [1] } }, "q%5Ba%5D%5Bb%5D%5B0%5D=1"],
  ["JSON", { name: "q", in: "query", ...json({}) }, { a: [1] }, "q=%7B%22a%22%3A%5B1%5D%7D"],
  ["a name that models refuse", param("q[]", "query", LIST), ["a"], "q%5B%5D=a"],
  ["a number and a boolean", param("q", "query", {}), true, "q=true"],
])("a request has in its query %s", async (_, parameter, value, query) => {
  const client = await open({ "/x": { get: { operationId: "get", parameters: [parameter] } } });
  const name = (parameter as { name: string }).name.replace("[]", "_");
  expect(await sent(client, "get", { [name]: value })).toMatchObject({ line: `GET /v1/x?${query}` });
});

it("a request has: headers and cookies, but not those of the protocol", async () => {
  const parameters = [
    param("X-List", "header", LIST),
    param("Authorization", "header"),
    param("session", "cookie"),
    param("langs", "cookie", LIST, { explode: false }),
  ];
  const client = await open({ "/x": { get: { operationId: "get", parameters } } });
  const [tool] = (await client.listTools()).tools;
  expect(Object.keys(tool?.inputSchema.properties ?? {})).toEqual(["X-List", "session", "langs"]);
  expect(await sent(client, "get", { "X-List": ["a", "b"], session: "a;b", langs: ["de", "a,b"] })).toMatchObject({
    headers: { "x-list": "a,b" },
    cookie: "session=a%3Bb; langs=de,a%2Cb",
  });
  expect(await sent(client, "get", { "X-List": [] })).toMatchObject({ headers: { "x-list": "" } });
  expect(await call(client, "get", { "X-List": ["a\r\nX-Evil: 1"] })).toEqual({
    text: "The value of X-List must be one line",
    isError: true,
  });
});

it("a request has: a form or a text as its body", async () => {
  const form = {
    "application/x-www-form-urlencoded": {
      schema: { type: "object", properties: { a: {}, list: LIST, deep: LIST, map: {}, one: {}, pipes: {} } },
      encoding: { deep: { style: "deepObject" }, one: { explode: false }, pipes: { style: "pipeDelimited" } },
    },
  };
  const client = await open({
    "/form": { post: { operationId: "form", requestBody: { content: form } } },
    "/text": { post: { operationId: "text", requestBody: { content: { "text/plain": {} }, required: true } } },
  });
  expect(
    await sent(client, "form", { a: "x y", list: ["1", "2"], deep: ["3"], map: { k: { l: true } } }),
  ).toMatchObject({
    body: "a=x%20y&list=1&list=2&deep%5B0%5D=3&map%5Bk%5D%5Bl%5D=true",
    headers: { "content-type": "application/x-www-form-urlencoded" },
  });
  expect(await sent(client, "form", { one: ["1,2", "3"], pipes: ["4", "5"] })).toMatchObject({
    body: "one=1%2C2,3&pipes=4%7C5",
  });
  expect(await sent(client, "form", { one: { k: "1", l: "2" } })).toMatchObject({ body: "one=k,1,l,2" });
  expect(await sent(client, "form")).not.toHaveProperty("body");
  expect(await sent(client, "text", { body: "hello" })).toMatchObject({
    body: "hello",
    headers: { "content-type": "text/plain" },
  });
});

it("a request has never an address outside the base URL", async () => {
  const client = await open({ "/files/{p}": { get: { operationId: "get", parameters: [param("p", "path")] } } });
  for (const value of ["..", ".", "", "../../admin", "a/../..", "..\\x"]) {
    expect(await call(client, "get", { p: value })).toEqual({
      text: "The value of p cannot be a part of a path: it must not be empty, nor have . or .. as a part",
      isError: true,
    });
  }
  expect(await sent(client, "get", { p: "%2e%2e" })).toMatchObject({ line: "GET /v1/files/%252e%252e" });
  expect(await sent(client, "get", { p: "//evil.example" })).toMatchObject({
    line: "GET /v1/files/%2F%2Fevil.example",
  });
});

const components = {
  securitySchemes: {
    key: { type: "apiKey", in: "query", name: "key" },
    cookie: { type: "apiKey", in: "cookie", name: "sid" },
    basic: { type: "http", scheme: "basic" },
    token: { type: "http", scheme: "bearer" },
  },
};
const get = (operationId: string, security?: object[]): object => ({
  get: { operationId, parameters: [param("key", "query")], ...(security && { security }) },
});
const paths = {
  "/token": get("token", [{ missing: [] }, { token: [] }]),
  "/two": get("two", [{ key: [], cookie: [] }]),
  "/basic": get("basic", [{ basic: [] }]),
  "/open": get("open", []),
  "/default": get("default"),
};
const auth = { key: "k&1", cookie: "c", basic: "ada:pass", token: "t" };

it("credentials are sent with the operations that ask for them, and callers cannot set them", async () => {
  const client = await open(paths, { auth, headers: { "X-App": "mine" } }, { components, security: [{ token: [] }] });
  expect(await sent(client, "token")).toMatchObject({ authorization: "Bearer t", line: "GET /v1/token" });
  expect(await sent(client, "two")).toMatchObject({ cookie: "sid=c", line: "GET /v1/two?key=k%261" });
  expect(await sent(client, "basic")).toMatchObject({ authorization: "Basic YWRhOnBhc3M=" });
  expect(await sent(client, "open")).toEqual({ line: "GET /v1/open", headers: { "x-app": "mine" } });
  expect(await sent(client, "default")).toMatchObject({ authorization: "Bearer t" });
  expect(await call(client, "open", { key: "mine" })).toMatchObject({ isError: true });
});

it("credentials for an unknown scheme are an error that names it, and not the credential", async () => {
  const error = open(paths, { auth: { tokn: "s3cret" } }, { components });
  await expect(error).rejects.toThrow("The document has no security scheme tokn; did you mean `token`?");
  await expect(error).rejects.not.toThrow("s3cret");
});

it("credentials do not follow a redirect to another origin", async () => {
  const client = await open(paths, { auth }, { components });
  respond = (_request, response) => response.writeHead(307, { location: "http://127.0.0.1:9/x" }).end();
  expect(await call(client, "token")).toEqual({
    text: expect.stringContaining("redirects to http://127.0.0.1:9; connect to that address if you trust it") as string,
    isError: true,
  });
});

describe("a result is", () => {
  const paths = {
    "/x": {
      get: { operationId: "get", responses: { 200: json({ type: "object", required: ["a"] }) } },
      head: { operationId: "head" },
    },
  };
  const answer = (status: number, type: string, body: string | Buffer) => {
    respond = (_request, response) => void response.writeHead(status, { "content-type": type, etag: '"1"' }).end(body);
  };

  it("a result is: the body as text, an image, or the status", async () => {
    const client = await open(paths);
    answer(200, "application/json", '[{"a": 1}]');
    expect(await client.callTool("get")).toMatchObject({ content: [{ text: '[{"a": 1}]' }], isError: false });
    answer(200, "text/html; charset=iso-8859-1", Buffer.from([0x63, 0xe9]));
    expect(await call(client, "get")).toEqual({ text: "cé" });
    answer(200, "image/png", Buffer.from([1, 2, 3]));
    expect((await client.callTool("get")).content).toEqual([{ type: "image", data: "AQID", mimeType: "image/png" }]);
    answer(204, "", "");
    expect(await call(client, "get")).toEqual({ text: "HTTP 204 No Content" });
    answer(200, "text/plain", "");
    expect(await call(client, "head")).toEqual({ text: 'HTTP 200 OK\ncontent-type: text/plain\netag: "1"' });
  });

  it("a result is: an error with the status and the beginning of the body", async () => {
    const client = await open(paths, { maxResponseBytes: 20_000 });
    answer(404, "application/json", '{"message": "no such pet"}');
    expect(await call(client, "get")).toEqual({
      text: 'HTTP 404 Not Found\n\n{"message": "no such pet"}',
      isError: true,
    });
    answer(500, "text/plain", "x".repeat(10_000));
    expect((await call(client, "get")).text).toHaveLength("HTTP 500 Internal Server Error\n\n".length + 4_000);
    answer(200, "text/plain", "x".repeat(30_000));
    expect(await call(client, "get")).toEqual({
      text: expect.stringContaining("is longer than the limit of 20000 bytes") as string,
      isError: true,
    });
    const hasty = await open(paths, { timeoutMs: 300 });
    respond = () => undefined;
    expect(await call(hasty, "get")).toEqual({ text: "The API did not answer in 300 ms", isError: true });
  });

  it("a result is: structured content with a schema, if that is wanted", async () => {
    const client = await open(paths, { outputSchemas: true });
    const { tools } = await client.listTools();
    expect(tools.map(({ outputSchema }) => outputSchema)).toEqual([{ type: "object", required: ["a"] }, undefined]);
    answer(200, "application/json", '{"a":1}');
    expect(await client.callTool("get")).toMatchObject({
      structuredContent: { a: 1 },
      content: [{ type: "text", text: '{"a":1}' }],
    });
    answer(200, "application/json", '{"b":1}');
    expect(await client.callTool("get")).toMatchObject({ isError: true });
    answer(200, "application/json", "[1]");
    expect(await client.callTool("get")).toMatchObject({ isError: true });
  });
});

const YAML =
  "openapi: 3.1.0\ninfo: {title: x, version: '1'}\nservers: [{url: 'BASE/{v}', variables: {v: {default: v2}}}]\npaths:\n  /a:\n    get: {operationId: get}\n";

it("a document is read from a file or a URL, as YAML or JSON, with its first server as the base URL", async () => {
  const file = join(folder, "api.yaml");
  writeFileSync(file, YAML.replace("BASE", origin));
  const fromFile = openapi({ document: file });
  const client = await connect(fromFile);
  opened.push({ client, server: fromFile });
  respond = echo;
  expect(await sent(client, "get")).toMatchObject({ line: "GET /v2/a" });
  respond = (request, response) =>
    request.url?.startsWith("/docs/api") === true
      ? void response.end(YAML.replace("BASE", "/api"))
      : echo(request, response);
  const fromUrl = openapi({ document: `${origin}/docs/api?key=s3cret` });
  const other = await connect(fromUrl);
  opened.push({ client: other, server: fromUrl });
  expect(await sent(other, "get")).toMatchObject({ line: "GET /api/v2/a" });
});

it("a document at a URL cannot send requests elsewhere, unless baseUrl says so", async () => {
  respond = (_request, response) => void response.end(YAML.replace("BASE", "https://evil.example"));
  const server = openapi({ document: `${origin}/api` });
  await expect(connect(server)).rejects.toThrow(
    `The document is at ${origin}, and its API at https://evil.example; set baseUrl`,
  );
  await server.close();
});

it.each<[string, unknown, string]>([
  ["Swagger 2", { swagger: "2.0", paths: {} }, "The document is Swagger 2; convert it to OpenAPI 3 first"],
  ["something else", { hello: 1 }, "The document is not an OpenAPI 3 document"],
  ["without paths", { openapi: "3.1.0" }, "The document has no paths"],
  ["without an address", documentOf({ "/a": { get: {} } }), "The document does not say where its API is; set baseUrl"],
  ["a missing file", join(folder, "no.json"), "no.json: ENOENT"],
])("a document that is %s is an error", async (_, document, message) => {
  const server = openapi({ document: document as OpenApiOptions["document"] });
  await expect(connect(server)).rejects.toThrow(message);
  await server.close();
});

it("a document has its invalid operations left out, with one warning that names them", async () => {
  const printed = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const client = await open({
    "/good": { get: { operationId: "good" } },
    "/bad/{id}": { get: {} },
    "/ref": { post: { requestBody: { $ref: "#/components/no" } } },
    "/out": { post: { requestBody: json({ type: "object", properties: { a: { $ref: "other.yaml#/A" } } }) } },
    "/file": { post: { requestBody: { content: { "multipart/form-data": {} } } } },
    "/loop": { get: { parameters: [{ $ref: "#/paths/~1loop/get/parameters/0" }] } },
    "/null": { get: null },
  });
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["good"]);
  expect(printed.mock.calls).toEqual([
    [
      "catenary: openapi(): these operations are left out: " +
        "GET /bad/{id} (the path has {id}, and no parameter of that name); " +
        "POST /ref (the reference #/components/no leads nowhere); " +
        "POST /out (the reference other.yaml#/A leads out of the document); " +
        "POST /file (its body can only be sent as multipart/form-data, which is not supported); " +
        "GET /loop (the reference #/paths/~1loop/get/parameters/0 refers to itself)",
    ],
  ]);
  printed.mockRestore();
});

it.each<[object, string]>([
  [{}, "openapi(): `document` must be the path of a file, a URL or an object"],
  [{ document: "x", includ: [] }, "openapi() has no option `includ`; did you mean `include`?"],
  [{ document: "x", baseUrl: "shop" }, "openapi(): `baseUrl` must be a URL that begins with https:// or http://"],
  [{ document: "x", baseUrl: "https://a:s3cret@b" }, "without a user name or a query"],
  [{ document: "x", auth: { key: 1 } }, "openapi(): `auth` must be an object of strings"],
  [{ document: "x", timeoutMs: -1 }, "openapi(): `timeoutMs` must be a number of milliseconds above 0"],
])("refuses %j", (options, message) => {
  expect(() => openapi(options as OpenApiOptions)).toThrow(message);
});
