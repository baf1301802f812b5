// The client over legacy HTTP+SSE: one stream for all messages of the server, and another address for ours. The stream
// cannot be resumed: if it breaks, running calls fail, and the next call opens another.

import { expect, it } from "vitest";
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

/** An error of the server in the response to a POST. */
const REFUSAL = { code: -32000, message: "This server does not run it for you" };

const streamOf = (server: FaultyServer): RawRequest | undefined =>
  server.requests.findLast(({ operation }) => operation === "GET");

const fails: Readonly<Record<string, readonly [Fault, number, object]>> = {
  "500 and a page": [status(500), 0, { kind: "http", status: 500 }],
  "502 and a page": [status(502), 0, { kind: "http", status: 502 }],
  "400 and an error": [errorResponse(400, REFUSAL), 0, REFUSAL],
  "403 and an error": [errorResponse(403, REFUSAL), 0, REFUSAL],
  "403": [status(403), 0, { kind: "unauthorized", mayHaveRun: false }],
  "a closed connection": [hangUp, 0, { kind: "closed", mayHaveRun: true }],
  "a reset": [reset, 0, { kind: "closed", mayHaveRun: true }],
};
it.each(Object.entries(fails))("a POST fails its call after %s, and the next one works", async (_, row) => {
  const [fault, runs, expected] = row;
  const { server, client } = await startAndConnect(LEGACY_SSE);
  server.inject("tools/call", fault);
  const { error } = await outcome(client.callTool("run", { key: "a" }));
  expect(error).toMatchObject(expected);
  expectHelpful(error);
  expect(server.backend.runCount("a")).toBe(runs);
  expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  expect(server.count("GET")).toBe(1);
});

it.each([
  ["arrives byte by byte", drip],
  ["is text", respondWith("OK", { "content-type": "text/plain" })],
  ["is a page", respondWith("<html>Thanks</html>", { "content-type": "text/html" })],
  ["is a message", wrongId],
])("a POST counts as sent if the response %s", async (_, fault) => {
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

it("a POST gets its answer on the stream, even without a response to the POST", async () => {
  const { server, client } = await startAndConnect(LEGACY_SSE);
  server.inject("tools/call", async (request, serve) => {
    request.answer = () => undefined;
    await serve();
  });
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  expect(server.backend.runCount("a")).toBe(1);
});

it("a POST has one outcome and runs once if a proxy answers 502 after it ran", async () => {
  const { server, client } = await startAndConnect(LEGACY_SSE);
  server.inject("tools/call", runThenStatus(502));
  const { value, error } = await outcome(client.callTool("run", { key: "a" }));
  if (error === undefined) expect(textOf(value ?? {})).toBe("ran a");
  else expect(error).toMatchObject({ kind: "http", status: 502, mayHaveRun: true });
  expect(server.backend.runCount("a")).toBe(1);
  expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
});

it("a POST times out without an answer", async () => {
  const { server, client } = await startAndConnect(LEGACY_SSE);
  server.inject("tools/call", silence);
  const { error } = await outcome(client.callTool("run", { key: "a" }, { timeoutMs: 100 }));
  expect(error).toMatchObject({ kind: "timeout" });
  expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
});

it("a POST is not sent to another origin", async () => {
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
  const { error: failure } = await outcome(connectTo(away));
  expect(failure).toMatchObject({ mayHaveRun: false, message: expect.stringContaining(other.server.origin) });
  expect(other.requests).toEqual([]);
});

it("a POST is sent in a new session if the server has forgotten the old one", async () => {
  const { server, client } = await startAndConnect(LEGACY_SSE);
  server.inject("tools/call", status(404));
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  expect(server.backend.runCount("a")).toBe(1);
  expect(server.sessions.opened).toBe(2);
});

it("the stream may contain noise", async () => {
  const server = await startServer(LEGACY_SSE);
  server.inject("GET", noise);
  const client = await connectTo(server);
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
});

it("the stream may arrive byte by byte", async () => {
  const server = await startServer(LEGACY_SSE);
  server.inject("GET", drip);
  const client = await connectTo(server);
  const steps: number[] = [];
  const onProgress = ({ progress }: { progress: number }): unknown => steps.push(progress);
  expect(textOf(await client.callTool("run", { key: "a", steps: 3 }, { onProgress }))).toBe("ran a");
  expect(steps).toEqual([1, 2, 3]);
});

it("the stream fails all running calls if it breaks, and nothing runs twice", async () => {
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

it("the stream is opened again for a subscription, and the server gets the subscription again", async () => {
  const { server, client } = await startAndConnect(LEGACY_SSE);
  let wake: () => void = () => undefined;
  const updated = new Promise<void>((resolve) => (wake = resolve));
  await client.listen({ resourceSubscriptions: [NOTE] }, () => wake());
  await server.restart();
  await server.until(() => [...server.sessions.sessions.values()].some(({ subscriptions }) => subscriptions.has(NOTE)));
  server.updateNote();
  await updated;
});

it("the stream times out after startTimeoutMs if it does not send the address", async () => {
  const server = await startServer(LEGACY_SSE);
  server.inject("GET", (request) => request.begin(200, { "content-type": "text/event-stream" }), 10);
  const { error } = await outcome(connectTo(server, { startTimeoutMs: 200 }));
  expectHelpful(error);
  expect(error).toMatchObject({ kind: "timeout" });
});

it("the stream fails the connection if it ends before the address", async () => {
  const server = await startServer(LEGACY_SSE);
  server.inject("GET", (request) => request.answer(200, "", { "content-type": "text/event-stream" }), 10);
  const { error } = await outcome(connectTo(server));
  expectHelpful(error);
});
