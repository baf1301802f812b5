// Requests with random bytes changed, removed or inserted. Each is refused or answered, nothing fails inside the server, and
// the next client is served.

import fc from "fast-check";
import { expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { StatelessClient, initialize } from "../../support/http/mcp-clients.ts";
import type { HttpPeer } from "../../support/http/http-peer.ts";
import { startServer, textOf } from "./fixture.ts";

/** Bytes with a meaning in HTTP heads, in JSON or in UTF-8. */
const BYTES = [
  "\r",
  "\n",
  "\r\n",
  "\0",
  " ",
  "\t",
  ":",
  ",",
  ";",
  '"',
  "{",
  "}",
  "\\",
  "%",
  "\xff",
  "\xc3",
  "0",
  "-",
  "é",
];

const edit = fc.record({
  /** The position, as a fraction of the length. */
  at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
  take: fc.constantFrom(0, 0, 1, 1, 2, 10),
  put: fc.oneof(fc.constantFrom(...BYTES), fc.constant(""), fc.string({ maxLength: 5 })),
});

function mutate(text: string, edits: readonly { at: number; take: number; put: string }[]): string {
  let result = text;
  for (const { at, take, put } of edits) {
    const place = Math.floor(at * result.length);
    result = result.slice(0, place) + put + result.slice(place + take);
  }
  return result;
}

function statelessCall(peer: HttpPeer): string {
  const params = { name: "echo", arguments: { text: "unchanged" } };
  const body = JSON.stringify(new StatelessClient(peer).build(1, "tools/call", params).body);
  const head = [
    "POST /mcp HTTP/1.1",
    `Host: ${peer.url.host}`,
    "Accept: application/json, text/event-stream",
    "Content-Type: application/json",
    `MCP-Protocol-Version: ${NEWEST.name}`,
    "Mcp-Method: tools/call",
    "Mcp-Name: echo",
    "Connection: close",
    `Content-Length: ${body.length}`,
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

function handshake(peer: HttpPeer): string {
  const body = JSON.stringify(initialize(NEWEST_SESSION.name));
  const head = [
    "POST /mcp HTTP/1.1",
    `Host: ${peer.url.host}`,
    "Content-Type: application/json",
    "Connection: close",
    "Transfer-Encoding: chunked",
  ];
  return `${head.join("\r\n")}\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
}

const GOOD = /^HTTP\/1\.1 (200|202|204|4\d\d) /;

it.each([
  ["of a stateless call", statelessCall],
  ["of a handshake in chunks", handshake],
])("mutated requests: %s are refused or answered", async (_title, build) => {
  const { peer } = await startServer();
  const valid = build(peer);
  expect(await peer.rawThenEnd(valid)).toMatch(/^HTTP\/1\.1 200 /);
  await fc.assert(
    fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 4 }), async (edits) => {
      const answer = await peer.rawThenEnd(mutate(valid, edits));
      // There is no answer to an incomplete or invalid request.
      if (answer !== "") expect(answer).toMatch(GOOD);
      expect(answer).not.toMatch(/internal error|\bat .+:\d+:\d+/i);
    }),
    { numRuns: 400 },
  );
  const next = await new StatelessClient(peer).request(1, "tools/call", {
    name: "echo",
    arguments: { text: "next" },
  });
  expect(textOf(next)).toBe("next");
});
