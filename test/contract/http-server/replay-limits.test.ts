// When a broken stream can no longer be resumed: after its answer, after its cancellation, and beyond the limits of the
// replay log. The status tells the client which, so that it stops trying.

import { expect, it } from "vitest";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { SessionClient } from "../../support/http/mcp-clients.ts";
import type { Json } from "../../support/http/http-peer.ts";
import { startServer, startLimited } from "./fixture.ts";
import { startCall, received, STEPS, allAfter } from "./stepped-call.ts";

const LATEST = NEWEST_SESSION.name;

it("a broken stream is finished after its answer: 204, so that the client stops", async () => {
  const started = await startServer();
  const client = await SessionClient.open(started.peer, LATEST);
  const { reply, go } = await startCall(started, client, "k", 1);
  go(STEPS);
  await reply.ended;
  const rest = await client.resume(reply.lastEventId);
  expect([rest.status, rest.text]).toEqual([204, ""]);
  expect((await client.resume(reply.events[0]?.id)).status).toBe(200);
});

it("a broken stream is finished after its call was cancelled: 204, so that the client stops", async () => {
  const started = await startServer();
  const client = await SessionClient.open(started.peer, LATEST);
  const { reply } = await startCall(started, client, "k", 2);
  await client.post({ method: "notifications/cancelled", params: { requestId: "k" } });
  await reply.ended;
  expect((await client.resume(reply.lastEventId)).status).toBe(204);
  // A call that is cancelled before the first event has no event id.
  const silent = client.call("early", "hold", { key: "early" });
  await started.fixture.holding("early");
  await client.post({ method: "notifications/cancelled", params: { requestId: "early" } });
  const early = await silent;
  await early.ended;
  expect(early.lastEventId).toBeUndefined();
});

it("a broken stream is kept up to replayEvents: a client that misses events gets 400, or the answer", async () => {
  const started = await startLimited({ replayEvents: 5 });
  const client = await SessionClient.open(started.peer, LATEST);
  const { reply, go } = await startCall(started, client, "k", 1);
  reply.hangUp();
  await reply.ended;
  go(STEPS);
  const rest = await client.resume(reply.lastEventId);
  await rest.ended;
  // Never a part that looks complete; and not 404, which would mean that the session has ended.
  if (rest.status === 200) expect(received(rest).at(-1)).toBe("answer");
  else expect(rest.status).toBe(400);
  expect(rest.messages.length).toBeLessThanOrEqual(5);
  expect(await client.request("ping")).toMatchObject({ result: {} });
});

it("a broken stream is kept up to replayBytes over all sessions, and other sessions keep their events", async () => {
  const started = await startServer({ http: { limits: { replayBytes: 64 * 1024 } } });
  const large = await SessionClient.open(started.peer, LATEST);
  const call = large.call("large", "hold", { key: "large" });
  const context = await started.fixture.holding("large");
  context.progress(1);
  const reply = await call;
  await reply.until(({ message }) => message !== undefined);
  reply.hangUp();
  await reply.ended;
  for (let step = 2; step < 50; step += 1) context.progress(step, 50, "x".repeat(8 * 1024));
  started.fixture.release("large");
  const rest = await large.resume(reply.lastEventId);
  await rest.ended;
  expect(rest.text.length).toBeLessThan(2 * 64 * 1024);
  const other = await SessionClient.open(started.peer, LATEST);
  const { reply: small, go } = await startCall(started, other, "other", 1);
  small.hangUp();
  go(STEPS);
  const kept = await other.resume(small.lastEventId);
  await kept.ended;
  expect(received(kept)).toEqual(allAfter(1));
});

it("a broken stream of GET is resumed too, with the messages in between", async () => {
  const started = await startServer();
  const client = await SessionClient.open(started.peer, LATEST);
  await started.fixture.subscribed(0);
  await client.request("resources/subscribe", { uri: "note://one" });
  let stream = await client.listen();
  const seen: Json[] = [];
  for (let n = 0; n < 6; n += 1) {
    started.fixture.server.resourceUpdated("note://one");
    await stream.until(({ message }) => message !== undefined);
    const { lastEventId } = stream;
    stream.hangUp();
    await stream.ended;
    seen.push(...stream.messages);
    started.fixture.server.resourceUpdated("note://one");
    stream = await client.resume(lastEventId);
    await stream.until(({ message }) => message !== undefined);
    const next = stream.lastEventId;
    stream.hangUp();
    await stream.ended;
    seen.push(...stream.messages);
    stream = await client.resume(next);
  }
  expect(seen).toHaveLength(12);
});

it("an answer to a broken stream is kept, however many others were delivered since", async () => {
  const { fixture, peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  const reply = client.call("kept", "hold", { key: "kept" });
  const context = await fixture.holding("kept");
  context.hangUp(10);
  const broken = await reply;
  await broken.ended;
  fixture.release("kept", "at last");
  for (let count = 0; count < 60; count += 1) await (await client.call(count, "count", { to: 2 })).answerTo(count);
  const rest = await client.resume(broken.lastEventId);
  expect(JSON.stringify(await rest.answerTo("kept"))).toContain("at last");
});
