// Clients that do not read: the data kept for one is limited, it is cut off at the limit, and other clients are not
// affected.

import { expect, it } from "vitest";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { StatelessClient, LegacySseClient, SessionClient, toolCall } from "../../support/http/mcp-clients.ts";
import type { HttpPeer, Json } from "../../support/http/http-peer.ts";
import { textOf, type TestedServer, startLimited } from "./fixture.ts";

const LATEST = NEWEST_SESSION.name;
/** A long URI makes notifications large, so that a few of them fill the buffers of the kernel. */
const HEAVY = `heavy://${"x".repeat(32 * 1024)}`;
/** More than a kernel buffers for one connection: 25 MiB. */
const MAX_MESSAGES = 800;
/** Sent at a time: far below the limit, so that a client that reads never exceeds it. */
const BATCH = 10;
const SMALL = [{ unreadBytes: 1024 * 1024 }, { replayBytes: 1024 * 1024 }] as const;

/** A call of another client, which must be answered. */
async function echo(peer: HttpPeer, n: number): Promise<void> {
  const answer = await new StatelessClient(peer).request(n, "tools/call", {
    name: "echo",
    arguments: { text: `${n}` },
  });
  expect(textOf(answer)).toBe(String(n));
}

/** Sends until `isOver`, with a call of another client after each batch; returns the number of messages. */
async function flood(
  { peer }: TestedServer,
  send: (n: number) => void,
  isOver: () => boolean,
  afterBatch?: (sent: number) => Promise<unknown>,
): Promise<number> {
  let sent = 0;
  while (sent < MAX_MESSAGES && !isOver()) {
    for (let n = 0; n < BATCH; n += 1) send((sent += 1));
    await echo(peer, sent);
    await afterBatch?.(sent);
  }
  return sent;
}

it("a client that does not read loses its subscription, and another subscriber gets everything", async () => {
  const started = await startLimited(...SMALL);
  const params = { notifications: { resourceSubscriptions: [HEAVY] } };
  const made = new StatelessClient(started.peer).build("stalled", "subscriptions/listen", params);
  const stalled = await started.peer.send({ ...made, paused: true });
  const { signal } = await started.fixture.subscribed(0);
  const good = await new StatelessClient(started.peer).post("good", "subscriptions/listen", params);
  const reading = await started.fixture.subscribed(1);
  await good.until(({ message }) => message !== undefined);
  // The acknowledgement and all changes.
  const receivedAll = (sent: number): Promise<unknown> => good.until(() => good.messages.length === sent + 1);
  const sent = await flood(
    started,
    () => started.fixture.server.resourceUpdated(HEAVY),
    () => signal.aborted,
    receivedAll,
  );
  expect(sent).toBeLessThan(MAX_MESSAGES);
  expect(reading.signal.aborted).toBe(false);
  stalled.resume();
  expect(await stalled.ended).toBe("cut");
  expect(stalled.messages.length).toBeLessThan(sent);
});

it("a client that does not read loses its GET stream, and its session can open another", async () => {
  const started = await startLimited(...SMALL);
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
  expect(sent).toBe(MAX_MESSAGES);
  expect(await client.request("ping")).toMatchObject({ result: {} });
  stalled.resume();
  expect(await stalled.ended).toBe("cut");
  expect(stalled.messages.length).toBeLessThan(MAX_MESSAGES);
  // It missed more than the replay log keeps, so it opens a new stream.
  const refused = await client.resume(stalled.lastEventId);
  const rest = refused.status === 200 ? refused : await client.listen();
  started.fixture.server.tool("later", {}, () => "late");
  await rest.untilMessage(({ method }) => method === "notifications/tools/list_changed");
  expect(rest.text.length).toBeLessThan(4 * 1024 * 1024);
});

