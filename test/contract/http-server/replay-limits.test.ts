// Where the way back to a broken stream ends: at its answer, at its cancellation, and at the bounds of what is kept.
// A caller must see which of them it is, because its client comes back until it does.

import { describe, expect, it } from "vitest";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { SessionCaller } from "../../support/http/mcp-clients.ts";
import type { Json } from "../../support/http/http-peer.ts";
import { staged } from "./fixture.ts";
import { begun, heard, STEPS, whole } from "./stepped-call.ts";

const LATEST = NEWEST_SESSION.name;

describe("a broken stream", () => {
  it("is over when its answer was seen: 204, which tells a caller to come no more", async () => {
    const house = await staged();
    const caller = await SessionCaller.open(house.peer, LATEST);
    const { reply, go } = await begun(house, caller, "k", 1);
    go(STEPS);
    await reply.ended;
    const rest = await caller.resume(reply.lastEventId);
    expect([rest.status, rest.text]).toEqual([204, ""]);
    expect((await caller.resume(reply.events[0]?.id)).status).toBe(200);
  });

  it("is over when its call was cancelled: a caller who comes back is told to come no more", async () => {
    const house = await staged();
    const caller = await SessionCaller.open(house.peer, LATEST);
    const { reply } = await begun(house, caller, "k", 2);
    await caller.post({ method: "notifications/cancelled", params: { requestId: "k" } });
    await reply.ended;
    expect((await caller.resume(reply.lastEventId)).status).toBe(204);
    // One that was cancelled before anything was sent gave no id to come back with.
    const silent = caller.call("early", "hold", { key: "early" });
    await house.stage.holding("early");
    await caller.post({ method: "notifications/cancelled", params: { requestId: "early" } });
    const early = await silent;
    await early.ended;
    expect(early.lastEventId).toBeUndefined();
  });

  it("is kept within bounds: who comes too late for some of it is told so, or still gets the answer", async () => {
    const house = await staged({ http: { limits: { replayEvents: 5 } } });
    const caller = await SessionCaller.open(house.peer, LATEST);
    const { reply, go } = await begun(house, caller, "k", 1);
    reply.hangUp();
    await reply.ended;
    go(STEPS);
    const rest = await caller.resume(reply.lastEventId);
    await rest.ended;
    // Never a part of it that looks like the whole; and not 404, which would say that the session is over.
    if (rest.status === 200) expect(heard(rest).at(-1)).toBe("answer");
    else expect(rest.status).toBe(400);
    expect(rest.messages.length).toBeLessThanOrEqual(5);
    expect(await caller.request("ping")).toMatchObject({ result: {} });
  });

  it("is kept within bytes over all sessions, and a session that took no part keeps its own", async () => {
    const house = await staged({ http: { limits: { replayBytes: 64 * 1024 } } });
    const loud = await SessionCaller.open(house.peer, LATEST);
    const call = loud.call("loud", "hold", { key: "loud" });
    const context = await house.stage.holding("loud");
    context.progress(1);
    const reply = await call;
    await reply.until(({ message }) => message !== undefined);
    reply.hangUp();
    await reply.ended;
    for (let step = 2; step < 50; step += 1) context.progress(step, 50, "x".repeat(8 * 1024));
    house.stage.release("loud");
    const rest = await loud.resume(reply.lastEventId);
    await rest.ended;
    expect(rest.text.length).toBeLessThan(2 * 64 * 1024);
    const quiet = await SessionCaller.open(house.peer, LATEST);
    const { reply: small, go } = await begun(house, quiet, "quiet", 1);
    small.hangUp();
    go(STEPS);
    const kept = await quiet.resume(small.lastEventId);
    await kept.ended;
    expect(heard(kept)).toEqual(whole(1));
  });

  it("of GET goes on too, with what came in between", async () => {
    const house = await staged();
    const caller = await SessionCaller.open(house.peer, LATEST);
    await house.stage.listening(0);
    await caller.request("resources/subscribe", { uri: "note://one" });
    let stream = await caller.listen();
    const seen: Json[] = [];
    for (let n = 0; n < 6; n += 1) {
      house.stage.server.resourceUpdated("note://one");
      await stream.until(({ message }) => message !== undefined);
      const { lastEventId } = stream;
      stream.hangUp();
      await stream.ended;
      seen.push(...stream.messages);
      house.stage.server.resourceUpdated("note://one");
      stream = await caller.resume(lastEventId);
      await stream.until(({ message }) => message !== undefined);
      const next = stream.lastEventId;
      stream.hangUp();
      await stream.ended;
      seen.push(...stream.messages);
      stream = await caller.resume(next);
    }
    expect(seen).toHaveLength(12);
  });
});
