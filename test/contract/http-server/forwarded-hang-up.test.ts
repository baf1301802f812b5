// A tool behind a bridge hangs up: the end ends the stream of its call and says when to come again, and so does the
// bridge toward a caller whose own wire can do that.

import { afterEach, expect, it } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { createServer } from "../../../src/server/index.ts";
import { serve } from "../../../src/serve.ts";
import { SessionClient } from "../../support/http/mcp-clients.ts";
import { HttpPeer } from "../../support/http/http-peer.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

it("is passed on from an end over HTTP to a caller over HTTP, who comes back for the rest", async () => {
  let release = (): void => undefined;
  const server = createServer({ name: "end", version: "1" }).tool("leave", {}, async (_args, context) => {
    context.hangUp(60);
    await new Promise<void>((resolve) => (release = resolve));
    return "here I am";
  });
  const end = await serve(server, { http: { port: 0 } });
  closing.push(() => end.close());
  const inner = await connect(end.url, { revision: NEWEST_SESSION.name });
  closing.push(() => inner.close());
  const bridge = await serve(inner.handler, { http: { port: 0 } });
  closing.push(() => bridge.close());
  const peer = new HttpPeer(bridge.url);
  const client = await SessionClient.open(peer, NEWEST_SESSION.name);
  const reply = await client.call(1, "leave");
  expect(await reply.ended).toBe("complete");
  expect(reply.messages).toEqual([]);
  expect(reply.events.map(({ retry }) => retry)).toContain("60");
  const rest = await client.resume(reply.lastEventId);
  release();
  expect(await rest.untilMessage(({ result }) => result !== undefined)).toMatchObject({
    result: { content: [{ type: "text", text: "here I am" }] },
  });
});