it("a client that does not read loses its call if it is stateless", async () => {
  const started = await startLimited(...SMALL);
  const params = { name: "hold", arguments: { key: "k" }, _meta: { progressToken: "t" } };
  const sending = started.peer.send({
    ...new StatelessClient(started.peer).build(1, "tools/call", params),
    paused: true,
  });
  const context = await started.fixture.holding("k");
  const { signal } = context;
  const sent = await flood(
    started,
    (n) => context.progress(n, MAX_MESSAGES, HEAVY),
    () => signal.aborted,
  );
  expect(sent).toBeLessThan(MAX_MESSAGES);
  const stalled = await sending;
  stalled.resume();
  expect(await stalled.ended).toBe("cut");
});

it("a client that does not read keeps its call in a session, within the limits", async () => {
  const started = await startLimited(...SMALL);
  const client = await SessionClient.open(started.peer, LATEST);
  const body: Json = { jsonrpc: "2.0", ...toolCall(1, "hold", { key: "k" }) };
  const sending = started.peer.send({ body, headers: { "mcp-session-id": client.session }, paused: true });
  const context = await started.fixture.holding("k");
  await flood(
    started,
    (n) => context.progress(n, MAX_MESSAGES, HEAVY),
    () => false,
  );
  expect(context.signal.aborted).toBe(false);
  const stalled = await sending;
  stalled.resume();
  expect(await stalled.ended).toBe("cut");
  expect(stalled.messages.length).toBeLessThan(MAX_MESSAGES);
  started.fixture.release("k");
  // Its last event may be gone from the replay log; the answer is there.
  const rest = await client.resume(stalled.lastEventId);
  await rest.ended;
  expect(rest.text.length).toBeLessThan(4 * 1024 * 1024);
  expect(await client.request("ping")).toMatchObject({ result: {} });
});

it("a client that does not read loses its legacy SSE session", async () => {
  const started = await startLimited(...SMALL);
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
  expect(sent).toBeLessThan(MAX_MESSAGES);
  expect((await client.post({ id: 1, method: "ping" })).status).toBe(404);
  client.stream.resume();
  expect(await client.stream.ended).toBe("cut");
});

it("a client that does not read is cut off earlier after lingeringMs, and a client that reads is not", async () => {
  const fixed = { unreadBytes: 64 * 1024 * 1024, lingeringBytes: 1024 * 1024, lingeringMs: 100 };
  const started = await startLimited(fixed, { keepAliveMs: 50 });
  const heavy = { notifications: { resourceSubscriptions: [HEAVY] } };
  const made = new StatelessClient(started.peer).build("slow", "subscriptions/listen", heavy);
  const slow = await started.peer.send({ ...made, paused: true });
  const { signal } = await started.fixture.subscribed(0);
  const light = { notifications: { resourceSubscriptions: ["note://one"] } };
  const good = await new StatelessClient(started.peer).post("good", "subscriptions/listen", light);
  const reading = await started.fixture.subscribed(1);
  await good.until(({ message }) => message !== undefined);
  const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  for (let n = 0; n < MAX_MESSAGES; n += 1) {
    started.fixture.server.resourceUpdated(HEAVY);
    started.fixture.server.resourceUpdated("note://one");
  }
  await aborted;
  await good.until(() => good.messages.length === MAX_MESSAGES + 1);
  expect(reading.signal.aborted).toBe(false);
  slow.hangUp();
});

const BIG = "y".repeat(3 * 1024 * 1024);

it.each(["a session", "the stateless style"])(
  "a client that reads gets an answer that is longer than unreadBytes, in %s",
  async (style) => {
    const started = await startLimited(...SMALL);
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

it("a client that reads gets the rest of a broken stream, even if it is longer than unreadBytes", async () => {
  const started = await startLimited({ unreadBytes: 1024 * 1024 }, { replayBytes: 16 * 1024 * 1024 });
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
  // Each request may get a part of it.
  const steps: unknown[] = [];
  let last = reply.lastEventId;
  for (let attempt = 0; attempt < 20 && !steps.includes(undefined); attempt += 1) {
    const rest = await client.resume(last);
    await rest.ended;
    steps.push(...rest.messages.map(({ params }) => params?.progress));
    last = rest.lastEventId ?? last;
  }
  expect(steps).toEqual([...Array.from({ length: 99 }, (_, n) => n + 2), undefined]);
});
