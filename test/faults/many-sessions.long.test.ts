// A thousand sessions with their streams and a thousand listens at one server, in processes of their own: all are
// open, each hears each change exactly once, the memory for each is bounded, and the one too many is told so.
// How long anything takes is not asserted here; `npm run load` shows it, with ten times as many.

import { afterAll, beforeAll, expect, it } from "vitest";
import { MeasuredChild } from "../../bench/child.ts";
import { Crowd } from "../../bench/crowd.ts";

const SIZE = 1_000;
/** Generous: what is promised for ten thousand in 1 GiB is half of it. */
const MOST_KB_EACH = 200;

let server: MeasuredChild;
let crowd: Crowd;
beforeAll(async () => {
  server = await MeasuredChild.start("load-server.js");
  crowd = new Crowd(server.url, 2);
});
afterAll(async () => {
  await crowd?.leave();
  await server?.end();
});

it("holds a thousand of each, and tells each once", { timeout: 120_000 }, async () => {
  // What the code itself takes when it first runs is not counted.
  await crowd.open({ sessions: 50, streams: 50, listens: 50 });
  const before = await server.costs();
  await crowd.open({ sessions: SIZE, streams: SIZE, listens: SIZE });
  const after = await server.costs();
  expect(((after.rssMb - before.rssMb) * 1024) / SIZE).toBeLessThan(MOST_KB_EACH);

  const announce = async (): Promise<void> => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const answer = await fetch(server.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "announce",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "announce", _meta } }),
    });
    expect(answer.status).toBe(200);
    await answer.text();
  };
  for (const times of [1, 2, 3]) {
    await announce();
    await crowd.heard(times);
  }
  expect(await crowd.counts()).toEqual({ streams: 2 * (SIZE + 50), hungUp: 0, least: 3, most: 3 });
});
