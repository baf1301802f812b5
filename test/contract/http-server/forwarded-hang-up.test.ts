// context.hangUp() in a server behind another server: the inner server ends the stream of the call with a retry delay, and
// the outer server does the same for its client.

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

it("context.hangUp() is forwarded to a client over HTTP, which resumes the stream", async () => {
  let release = (): void => undefined;
  const server = createServer({ name: "inner", version: "1" }).tool("hang-up", {}, async (_args, context) => {
    context.hangUp(60);
    await new Promise<void>((resolve) => (release = resolve));
    return "done";
  });
  const inner = await serve(server, { http: { port: 0 } });
  closing.push(() => inner.close());
  const connection = await connect(inner.url, { revision: NEWEST_SESSION.name });
  closing.push(() => connection.close());
  const outer = await serve(connection.handler, { http: { port: 0 } });
  closing.push(() => outer.close());
  const peer = new HttpPeer(outer.url);
  const client = await SessionClient.open(peer, NEWEST_SESSION.name);
  const reply = await client.call(1, "hang-up");
  expect(await reply.ended).toBe("complete");
  expect(reply.messages).toEqual([]);
  expect(reply.events.map(({ retry }) => retry)).toContain("60");
  const rest = await client.resume(reply.lastEventId);
  release();
  expect(await rest.untilMessage(({ result }) => result !== undefined)).toMatchObject({
    result: { content: [{ type: "text", text: "done" }] },
  });
});
