// The headers of stateless requests, and which error is reported first (2026-07-28, basic/transports/streamable-http,
// "Server Validation"). Proxies read only the headers, so a header that contradicts the body is refused.

import { expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { StatelessClient } from "../../support/http/mcp-clients.ts";
import type { Json, SentHeaders } from "../../support/http/http-peer.ts";
import { statelessMeta } from "../../support/dialogue/raw-peer.ts";
import { startServer } from "./fixture.ts";

const MISMATCH = -32020;
const ECHO = { name: "echo", arguments: { text: "x" } };
const base64 = (text: string): string => `=?base64?${Buffer.from(text).toString("base64")}?=`;

interface Row {
  readonly title: string;
  readonly method?: string;
  readonly params?: Json;
  /** Replace the headers that repeat the body; undefined removes one. */
  readonly headers: SentHeaders;
  readonly status: number;
  readonly code?: number;
}

const REFUSED = { status: 400, code: MISMATCH } as const;
const NOTE = { method: "resources/read", params: { uri: "note://one" } } as const;

const ROWS: readonly Row[] = [
  { title: "correct headers", headers: {}, status: 200 },
  { title: "no version", headers: { "mcp-protocol-version": undefined }, ...REFUSED },
  { title: "an empty version", headers: { "mcp-protocol-version": "" }, ...REFUSED },
  { title: "another version than the body", headers: { "mcp-protocol-version": NEWEST_SESSION.name }, ...REFUSED },
  { title: "an unknown version in the header only", headers: { "mcp-protocol-version": "v999" }, ...REFUSED },
  { title: "the version twice", headers: { "mcp-protocol-version": [NEWEST.name, NEWEST.name] }, ...REFUSED },
  { title: "spaces around the version", headers: { "mcp-protocol-version": `  ${NEWEST.name} ` }, status: 200 },
  { title: "no method", headers: { "mcp-method": undefined }, ...REFUSED },
  { title: "an empty method", headers: { "mcp-method": "" }, ...REFUSED },
  { title: "another method", headers: { "mcp-method": "tools/list" }, ...REFUSED },
  { title: "the method in other case", headers: { "mcp-method": "Tools/Call" }, ...REFUSED },
  { title: "the method twice", headers: { "mcp-method": ["tools/call", "tools/call"] }, ...REFUSED },
  { title: "two methods in one header", headers: { "mcp-method": "tools/call, tools/list" }, ...REFUSED },
  { title: "spaces around the method", headers: { "mcp-method": "  tools/call \t" }, status: 200 },
  { title: "a method in base64", headers: { "mcp-method": base64("tools/call") }, ...REFUSED },
  { title: "no name", headers: { "mcp-name": undefined }, ...REFUSED },
  { title: "an empty name", headers: { "mcp-name": "" }, ...REFUSED },
  { title: "another name", headers: { "mcp-name": "hold" }, ...REFUSED },
  { title: "the name in other case", headers: { "mcp-name": "Echo" }, ...REFUSED },
  { title: "a name with the same prefix", headers: { "mcp-name": "echo2" }, ...REFUSED },
  { title: "the name twice", headers: { "mcp-name": ["echo", "echo"] }, ...REFUSED },
  { title: "two names", headers: { "mcp-name": ["echo", "hold"] }, ...REFUSED },
  { title: "spaces around the name", headers: { "mcp-name": " echo  " }, status: 200 },
  { title: "the name in base64", headers: { "mcp-name": base64("echo") }, status: 200 },
  { title: "another name in base64", headers: { "mcp-name": base64("hold") }, ...REFUSED },
  { title: "a name in base64 with a space in it", headers: { "mcp-name": base64(" echo") }, ...REFUSED },
  { title: "invalid base64", headers: { "mcp-name": "=?base64?ec*o?=" }, ...REFUSED },
  { title: "base64 without its padding", headers: { "mcp-name": "=?base64?ZWNobw?=" }, ...REFUSED },
  { title: "base64 of invalid UTF-8", headers: { "mcp-name": "=?base64?/w==?=" }, ...REFUSED },
  { title: "base64 of an empty string", headers: { "mcp-name": "=?base64??=" }, ...REFUSED },
  { title: "the base64 prefix in capitals", headers: { "mcp-name": "=?BASE64?ZWNobw==?=" }, ...REFUSED },
  { title: "base64 without its suffix", headers: { "mcp-name": "=?base64?ZWNobw==" }, ...REFUSED },
  { title: "header names in other case", headers: { "mcp-name": undefined, "MCP-NAME": "echo" }, status: 200 },
  { title: "a resource by its URI", ...NOTE, headers: {}, status: 200 },
  { title: "a resource by another URI", ...NOTE, headers: { "mcp-name": "note://two" }, ...REFUSED },
  { title: "a resource without a name", ...NOTE, headers: { "mcp-name": undefined }, ...REFUSED },
  {
    title: "a non-ASCII URI in base64",
    method: "resources/read",
    params: { uri: "note://day/ä" },
    headers: { "mcp-name": base64("note://day/ä") },
    status: 200,
  },
  {
    title: "a non-ASCII URI, not encoded",
    method: "resources/read",
    params: { uri: "note://day/ä" },
    headers: { "mcp-name": "note://day/ä" },
    ...REFUSED,
  },
  {
    title: "a name that looks like base64, encoded",
    params: { name: "=?base64?literal?=" },
    headers: { "mcp-name": base64("=?base64?literal?=") },
    status: 200,
    code: -32602,
  },
  {
    title: "a prompt by another name",
    method: "prompts/get",
    params: { name: "greet", arguments: { author: "A" } },
    headers: { "mcp-name": "other" },
    ...REFUSED,
  },
  { title: "a list without a name", method: "tools/list", params: {}, headers: {}, status: 200 },
  {
    title: "a list with a name",
    method: "tools/list",
    params: {},
    headers: { "mcp-name": "echo" },
    status: 200,
  },
  { title: "a parameter that the tool does not declare", headers: { "mcp-param-text": "something else" }, status: 200 },
];

it.each(ROWS)(
  "headers of a stateless request: $title: $status",
  async ({ method = "tools/call", params = ECHO, headers, status, code }) => {
    const { peer } = await startServer();
    const client = new StatelessClient(peer);
    const request = client.build(7, method, params);
    const sent = Object.fromEntries(
      Object.entries({ ...request.headers, ...headers }).filter(([, value]) => value !== undefined),
    );
    const reply = await peer.post(request.body, sent);
    expect([reply.status, reply.json["error"]?.code]).toEqual([status, code]);
    expect(reply.json["id"]).toBe(7);
    if (code === MISMATCH) {
      const [header] = Object.keys(headers);
      expect(reply.json["error"].message.toLowerCase()).toContain(header?.toLowerCase());
    }
  },
);

it("headers of a stateless request prevent the call if they contradict the body", async () => {
  const { fixture, peer } = await startServer();
  const client = new StatelessClient(peer);
  await client.post(1, "tools/call", { name: "hold", arguments: { key: "k" } }, { "mcp-name": "echo" });
  await client.post(2, "tools/call", { name: "hold", arguments: { key: "k" } }, { "mcp-method": "tools/list" });
  expect(fixture.runs.size).toBe(0);
});

/** Requests with two errors, and the one that is reported. */
const ORDER: readonly { title: string; body: Json; headers: SentHeaders; status: number; code: number }[] = [
  {
    title: "missing `_meta` before a wrong method header",
    body: { method: "no/such", params: {} },
    headers: { "mcp-protocol-version": NEWEST.name, "mcp-method": "other" },
    status: 400,
    code: -32602,
  },
  {
    title: "missing capabilities before an unsupported version",
    body: { method: "tools/list", params: { _meta: { "io.modelcontextprotocol/protocolVersion": "v999" } } },
    headers: { "mcp-protocol-version": "v999", "mcp-method": "tools/list" },
    status: 400,
    code: -32602,
  },
  {
    title: "a wrong header before an unsupported version",
    body: { method: "tools/list", params: { _meta: statelessMeta("v999") } },
    headers: { "mcp-protocol-version": NEWEST.name, "mcp-method": "tools/list" },
    status: 400,
    code: MISMATCH,
  },
  {
    title: "a wrong header before an unknown method",
    body: { method: "no/such", params: { _meta: statelessMeta(NEWEST.name) } },
    headers: { "mcp-protocol-version": NEWEST.name, "mcp-method": "tools/list" },
    status: 400,
    code: MISMATCH,
  },
  {
    title: "an unsupported version before an unknown method",
    body: { method: "no/such", params: { _meta: statelessMeta("v999") } },
    headers: { "mcp-protocol-version": "v999", "mcp-method": "no/such" },
    status: 400,
    code: -32022,
  },
  {
    title: "an unknown method last",
    body: { method: "no/such", params: { _meta: statelessMeta(NEWEST.name) } },
    headers: { "mcp-protocol-version": NEWEST.name, "mcp-method": "no/such" },
    status: 404,
    code: -32601,
  },
];

it.each(ORDER)("several errors at once reports $title", async ({ body, headers, status, code }) => {
  const { peer } = await startServer();
  const reply = await peer.post({ jsonrpc: "2.0", id: "x", ...body }, headers);
  expect([reply.status, reply.json["error"]?.code, reply.json["id"]]).toEqual([status, code, "x"]);
});

it("several errors at once lists the supported revisions if the requested one is unknown", async () => {
  const { peer } = await startServer();
  const body = { jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: statelessMeta("v999") } };
  const { json } = await peer.post(body, { "mcp-protocol-version": "v999", "mcp-method": "tools/list" });
  const { supported, requested } = json["error"].data as { supported: string[]; requested: string };
  expect(requested).toBe("v999");
  const discovered = await new StatelessClient(peer).request(2, "server/discover");
  for (const name of supported) expect(discovered["result"].supportedVersions).toContain(name);
  expect(supported).toContain(NEWEST.name);
});

it.each(["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list"])(
  "several errors at once reports the unknown method %s with 404",
  async (method) => {
    const { peer } = await startServer();
    const reply = await new StatelessClient(peer).post(
      3,
      method,
      { uri: "note://one", level: "info" },
      { "mcp-name": "x" },
    );
    expect([reply.status, reply.json["error"]?.code, reply.json["id"]]).toEqual([404, -32601, 3]);
    expect(reply.headers["mcp-session-id"]).toBeUndefined();
  },
);
