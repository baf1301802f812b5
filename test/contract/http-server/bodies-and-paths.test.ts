// What is checked before the message of a request: content type, Accept, body, path and HTTP method. Each violation has its
// own status.

import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { StatelessClient, initialize } from "../../support/http/mcp-clients.ts";
import type { HttpPeer } from "../../support/http/http-peer.ts";
import { startServer } from "./fixture.ts";

const INITIALIZE = initialize(NEWEST_SESSION.name);

/** The status of a handshake with these headers and the required ones. */
async function statusWith(peer: HttpPeer, ...headers: readonly string[]): Promise<number> {
  const body = JSON.stringify(INITIALIZE);
  const lines = ["POST /mcp HTTP/1.1", `Host: ${peer.url.host}`, "Connection: close", ...headers];
  const answer = await peer.raw(`${lines.join("\r\n")}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  return Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
}

it.each<[string | undefined, number]>([
  ["application/json", 200],
  ["application/json; charset=utf-8", 200],
  ["Application/JSON;charset=UTF-8", 200],
  ["text/plain", 415],
  ["text/plain; application/json", 415],
  ["application/x-www-form-urlencoded", 415],
  ["multipart/form-data; boundary=x", 415],
  ["application/jsonx", 415],
  ["application/json, text/plain", 415],
  ["text/json", 415],
  ["", 415],
  [undefined, 415],
])("bodies of type %j get %i", async (type, status) => {
  const { peer } = await startServer();
  expect(await statusWith(peer, ...(type === undefined ? [] : [`Content-Type: ${type}`]))).toBe(status);
});

it.each<[string | undefined, number]>([
  ["application/json, text/event-stream", 200],
  ["*/*", 200],
  [undefined, 200],
  ["application/*, text/*;q=0.5", 200],
  ["APPLICATION/JSON, Text/Event-Stream", 200],
  ["text/html", 406],
  ["image/png, text/html;q=0.9", 406],
])("bodies with Accept %j get %i", async (accept, status) => {
  const { peer } = await startServer();
  const accepts = accept === undefined ? [] : [`Accept: ${accept}`];
  expect(await statusWith(peer, "Content-Type: application/json", ...accepts)).toBe(status);
});

it("bodies that are not messages get an error with id null", async () => {
  const { peer } = await startServer();
  const deep = `${"[".repeat(200)}${"]".repeat(200)}`;
  const rows: [string, string | Buffer, number][] = [
    ["empty", "", -32700],
    ["not JSON", "{no json", -32700],
    ["truncated", JSON.stringify(INITIALIZE).slice(0, -5), -32700],
    ["not UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]), -32700],
    ["a string", '"x"', -32600],
    ["a number", "7", -32600],
    ["no method", '{"jsonrpc":"2.0","id":1}', -32600],
    ["nested too deep", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${deep}}}`, -32600],
  ];
  for (const [title, body, code] of rows) {
    const reply = await peer.post(body, { "content-type": "application/json" });
    expect([title, reply.status]).toEqual([title, 400]);
    const { id, error } = reply.json;
    expect([title, [code, -32600, -32700].includes(error?.code as number)]).toEqual([title, true]);
    if (code === -32700) expect([title, id ?? null, error.code]).toEqual([title, null, code]);
  }
});

it("bodies that are compressed are refused, since their size is unknown", async () => {
  const { peer } = await startServer();
  const compressed = await peer.post(gzipSync(JSON.stringify(INITIALIZE)), { "content-encoding": "gzip" });
  expect(compressed.status).toBe(415);
  expect((await peer.post(INITIALIZE, { "content-encoding": "identity" })).status).toBe(200);
});

it("bodies may begin with a BOM", async () => {
  const { peer } = await startServer();
  expect((await peer.post(`\ufeff${JSON.stringify(INITIALIZE)}`)).status).toBe(200);
});

it.each([
  "/",
  "//mcp",
  "/mcp//",
  "/MCP",
  "/mcp%2f",
  "/%6dcp",
  "/mcp;x",
  "/mcp/x",
  "/x/mcp",
  "/mcp/../mcp",
  "/x/sse",
  "/.well-known/x",
])("paths and methods: %s is not found", async (path) => {
  const { peer } = await startServer();
  expect((await peer.post(INITIALIZE, {}, path)).status).toBe(404);
  expect((await peer.get({}, path)).status).toBe(404);
});

it("paths and methods may end with a slash, whatever the configured path does", async () => {
  for (const path of ["/mcp", "/mcp/", "/", "/a/b/"]) {
    const { peer } = await startServer({ http: { path } });
    const bare = path.replace(/\/$/, "");
    for (const spelling of [`${bare}/`, bare]) {
      if (spelling !== "") expect((await peer.post(INITIALIZE, {}, spelling)).status).toBe(200);
    }
  }
});

it("paths and methods may have a query", async () => {
  const { peer } = await startServer();
  expect((await peer.post(INITIALIZE, {}, "/mcp?x=1")).status).toBe(200);
});

it.each(["PUT", "PATCH", "HEAD", "PROPFIND"])("paths and methods: %s is not allowed", async (method) => {
  const { peer } = await startServer();
  const reply = await peer.send({ method });
  expect(reply.status).toBe(405);
  for (const known of ["POST", "GET", "DELETE"]) expect(reply.headers["allow"]).toContain(known);
});

it("paths and methods may be configured", async () => {
  const { peer, front } = await startServer({ http: { path: "/api/tools" } });
  expect(new URL(front.url ?? "").pathname).toBe("/api/tools");
  const listed = await new StatelessClient(peer).request(1, "tools/list");
  expect(listed).toMatchObject({ result: { resultType: "complete" } });
  expect((await peer.post(INITIALIZE, {}, "/mcp")).status).toBe(404);
  expect(
    (await peer.send({ method: "GET", path: "/mcp", headers: { "mcp-protocol-version": NEWEST.name } })).status,
  ).toBe(404);
});

it("an error after the body was read has the id of the request", async () => {
  const { peer } = await startServer();
  const reply = await peer.post({ jsonrpc: "2.0", id: "mine", method: "tools/list" });
  expect([reply.status, reply.json["id"]]).toEqual([400, "mine"]);
});
