// Where the way back to a broken stream ends: at its answer, at its cancellation, and at the bounds of what is kept.
// A caller must see which of them it is, because its client comes back until it does.

import { describe, expect, it } from "vitest";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { SessionClient } from "../../support/http/mcp-clients.ts";
import type { Json } from "../../support/http/http-peer.ts";
import { startServer } from "./fixture.ts";
import { startCall, received, STEPS, allAfter } from "./stepped-call.ts";

const LATEST = NEWEST_SESSION.name;

describe("a broken stream", () => {
  it("is over when its answer was seen: 204, which tells a caller to come no more", async () => {
    const started = await startServer();
    const client = await SessionClient.open(started.peer, LATEST);
    const { reply, go } = await startCall(started, client, "k", 1);
    go(STEPS);
    await reply.ended;
    const rest = await client.resume(reply.lastEventId);
    expect([rest.status, rest.text]).toEqual([204, ""]);
    expect((await client.resume(reply.events[0]?.id)).status).toBe(200);
  });

  it("is over when its call was cancelled: a caller who comes back is told to come no more", async () => {
    const started = await startServer();
    const client = await SessionClient.open(started.peer, LATEST);
    const { reply } = await startCall(started, client, "k", 2);
    await client.post({ method: "notifications/cancelled", params: { requestId: "k" } });
    await reply.ended;
    expect((await client.resume(reply.lastEventId)).status).toBe(204);
    // One that was cancelled before anything was sent gave no id to come back with.
    const silent = client.call("early", "hold", { key: "early" });
    await started.fixture.holding("early");
    await client.post({ method: "notifications/cancelled", params: { requestId: "early" } });
    const early = await silent;
    await early.ended;
    expect(early.lastEventId).toBeUndefined();
  });

  it("is kept within bounds: who comes too late for some of it is told so, or still gets the answer", async () => {
    const started = await startServer({ http: { limits: { replayEvents: 5 } } });
    const client = await SessionClient.open(started.peer, LATEST);
    const { reply, go } = await startCall(started, client, "k", 1);
    reply.hangUp();
    await reply.ended;
    go(STEPS);
    const rest = await client.resume(reply.lastEventId);
    await rest.ended;
    // Never a part of it that looks like the whole; and not 404, which would say that the session is over.
    if (rest.status === 200) expect(received(rest).at(-1)).toBe("answer");
    else expect(rest.status).toBe(400);
    expect(rest.messages.length).toBeLessThanOrEqual(5);
    expect(await client.request("ping")).toMatchObject({ result: {} });
  });

  it("is kept within bytes over all sessions, and a session that took no part keeps its own", async () => {
    const started = await startServer({ http: { limits: { replayBytes: 64 * 1024 } } });
    const loud = await SessionClient.open(started.peer, LATEST);
    const call = loud.call("loud", "hold", { key: "loud" });
    const context = await started.fixture.holding("loud");
    context.progress(1);
    const reply = await call;
    await reply.until(({ message }) => message !== undefined);
    reply.hangUp();
    await reply.ended;
    for (let step = 2; step < 50; step += 1) context.progress(step, 50, "x".repeat(8 * 1024));
    started.fixture.release("loud");
    const rest = await loud.resume(reply.lastEventId);
    await rest.ended;
    expect(rest.text.length).toBeLessThan(2 * 64 * 1024);
    const quiet = await SessionClient.open(started.peer, LATEST);
    const { reply: small, go } = await startCall(started, quiet, "quiet", 1);
    small.hangUp();
    go(STEPS);
    const kept = await quiet.resume(small.lastEventId);
    await kept.ended;
    expect(received(kept)).toEqual(allAfter(1));
  });

  it("of GET goes on too, with what came in between", async () => {
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
});

describe("an answer to a broken stream", () => {
  it("is kept, however many others were delivered since", async () => {
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
});
