// Callers who do not read: what is kept for one of them is bounded, it is cut off at the limit, and meanwhile
// everybody else is answered as if it were not there.

import { describe, expect, it } from "vitest";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { StatelessClient, LegacySseClient, SessionClient, toolCall } from "../../support/http/mcp-clients.ts";
import type { HttpPeer, Json } from "../../support/http/http-peer.ts";
import { startServer, textOf, type StartedServer } from "./fixture.ts";

const LATEST = NEWEST_SESSION.name;
/** Long names make few notifications weigh much: what the kernel takes by itself is soon full. */
const HEAVY = `heavy://${"x".repeat(32 * 1024)}`;
/** More than any kernel keeps for one connection: 25 MiB. */
const MOST = 800;
/** As many as are sent in one breath: well below the limit, so that who reads is never over it. */
const BREATH = 10;
const SMALL = { http: { limits: { unreadBytes: 1024 * 1024, replayBytes: 1024 * 1024 } } } as const;

/** Another caller's call, answered. */
async function echo(peer: HttpPeer, n: number): Promise<void> {
  const answer = await new StatelessClient(peer).request(n, "tools/call", {
    name: "echo",
    arguments: { text: `${n}` },
  });
  expect(textOf(answer)).toBe(String(n));
}

/** Sends until it is over, with a call of somebody else after each breath; returns how many were sent. */
async function flood(
  { peer }: StartedServer,
  send: (n: number) => void,
  isOver: () => boolean,
  breathed?: (sent: number) => Promise<unknown>,
): Promise<number> {
  let sent = 0;
  while (sent < MOST && !isOver()) {
    for (let n = 0; n < BREATH; n += 1) send((sent += 1));
    await echo(peer, sent);
    await breathed?.(sent);
  }
  return sent;
}

describe("a caller who does not read", () => {
  it("its listen is cut, and another listener gets everything", async () => {
    const started = await startServer(SMALL);
    const params = { notifications: { resourceSubscriptions: [HEAVY] } };
    const made = new StatelessClient(started.peer).build("stalled", "subscriptions/listen", params);
    const stalled = await started.peer.send({ ...made, paused: true });
    const { signal } = await started.fixture.subscribed(0);
    const good = await new StatelessClient(started.peer).post("good", "subscriptions/listen", params);
    const reading = await started.fixture.subscribed(1);
    await good.until(({ message }) => message !== undefined);
    // The acknowledgement, and every change.
    const heard = (sent: number): Promise<unknown> => good.until(() => good.messages.length === sent + 1);
    const sent = await flood(
      started,
      () => started.fixture.server.resourceUpdated(HEAVY),
      () => signal.aborted,
      heard,
    );
    expect(sent).toBeLessThan(MOST);
    expect(reading.signal.aborted).toBe(false);
    stalled.resume();
    expect(await stalled.ended).toBe("cut");
    expect(stalled.messages.length).toBeLessThan(sent);
  });

  it("its GET stream is cut, its session lives on and comes back for what is kept", async () => {
    const started = await startServer(SMALL);
    const client = await SessionClient.open(started.peer, LATEST);
    await started.fixture.subscribed(0);
    await client.request("resources/subscribe", { uri: HEAVY });
    const stalled = await client.listen();
    stalled.pause();
    const sent = await flood(
      started,
      () => started.fixture.server.resourceUpdated(HEAVY),
      () => false,
    );
    expect(sent).toBe(MOST);
    expect(await client.request("ping")).toMatchObject({ result: {} });
    stalled.resume();
    expect(await stalled.ended).toBe("cut");
    expect(stalled.messages.length).toBeLessThan(MOST);
    // What it missed is more than is kept; it is told so, and begins anew.
    const refused = await client.resume(stalled.lastEventId);
    const rest = refused.status === 200 ? refused : await client.listen();
    started.fixture.server.tool("later", {}, () => "late");
    await rest.untilMessage(({ method }) => method === "notifications/tools/list_changed");
    expect(rest.text.length).toBeLessThan(4 * 1024 * 1024);
  });

  it("its call is cancelled in exchange style", async () => {
    const started = await startServer(SMALL);
    const params = { name: "hold", arguments: { key: "k" }, _meta: { progressToken: "t" } };
    const sending = started.peer.send({
      ...new StatelessClient(started.peer).build(1, "tools/call", params),
      paused: true,
    });
    const context = await started.fixture.holding("k");
    const { signal } = context;
    const sent = await flood(
      started,
      (n) => context.progress(n, MOST, HEAVY),
      () => signal.aborted,
    );
    expect(sent).toBeLessThan(MOST);
    const stalled = await sending;
    stalled.resume();
    expect(await stalled.ended).toBe("cut");
  });

  it("its call goes on in a session, and within bounds", async () => {
    const started = await startServer(SMALL);
    const client = await SessionClient.open(started.peer, LATEST);
    const body: Json = { jsonrpc: "2.0", ...toolCall(1, "hold", { key: "k" }) };
    const sending = started.peer.send({ body, headers: { "mcp-session-id": client.session }, paused: true });
    const context = await started.fixture.holding("k");
    await flood(
      started,
      (n) => context.progress(n, MOST, HEAVY),
      () => false,
    );
    expect(context.signal.aborted).toBe(false);
    const stalled = await sending;
    stalled.resume();
    expect(await stalled.ended).toBe("cut");
    expect(stalled.messages.length).toBeLessThan(MOST);
    started.fixture.release("k");
    // Its last event may be one that is not kept any more; its answer is, among the newest.
    const rest = await client.resume(stalled.lastEventId);
    await rest.ended;
    expect(rest.text.length).toBeLessThan(4 * 1024 * 1024);
    expect(await client.request("ping")).toMatchObject({ result: {} });
  });

  it("its session of the old transport is over", async () => {
    const started = await startServer(SMALL);
    const client = await LegacySseClient.open(started.peer);
    await client.handshake(LATEST);
    const { signal } = await started.fixture.subscribed(0);
    await client.request("resources/subscribe", { uri: HEAVY });
    client.stream.pause();
    const sent = await flood(
      started,
      () => started.fixture.server.resourceUpdated(HEAVY),
      () => signal.aborted,
    );
    expect(sent).toBeLessThan(MOST);
    expect((await client.post({ id: 1, method: "ping" })).status).toBe(404);
    client.stream.resume();
    expect(await client.stream.ended).toBe("cut");
  });

  it("is cut after a while already for less, and who reads is not", async () => {
    const limits = { unreadBytes: 64 * 1024 * 1024, lingeringBytes: 1024 * 1024, lingeringMs: 100, keepAliveMs: 50 };
    const started = await startServer({ http: { limits } });
    const heavy = { notifications: { resourceSubscriptions: [HEAVY] } };
    const made = new StatelessClient(started.peer).build("slow", "subscriptions/listen", heavy);
    const slow = await started.peer.send({ ...made, paused: true });
    const { signal } = await started.fixture.subscribed(0);
    const light = { notifications: { resourceSubscriptions: ["note://one"] } };
    const good = await new StatelessClient(started.peer).post("good", "subscriptions/listen", light);
    const reading = await started.fixture.subscribed(1);
    await good.until(({ message }) => message !== undefined);
    const over = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    for (let n = 0; n < MOST; n += 1) {
      started.fixture.server.resourceUpdated(HEAVY);
      started.fixture.server.resourceUpdated("note://one");
    }
    await over;
    await good.until(() => good.messages.length === MOST + 1);
    expect(reading.signal.aborted).toBe(false);
    slow.hangUp();
  });
});

