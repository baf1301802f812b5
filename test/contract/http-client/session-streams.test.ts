// Broken streams of a session: the stream of a call is resumed after its last event, after the retry delay of the server,
// and the GET stream is opened again while the session exists. No message is delivered twice, and none is missed that the
// server still has.

import { expect, it } from "vitest";
import { hangUp, errorResponse, reset, status } from "../../support/faulty-server/faults.ts";
import type { Fault } from "../../support/faulty-server/server.ts";
import { IS_LONG } from "../../support/thoroughness.ts";
import { expectHelpful, startAndConnect, outcome, STYLES, textOf } from "./fixture.ts";

const SESSION = STYLES["sessions"] ?? {};
const FLAGS = { toolsListChanged: true };

/** Breaks the connection after this many messages of the stream. */
const breaksAfter =
  (messages: number, how: "hangUp" | "reset" = "hangUp"): Fault =>
  (request, serve) => {
    const { chunk } = request;
    let sent = 0;
    request.chunk = (text) => {
      if (sent >= messages) return;
      chunk.call(request, text);
      if (text.includes('"jsonrpc"')) sent += 1;
      if (sent >= messages) request[how]();
    };
    return serve();
  };

it("the stream of a call is resumed after its last event, and each notification arrives once", async () => {
  const { server, client } = await startAndConnect(SESSION);
  server.inject("tools/call", breaksAfter(3));
  const steps: number[] = [];
  const onProgress = ({ progress }: { progress: number }): unknown => steps.push(progress);
  expect(textOf(await client.callTool("run", { key: "a", steps: 10 }, { onProgress }))).toBe("ran a");
  expect(steps).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(server.backend.runCount("a")).toBe(1);
  const resumed = server.requests.filter(({ headers }) => headers["last-event-id"] !== undefined);
  expect(resumed.map(({ method, headers }) => [method, headers["last-event-id"]?.split("/")[1]])).toEqual([
    ["GET", "3"],
  ]);
  expect(resumed[0]?.headers).toMatchObject({
    accept: expect.stringContaining("text/event-stream"),
    "mcp-session-id": "session-1-of-this-server",
  });
});

it("the stream of a call may break several times", async () => {
  const { server, client } = await startAndConnect(SESSION);
  await server.untilSubscribed();
  server.inject("tools/call", breaksAfter(1));
  server.inject("GET", breaksAfter(1), 4);
  const steps: number[] = [];
  const onProgress = ({ progress }: { progress: number }): unknown => steps.push(progress);
  expect(textOf(await client.callTool("run", { key: "a", steps: 6 }, { onProgress }))).toBe("ran a");
  expect(steps).toEqual([1, 2, 3, 4, 5, 6]);
  expect(server.backend.runCount("a")).toBe(1);
});

it("the stream of a call is resumed even if the call takes long", async () => {
  const { server, client } = await startAndConnect(SESSION);
  server.inject("tools/call", breaksAfter(1));
  const call = client.callTool("hold", { key: "a", steps: 2 }, { onProgress: () => undefined });
  await server.until(() => server.requests.some(({ headers }) => headers["last-event-id"] !== undefined));
  server.backend.release("a");
  expect(textOf(await call)).toBe("ran a");
});

it("the stream of a call is not resumed before the retry delay", async () => {
  const { server, client } = await startAndConnect({ style: "session", session: { retryMs: 400 } });
  let brokeAt = 0;
  server.inject("tools/call", (request, serve) => {
    request.closed.addEventListener("abort", () => (brokeAt = performance.now()));
    return breaksAfter(1)(request, serve);
  });
  let backAt = 0;
  const recordTime: Fault = (_visit, serve) => {
    backAt = performance.now();
    return serve();
  };
  await server.untilSubscribed();
  server.inject("GET", recordTime);
  await client.callTool("run", { key: "a", steps: 2 }, { onProgress: () => undefined });
  // The specification requires this delay; a timer may be a millisecond early.
  expect(backAt - brokeAt).toBeGreaterThanOrEqual(398);
});

it.runIf(IS_LONG)("the stream of a call is resumed after several failed attempts", async () => {
  const { server, client } = await startAndConnect(SESSION);
  await server.untilSubscribed();
  server.inject("tools/call", breaksAfter(1));
  server.inject("GET", hangUp);
  server.inject("GET", status(503));
  server.inject("GET", reset);
  expect(textOf(await client.callTool("run", { key: "a", steps: 2 }, { onProgress: () => undefined }))).toBe("ran a");
  expect(server.backend.runCount("a")).toBe(1);
});

it.each([
  ["does not know the event", 400],
  ["does not support it", 405],
  ["has forgotten the session", 404],
])(
  "the stream of a call is not resumed if the server %s: the call may have run, and is not retried",
  async (_, code) => {
    const { server, client } = await startAndConnect(SESSION);
    await server.untilSubscribed();
    server.inject("tools/call", breaksAfter(1));
    server.inject("GET", errorResponse(code, { code: -32000, message: "No" }));
    const call = outcome(client.callTool("run", { key: "a", steps: 2 }, { onProgress: () => undefined }));
    const { error } = await call;
    expectHelpful(error);
    expect(error).toMatchObject({ mayHaveRun: true });
    expect(server.backend.runCount("a")).toBe(1);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  },
);

