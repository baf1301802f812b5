// The old pair of addresses: one stream that brings everything, and another address for what we say. There is nothing to
// take up again: a stream that breaks takes with it what was under way, and the next call opens another.

import { describe, expect, it } from "vitest";
import {
  drip,
  hangUp,
  respondWith,
  runThenStatus,
  wrongId,
  noise,
  redirect,
  errorResponse,
  reset,
  silence,
  status,
} from "../../support/faulty-server/faults.ts";
import { NOTE } from "../../support/faulty-server/backend.ts";
import type { Fault, FaultyServer } from "../../support/faulty-server/server.ts";
import type { RawRequest } from "../../support/http/raw-server.ts";
import { expectHelpful, connectTo, startAndConnect, LEGACY_SSE, startServer, outcome, textOf } from "./fixture.ts";

const streamOf = (server: FaultyServer): RawRequest | undefined => server.requests.findLast(({ operation }) => operation === "GET");

describe("a message to the other address", () => {
  const fails: Readonly<Record<string, readonly [Fault, number, object]>> = {
    "500 and a page": [status(500), 0, { kind: "http", status: 500 }],
    "502 and a page": [status(502), 0, { kind: "http", status: 502 }],
    "400 and an error": [errorResponse(400, { code: -32000, message: "No" }), 0, { kind: "http", mayHaveRun: false }],
    "403": [status(403), 0, { kind: "unauthorized", mayHaveRun: false }],
    "hanging up": [hangUp, 0, { kind: "closed", mayHaveRun: true }],
    "a reset": [reset, 0, { kind: "closed", mayHaveRun: true }],
  };
  it.each(Object.entries(fails))("that meets %s fails its call once, and the next one works", async (_, row) => {
    const [fault, runs, failure] = row;
    const { server, client } = await startAndConnect(LEGACY_SSE);
    server.inject("tools/call", fault);
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expect(error).toMatchObject(failure);
    expectHelpful(error);
    expect(server.backend.runCount("a")).toBe(runs);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(server.count("GET")).toBe(1);
  });

  it.each([
    ["drips", drip],
    ["says OK and more", respondWith("OK", { "content-type": "text/plain" })],
    ["is a page", respondWith("<html>Thanks</html>", { "content-type": "text/html" })],
    ["is a message", wrongId],
  ])("counts as sent where the answer %s", async (_, fault) => {
    const { server, client } = await startAndConnect(LEGACY_SSE);
    server.inject("tools/call", async (request, serve) => {
      const { answer } = request;
      request.answer = () => undefined;
      await serve();
      request.answer = answer;
      await fault(request, async () => request.answer(202, "Accepted"));
    });
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(server.backend.runCount("a")).toBe(1);
  });

  it("that is executed though nobody says that it came is answered by the stream", async () => {
    const { server, client } = await startAndConnect(LEGACY_SSE);
    server.inject("tools/call", async (request, serve) => {
      request.answer = () => undefined;
      await serve();
    });
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(server.backend.runCount("a")).toBe(1);
  });

  it("that is executed while a proxy says 502 comes to one outcome, and runs once", async () => {
    const { server, client } = await startAndConnect(LEGACY_SSE);
    server.inject("tools/call", runThenStatus(502));
    const { value, error } = await outcome(client.callTool("run", { key: "a" }));
    if (error === undefined) expect(textOf(value ?? {})).toBe("ran a");
    else expect(error).toMatchObject({ kind: "http", status: 502, mayHaveRun: true });
    expect(server.backend.runCount("a")).toBe(1);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("that nobody answers is given up", async () => {
    const { server, client } = await startAndConnect(LEGACY_SSE);
    server.inject("tools/call", silence);
    const { error } = await outcome(client.callTool("run", { key: "a" }, { timeoutMs: 100 }));
    expect(error).toMatchObject({ kind: "timeout" });
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("is not sent to another origin", async () => {
    const { server, client } = await startAndConnect(LEGACY_SSE);
    const other = await startServer(LEGACY_SSE);
    server.inject(
      "tools/call",
      redirect(307, () => other.url),
    );
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expectHelpful(error);
    expect(other.requests).toEqual([]);
    const away = await startServer(LEGACY_SSE);
    away.inject("GET", (request) => {
      request.begin(200, { "content-type": "text/event-stream" });
      request.chunk(`event: endpoint\ndata: ${other.server.origin}/messages\n\n`);
    });
    const { error: refused } = await outcome(connectTo(away));
    expect(refused).toMatchObject({ mayHaveRun: false, message: expect.stringContaining(other.server.origin) });
    expect(other.requests).toEqual([]);
  });

  it("that finds its session forgotten is sent in a new one", async () => {
    const { server, client } = await startAndConnect(LEGACY_SSE);
    server.inject("tools/call", status(404));
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(server.backend.runCount("a")).toBe(1);
    expect(server.sessions.opened).toBe(2);
  });
});

describe("the one stream", () => {
  it("brings noise, and the answers all the same", async () => {
    const server = await startServer(LEGACY_SSE);
    server.inject("GET", noise);
    const client = await connectTo(server);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  });

  it("drips", async () => {
    const server = await startServer(LEGACY_SSE);
    server.inject("GET", drip);
    const client = await connectTo(server);
    const steps: number[] = [];
    const onProgress = ({ progress }: { progress: number }): unknown => steps.push(progress);
    expect(textOf(await client.callTool("run", { key: "a", steps: 3 }, { onProgress }))).toBe("ran a");
    expect(steps).toEqual([1, 2, 3]);
  });

  it("breaks in mid-call: all that was under way fails, once, and nothing runs twice", async () => {
    const { server, client } = await startAndConnect(LEGACY_SSE);
    const keys = ["a", "b", "c"];
    const calls = keys.map((key) => outcome(client.callTool("hold", { key })));
    await server.until(() => keys.every((key) => server.backend.isHolding(key)));
    streamOf(server)?.hangUp();
    for (const { error } of await Promise.all(calls)) {
      expect(error).toMatchObject({ kind: "closed", mayHaveRun: true });
      expectHelpful(error);
    }
    for (const key of keys) server.backend.release(key);
    expect(textOf(await client.callTool("run", { key: "d" }))).toBe("ran d");
    for (const key of keys) expect(server.backend.runCount(key)).toBe(1);
    expect(server.sessions.opened).toBe(2);
  });

  it("is opened again where somebody listens, and told what it must know", async () => {
    const { server, client } = await startAndConnect(LEGACY_SSE);
    let wake: () => void = () => undefined;
    const heard = new Promise<void>((resolve) => (wake = resolve));
    await client.listen({ resourceSubscriptions: [NOTE] }, () => wake());
    await server.restart();
    await server.until(() => [...server.sessions.sessions.values()].some(({ subscriptions }) => subscriptions.has(NOTE)));
    server.updateNote();
    await heard;
  });

  it("that names no address is given up after the time to start", async () => {
    const server = await startServer(LEGACY_SSE);
    server.inject("GET", (request) => request.begin(200, { "content-type": "text/event-stream" }), 10);
    const { error } = await outcome(connectTo(server, { startTimeoutMs: 200 }));
    expectHelpful(error);
    expect(error).toMatchObject({ kind: "timeout" });
  });

  it("that ends before it named an address is an end that is not there", async () => {
    const server = await startServer(LEGACY_SSE);
    server.inject("GET", (request) => request.answer(200, "", { "content-type": "text/event-stream" }), 10);
    const { error } = await outcome(connectTo(server));
    expectHelpful(error);
  });
});