describe("a caller who reads", () => {
  const BIG = "y".repeat(3 * 1024 * 1024);

  it.each(["a session", "an exchange"])(
    "gets an answer that is longer than what may lie unread, in %s",
    async (style) => {
      const started = await startServer(SMALL);
      const client = await SessionClient.open(started.peer, LATEST);
      const params = { name: "hold", arguments: { key: "k" }, _meta: { progressToken: "t" } };
      const call =
        style === "a session"
          ? client.call(1, "hold", { key: "k" })
          : new StatelessClient(started.peer).post(1, "tools/call", params);
      const context = await started.fixture.holding("k");
      context.progress(1);
      const reply = await call;
      started.fixture.release("k", BIG);
      expect(textOf(await reply.answerTo(1)).length).toBe(BIG.length);
      expect(await reply.ended).toBe("complete");
    },
  );

  it("gets the rest of a broken stream, also where that is more than may lie unread", async () => {
    const limits = { unreadBytes: 1024 * 1024, replayBytes: 16 * 1024 * 1024 };
    const started = await startServer({ http: { limits } });
    const client = await SessionClient.open(started.peer, LATEST);
    const call = client.call(1, "hold", { key: "k" });
    const context = await started.fixture.holding("k");
    context.progress(1);
    const reply = await call;
    await reply.until(({ message }) => message !== undefined);
    reply.hangUp();
    await reply.ended;
    for (let n = 2; n <= 100; n += 1) context.progress(n, 100, HEAVY);
    started.fixture.release("k");
    // In as many visits as it takes, each of which brings it further.
    const steps: unknown[] = [];
    let last = reply.lastEventId;
    for (let visit = 0; visit < 20 && !steps.includes(undefined); visit += 1) {
      const rest = await client.resume(last);
      await rest.ended;
      steps.push(...rest.messages.map(({ params }) => params?.progress));
      last = rest.lastEventId ?? last;
    }
    expect(steps).toEqual([...Array.from({ length: 99 }, (_, n) => n + 2), undefined]);
  });
});
