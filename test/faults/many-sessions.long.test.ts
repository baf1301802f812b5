// A thousand sessions with streams and a thousand subscriptions on one server, from other processes: all are open, each
// receives each change exactly once, and the memory for each is bounded. Times are not checked; `npm run load` prints
// them for ten times as many.

import { afterAll, beforeAll, expect, it } from "vitest";
import { ManyCallers } from "../../bench/many-callers.ts";
import { MeasuredServer } from "../../bench/measured-server.ts";

const SIZE = 1_000;
/** Twice what `npm run load` allows for ten thousand. */
const MAX_KB_EACH = 200;

let server: MeasuredServer;
let callers: ManyCallers;
beforeAll(async () => {
  server = await MeasuredServer.start("many-callers-server.js");
  callers = new ManyCallers(server.url, 2);
});
afterAll(async () => {
  await callers?.stop();
  await server?.stop();
});

it("holds a thousand of each, and notifies each once", async () => {
  // Warms up, so that memory of the first run is not counted.
  await callers.open({ sessions: 50, streams: 50, subscriptions: 50 });
  const before = await server.cost();
  await callers.open({ sessions: SIZE, streams: SIZE, subscriptions: SIZE });
  const after = await server.cost();
  expect(((after.rssMb - before.rssMb) * 1024) / SIZE).toBeLessThan(MAX_KB_EACH);

  const announce = async (): Promise<void> => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const response = await fetch(server.url, {
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
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ result: { content: [{ text: "announced" }] } });
  };
  for (const times of [1, 2, 3]) {
    await announce();
    await callers.untilReceived(times);
  }
  expect(await callers.counts()).toEqual({ streams: 2 * (SIZE + 50), ended: 0, min: 3, max: 3 });
});
