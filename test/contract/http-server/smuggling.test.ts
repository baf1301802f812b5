// Ambiguous requests, which two HTTP parsers may read differently: they are refused, and no part of them is taken for a
// second request. They are written as bytes, because no client library would send them.

import { expect, it } from "vitest";
import { NEWEST } from "../../../src/protocol/revisions/index.ts";
import { StatelessClient } from "../../support/http/mcp-clients.ts";
import { startServer } from "./fixture.ts";

interface Row {
  readonly title: string;
  /** HOST, LENGTH and BODY are replaced by the correct values. */
  readonly text: readonly string[];
  /** Whether the request is valid; by default it must be refused. */
  readonly allowed?: boolean;
}

const MIRROR = [`MCP-Protocol-Version: ${NEWEST.name}`, "Mcp-Method: tools/call"];
const TYPE = "Content-Type: application/json";
const PLAIN = ["POST /mcp HTTP/1.1", "Host: HOST", TYPE, ...MIRROR];
const NAME = "Mcp-Name: hold";

const ROWS: readonly Row[] = [
  { title: "a valid request", text: [...PLAIN, NAME, "Content-Length: LENGTH", "", "BODY"], allowed: true },
  { title: "two hosts", text: [...PLAIN, "Host: evil.example.com", NAME, "Content-Length: LENGTH", "", "BODY"] },
  { title: "the same host twice", text: [...PLAIN, "Host: HOST", NAME, "Content-Length: LENGTH", "", "BODY"] },
  { title: "no host", text: ["POST /mcp HTTP/1.1", TYPE, ...MIRROR, NAME, "Content-Length: LENGTH", "", "BODY"] },
  {
    title: "two origins",
    text: [
      ...PLAIN,
      "Origin: http://HOST",
      "Origin: http://evil.example.com",
      NAME,
      "Content-Length: LENGTH",
      "",
      "BODY",
    ],
  },
  {
    title: "two content types",
    text: [...PLAIN, "Content-Type: text/plain", NAME, "Content-Length: LENGTH", "", "BODY"],
  },
  {
    title: "a length and chunks",
    text: [...PLAIN, NAME, "Content-Length: LENGTH", "Transfer-Encoding: chunked", "", "0", "", "BODY"],
  },
  {
    title: "chunks and a length",
    text: [...PLAIN, NAME, "Transfer-Encoding: chunked", "Content-Length: 4", "", "0", "", "BODY"],
  },
  { title: "two lengths", text: [...PLAIN, NAME, "Content-Length: LENGTH", "Content-Length: 0", "", "BODY"] },
  { title: "lengths in one line", text: [...PLAIN, NAME, "Content-Length: LENGTH, 0", "", "BODY"] },
  { title: "a length with a sign", text: [...PLAIN, NAME, "Content-Length: +LENGTH", "", "BODY"] },
  { title: "a negative length", text: [...PLAIN, NAME, "Content-Length: -1", "", "BODY"] },
  { title: "an unknown transfer encoding", text: [...PLAIN, NAME, "Transfer-Encoding: xchunked", "", "BODY"] },
  { title: "chunks of chunks", text: [...PLAIN, NAME, "Transfer-Encoding: chunked, chunked", "", "0", "", ""] },
  {
    title: "a chunk without a size",
    text: [...PLAIN, NAME, "Transfer-Encoding: chunked", "", "zz", "BODY", "0", "", ""],
  },
  { title: "a space before the colon", text: [...PLAIN, "Mcp-Name : hold", "Content-Length: LENGTH", "", "BODY"] },
  { title: "a folded name", text: [...PLAIN, "Mcp-Name: echo", " hold", "Content-Length: LENGTH", "", "BODY"] },
  {
    title: "a carriage return in a value",
    text: [...PLAIN, "Mcp-Name: hold\rX: y", "Content-Length: LENGTH", "", "BODY"],
  },
  { title: "a zero byte in a value", text: [...PLAIN, "Mcp-Name: hold\0", "Content-Length: LENGTH", "", "BODY"] },
  { title: "an invalid header name", text: [...PLAIN, NAME, "X(y): z", "Content-Length: LENGTH", "", "BODY"] },
  {
    title: "another server in the request line",
    text: [
      "POST http://evil.example.com/mcp HTTP/1.1",
      "Host: HOST",
      TYPE,
      ...MIRROR,
      NAME,
      "Content-Length: LENGTH",
      "",
      "BODY",
    ],
  },
  {
    title: "a path without a slash",
    text: ["POST mcp HTTP/1.1", "Host: HOST", TYPE, ...MIRROR, NAME, "Content-Length: LENGTH", "", "BODY"],
  },
  {
    title: "a request line without a version",
    text: ["POST /mcp", "Host: HOST", TYPE, ...MIRROR, NAME, "Content-Length: LENGTH", "", "BODY"],
  },
  {
    title: "an unknown version",
    text: ["POST /mcp HTTP/3.7", "Host: HOST", TYPE, ...MIRROR, NAME, "Content-Length: LENGTH", "", "BODY"],
  },
  { title: "CONNECT", text: ["CONNECT evil.example.com:443 HTTP/1.1", "Host: HOST", "", ""] },
  {
    title: "an upgrade",
    text: [
      "GET /mcp HTTP/1.1",
      "Host: HOST",
      "Connection: Upgrade, close",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
      "",
      "",
    ],
  },
];

