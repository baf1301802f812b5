// Requests with bytes flipped, taken out, doubled or put in at random, as no client would send them: whatever comes,
// it is refused or answered like any other, nothing fails inside, and the next caller is served.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { StatelessClient, initialize } from "../../support/http/mcp-clients.ts";
import type { HttpPeer } from "../../support/http/http-peer.ts";
import { startServer, textOf } from "./fixture.ts";

/** What a byte may become: those that mean something to a reader of heads, of JSON, or of text. */
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
  /** Where, as a part of the whole. */
  at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
  take: fc.constantFrom(0, 0, 1, 1, 2, 10),
  put: fc.oneof(fc.constantFrom(...BYTES), fc.constant(""), fc.string({ maxLength: 5 })),
});

function spoiled(text: string, edits: readonly { at: number; take: number; put: string }[]): string {
  let result = text;
  for (const { at, take, put } of edits) {
    const place = Math.floor(at * result.length);
    result = result.slice(0, place) + put + result.slice(place + take);
  }
  return result;
}

function exchange(peer: HttpPeer): string {
  const params = { name: "echo", arguments: { text: "unspoiled" } };
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

describe("spoiled requests", () => {
  it.each([
    ["of an exchange", exchange],
    ["of a handshake in chunks", handshake],
  ])("%s are refused, or answered like any other", async (_title, made) => {
    const { peer } = await startServer();
    const whole = made(peer);
    expect(await peer.rawThenEnd(whole)).toMatch(/^HTTP\/1\.1 200 /);
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 4 }), async (edits) => {
        const answer = await peer.rawThenEnd(spoiled(whole, edits));
        // Nothing at all where what came was no request, or only the beginning of one.
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
});
