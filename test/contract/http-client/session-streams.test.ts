// The streams of a session, broken: that of a call is taken up where it broke, by the id of its last event and not
// before the end wants it, and the one that belongs to no call is opened again for as long as the session lasts. What
// was heard once is not heard twice, and nothing is missed that the end still has.

import { describe, expect, it } from "vitest";
import { hangUp, errorResponse, reset, status } from "../../support/faulty-server/faults.ts";
import type { Fault } from "../../support/faulty-server/server.ts";
import { expectHelpful, startAndConnect, outcome, STYLES, textOf } from "./fixture.ts";

const SESSION = STYLES["sessions"] ?? {};
const FLAGS = { toolsListChanged: true };

/** Ends the connection of the stream once it has said so many messages. */
const breaksAfter =
  (messages: number, how: "hangUp" | "reset" = "hangUp"): Fault =>
  (request, serve) => {
    const { chunk } = request;
    let said = 0;
    request.chunk = (text) => {
      if (said >= messages) return;
      chunk.call(request, text);
      if (text.includes('"jsonrpc"')) said += 1;
      if (said >= messages) request[how]();
    };
    return serve();
  };

describe("the stream of a call", () => {
  it("is taken up at the event after the last, and every step is heard once", async () => {
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
      "mcp-session-id": "session-1-of-this-end",
    });
  });

  it("may break again and again", async () => {
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

  it("is waited for as long as the call takes", async () => {
    const { server, client } = await startAndConnect(SESSION);
    server.inject("tools/call", breaksAfter(1));
    const call = client.callTool("hold", { key: "a", steps: 2 }, { onProgress: () => undefined });
    await server.until(() => server.requests.some(({ headers }) => headers["last-event-id"] !== undefined));
    server.backend.release("a");
    expect(textOf(await call)).toBe("ran a");
  });

  it("is not taken up before the end wants it", async () => {
    const { server, client } = await startAndConnect({ style: "session", session: { retryMs: 400 } });
    let brokeAt = 0;
    server.inject("tools/call", (request, serve) => {
      request.closed.addEventListener("abort", () => (brokeAt = performance.now()));
      return breaksAfter(1)(request, serve);
    });
    let backAt = 0;
    const look: Fault = (_visit, serve) => {
      backAt = performance.now();
      return serve();
    };
    await server.untilSubscribed();
    server.inject("GET", look);
    await client.callTool("run", { key: "a", steps: 2 }, { onProgress: () => undefined });
    // The specification has the client wait at least that long; a timer may be a millisecond early.
    expect(backAt - brokeAt).toBeGreaterThanOrEqual(398);
  });

  it("is tried again where the end cannot be reached at once", async () => {
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
    ["does not know it any more", 400],
    ["offers no such thing", 405],
    ["has forgotten the session", 404],
  ])("is given up where the end %s: the call may have run, and is not made again", async (_, code) => {
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
  });

  it("is not waited for any more when its caller has gone", async () => {
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

  it("does not end the patience for a silent call: time runs while it is broken", async () => {
    const { server, client } = await startAndConnect(SESSION);
    await server.untilSubscribed();
    server.inject("tools/call", breaksAfter(1));
    server.inject("GET", status(503), 50);
    const options = { timeoutMs: 300, onProgress: (): void => undefined };
    const { error } = await outcome(client.callTool("hold", { key: "a", steps: 2 }, options));
    expect(error).toMatchObject({ kind: "timeout" });
    server.backend.release("a");
  });
});

describe("the stream that belongs to no call", () => {
  const grown = async (options: Parameters<typeof startAndConnect>[0] = SESSION): Promise<Heard> => {
    const { server, client } = await startAndConnect(options);
    const heard = new Heard(server, client);
    await client.listen(FLAGS, () => heard.hear());
    await server.untilSubscribed();
    return heard;
  };

  it("is opened again when it breaks, with the id of its last event, and nothing is missed", async () => {
    const heard = await grown();
    heard.end.addTool("one");
    await heard.until(1);
    const [stream] = heard.end.requests.filter(({ operation }) => operation === "GET");
    stream?.hangUp();
    heard.end.addTool("two");
    await heard.until(2);
    const last = heard.end.requests.filter(({ operation }) => operation === "GET").at(-1);
    expect(last?.headers["last-event-id"]).toBe("get/1");
    expect(heard.count).toBe(2);
  });

  it("is opened again without ids as well", async () => {
    const heard = await grown({ style: "session", session: { eventIds: false, retryMs: 10 } });
    heard.end.requests.find(({ operation }) => operation === "GET")?.hangUp();
    await heard.end.until(() => heard.end.count("GET") === 2);
    await heard.end.untilSubscribed();
    heard.end.addTool("one");
    await heard.until(1);
  });

  it("is opened again in spite of trouble of the end, or of its memory of the one that broke", async () => {
    // A server of others says 409 for as long as it has not noticed that the stream before is broken.
    const trouble = { reset, 500: status(500), 502: status(502), 503: status(503), 409: status(409), 429: status(429) };
    await Promise.all(
      Object.values(trouble).map(async (fault) => {
        const heard = await grown();
        heard.end.inject("GET", fault);
        heard.end.requests.find(({ operation }) => operation === "GET")?.hangUp();
        await heard.end.until(() => heard.end.count("GET") >= 3);
        await heard.end.untilSubscribed();
        heard.end.addTool("one");
        await heard.until(1);
      }),
    );
  });

  it("is not opened again and again where the end closes it at once", async () => {
    const { server, client } = await startAndConnect({ style: "session", session: { retryMs: 0 } });
    await server.untilSubscribed();
    server.inject("GET", (request) => request.answer(200, "", { "content-type": "text/event-stream" }), 10_000);
    server.requests.find(({ operation }) => operation === "GET")?.hangUp();
    await server.until(() => server.count("GET") >= 3);
    const before = server.count("GET");
    for (let n = 0; n < 20; n += 1) await client.callTool("run", { key: `k${n}` });
    // Many calls take some tens of milliseconds: a client that did not wait between two tries would have made hundreds.
    expect(server.count("GET") - before).toBeLessThan(20);
  });

  it("ends with the client, also while it waits to be opened again", async () => {
    const heard = await grown({ style: "session", session: { retryMs: 60_000 } });
    heard.end.requests.find(({ operation }) => operation === "GET")?.hangUp();
    await heard.client.close();
    expect(heard.end.count("GET")).toBe(1);
  });
});

class Heard {
  count = 0;
  readonly end: Awaited<ReturnType<typeof startAndConnect>>["server"];
  readonly client: Awaited<ReturnType<typeof startAndConnect>>["client"];
  #wake: () => void = () => undefined;

  constructor(server: Heard["end"], client: Heard["client"]) {
    this.end = server;
    this.client = client;
  }

  hear(): void {
    this.count += 1;
    this.#wake();
  }

  async until(many: number): Promise<void> {
    while (this.count < many) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}