it.each(ROWS)("an ambiguous request: $title", async ({ text, allowed = false }) => {
  const { fixture, peer } = await startServer();
  const { body } = new StatelessClient(peer).build(1, "tools/call", { name: "hold", arguments: { key: "k" } });
  const complete = JSON.stringify(body);
  // The first request closes the connection; a smuggled one would not.
  const lines = text.flatMap((line) =>
    line.startsWith("Content-Length: LENGTH") ? [line, "Connection: close"] : [line],
  );
  const bytes = lines
    .join("\r\n")
    .replaceAll("HOST", peer.url.host)
    .replaceAll("LENGTH", String(complete.length))
    .replaceAll("BODY", complete);
  if (allowed) {
    const answer = peer.raw(bytes);
    await fixture.holding("k");
    fixture.release("k");
    expect(await answer).toMatch(/^HTTP\/1\.1 200/);
    return;
  }
  // A broken request line ends a parser that waits for more bytes.
  const answer = await peer.raw(bytes, "\r\n\r\n\0\r\n\r\n");
  expect(answer === "" || /^HTTP\/1\.1 4\d\d/.test(answer)).toBe(true);
  expect(fixture.runs.size).toBe(0);
  expect(answer).not.toContain("released");
});

it("an ambiguous request in a body is not taken for the next request", async () => {
  const { fixture, peer } = await startServer();
  const client = new StatelessClient(peer);
  const hidden = JSON.stringify(client.build(1, "tools/call", { name: "hold", arguments: { key: "hidden" } }).body);
  const inner = [
    "POST /mcp HTTP/1.1",
    `Host: ${peer.url.host}`,
    TYPE,
    ...MIRROR,
    NAME,
    `Content-Length: ${hidden.length}`,
    "",
    hidden,
  ].join("\r\n");
  const outer = JSON.stringify(client.build(2, "tools/call", { name: "echo", arguments: { text: inner } }).body);
  const head = ["POST /mcp HTTP/1.1", `Host: ${peer.url.host}`, TYPE, ...MIRROR, "Mcp-Name: echo", "Connection: close"];
  const answer = await peer.raw(`${head.join("\r\n")}\r\nContent-Length: ${outer.length}\r\n\r\n${outer}`);
  expect(answer).toMatch(/^HTTP\/1\.1 200/);
  expect(fixture.runs.size).toBe(0);
});

it("an ambiguous request does not include two pipelined requests, which are answered in order", async () => {
  const { peer } = await startServer();
  const client = new StatelessClient(peer);
  const bytes = ["one", "two"].map((text, n) => {
    const body = JSON.stringify(client.build(n, "tools/call", { name: "echo", arguments: { text } }).body);
    const last = n === 1 ? ["Connection: close"] : [];
    const head = ["POST /mcp HTTP/1.1", `Host: ${peer.url.host}`, TYPE, ...MIRROR, "Mcp-Name: echo", ...last];
    return `${head.join("\r\n")}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  });
  const answer = await peer.raw(bytes.join(""));
  expect(answer.match(/HTTP\/1\.1 200/g)).toHaveLength(2);
  expect(answer.indexOf('"one"')).toBeGreaterThan(0);
  expect(answer.indexOf('"two"')).toBeGreaterThan(answer.indexOf('"one"'));
});

it("an ambiguous request cannot inject headers into the response", async () => {
  const { peer } = await startServer();
  for (const name of ["mcp-session-id", "last-event-id", "mcp-protocol-version", "mcp-method"]) {
    const reply = await peer.post({ jsonrpc: "2.0", id: 1, method: "ping" }, { [name]: "canary%0d%0aX-Evil: 1" });
    expect(JSON.stringify(reply.headers)).not.toContain("canary");
    expect(reply.status).toBeGreaterThanOrEqual(400);
  }
});