it("the stream of a call is closed when the call is cancelled", async () => {
  const { server, client } = await startAndConnect(SESSION);
  await server.untilSubscribed();
  server.inject("tools/call", breaksAfter(1));
  const stop = new AbortController();
  const options = { signal: stop.signal, onProgress: () => undefined };
  const call = outcome(client.callTool("hold", { key: "a", steps: 2 }, options));
  await server.until(() => server.requests.some(({ headers }) => headers["last-event-id"] !== undefined));
  stop.abort(new Error("enough"));
  expect((await call).error).toMatchObject({ kind: "cancelled" });
  const resumed = server.requests.find(({ headers }) => headers["last-event-id"] !== undefined);
  await server.until(() => resumed?.closed.aborted === true);
  server.backend.release("a");
});

it("the stream of a call does not stop the timeout of the call while it is broken", async () => {
  const { server, client } = await startAndConnect(SESSION);
  await server.untilSubscribed();
  server.inject("tools/call", breaksAfter(1));
  server.inject("GET", status(503), 50);
  const options = { timeoutMs: 300, onProgress: (): void => undefined };
  const { error } = await outcome(client.callTool("hold", { key: "a", steps: 2 }, options));
  expect(error).toMatchObject({ kind: "timeout" });
  server.backend.release("a");
});

const subscribe = async (options: Parameters<typeof startAndConnect>[0] = SESSION): Promise<Subscriber> => {
  const { server, client } = await startAndConnect(options);
  const subscriber = new Subscriber(server, client);
  await client.listen(FLAGS, () => subscriber.receive());
  await server.untilSubscribed();
  return subscriber;
};

it("the GET stream is resumed after its last event when it breaks, and nothing is missed", async () => {
  const subscriber = await subscribe();
  subscriber.server.addTool("one");
  await subscriber.until(1);
  const [stream] = subscriber.server.requests.filter(({ operation }) => operation === "GET");
  stream?.hangUp();
  subscriber.server.addTool("two");
  await subscriber.until(2);
  const last = subscriber.server.requests.filter(({ operation }) => operation === "GET").at(-1);
  expect(last?.headers["last-event-id"]).toBe("get/1");
  expect(subscriber.count).toBe(2);
});

it("the GET stream is opened again without event ids too", async () => {
  const subscriber = await subscribe({ style: "session", session: { eventIds: false, retryMs: 10 } });
  subscriber.server.requests.find(({ operation }) => operation === "GET")?.hangUp();
  await subscriber.server.until(() => subscriber.server.count("GET") === 2);
  await subscriber.server.untilSubscribed();
  subscriber.server.addTool("one");
  await subscriber.until(1);
});

it("the GET stream is opened again after temporary errors", async () => {
  // Some servers answer 409 until they notice that the previous stream is broken.
  const faults = { reset, 500: status(500), 502: status(502), 503: status(503), 409: status(409), 429: status(429) };
  await Promise.all(
    Object.values(faults).map(async (fault) => {
      const subscriber = await subscribe();
      subscriber.server.inject("GET", fault);
      subscriber.server.requests.find(({ operation }) => operation === "GET")?.hangUp();
      await subscriber.server.until(() => subscriber.server.count("GET") >= 3);
      await subscriber.server.untilSubscribed();
      subscriber.server.addTool("one");
      await subscriber.until(1);
    }),
  );
});

it("the GET stream is not opened in a tight loop if the server closes it at once", async () => {
  const { server, client } = await startAndConnect({ style: "session", session: { retryMs: 0 } });
  await server.untilSubscribed();
  server.inject("GET", (request) => request.answer(200, "", { "content-type": "text/event-stream" }), 10_000);
  server.requests.find(({ operation }) => operation === "GET")?.hangUp();
  await server.until(() => server.count("GET") >= 3);
  const before = server.count("GET");
  for (let n = 0; n < 20; n += 1) await client.callTool("run", { key: `k${n}` });
  // The calls take some tens of milliseconds. Without a delay between attempts, there would be hundreds.
  expect(server.count("GET") - before).toBeLessThan(20);
});

it("the GET stream ends with the client, even while it waits for the retry delay", async () => {
  const subscriber = await subscribe({ style: "session", session: { retryMs: 60_000 } });
  subscriber.server.requests.find(({ operation }) => operation === "GET")?.hangUp();
  await subscriber.client.close();
  expect(subscriber.server.count("GET")).toBe(1);
});

class Subscriber {
  count = 0;
  readonly server: Awaited<ReturnType<typeof startAndConnect>>["server"];
  readonly client: Awaited<ReturnType<typeof startAndConnect>>["client"];
  #wake: () => void = () => undefined;

  constructor(server: Subscriber["server"], client: Subscriber["client"]) {
    this.server = server;
    this.client = client;
  }

  receive(): void {
    this.count += 1;
    this.#wake();
  }

  async until(many: number): Promise<void> {
    while (this.count < many) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}
