// Servers with unusual behaviour: event ids that do not fit into a header, huge retry delays, repeated events, and a
// restart in another style.

import { expect, it } from "vitest";
import { NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { silence } from "../../support/faulty-server/faults.ts";
import { NOTE } from "../../support/faulty-server/backend.ts";
import type { Fault } from "../../support/faulty-server/server.ts";
import { IS_LONG } from "../../support/thoroughness.ts";
import {
  expectHelpful,
  connectTo,
  startAndConnect,
  LEGACY_SSE,
  startServer,
  outcome,
  STYLES,
  textOf,
} from "./fixture.ts";
import { eventually } from "../../support/waiting.ts";

const SESSION = STYLES["sessions"] ?? {};

/** Closes the connection after this many messages of the stream. */
const breaksAfter =
  (messages: number): Fault =>
  (request, serve) => {
    const { chunk } = request;
    let sent = 0;
    request.chunk = (text) => {
      if (sent >= messages) return;
      chunk.call(request, text);
      if (text.includes('"jsonrpc"')) sent += 1;
      if (sent >= messages) request.hangUp();
    };
    return serve();
  };

it("events may have ids with any characters, which the client sends back unchanged", async () => {
  for (const idSuffix of ["-ü", "-漢", "-🙂", "- with spaces", "-\u007f"]) {
    const { server, client } = await startAndConnect({ style: "session", session: { idSuffix, retryMs: 10 } });
    server.inject("tools/call", breaksAfter(1));
    const { value, error } = await outcome(
      client.callTool("run", { key: "a", steps: 3 }, { onProgress: () => undefined }),
    );
    // A control character is never valid in a header, so that call fails and may have run.
    if (error === undefined) expect(textOf(value ?? {}), idSuffix).toBe("ran a");
    else {
      expect(idSuffix).toBe("-\u007f");
      expect(error).toMatchObject({ kind: "closed", mayHaveRun: true });
    }
    expect(server.backend.runCount("a")).toBe(1);
  }
});

it("events are not delivered again if a resumed stream repeats them", async () => {
  const { server, client } = await startAndConnect({ style: "session", session: { replaysAll: true, retryMs: 10 } });
  server.inject("tools/call", breaksAfter(3));
  const steps: number[] = [];
  const onProgress = ({ progress }: { progress: number }): unknown => steps.push(progress);
  expect(textOf(await client.callTool("run", { key: "a", steps: 5 }, { onProgress }))).toBe("ran a");
  expect(steps).toEqual([1, 2, 3, 4, 5]);
});

it.each([2 ** 31, 2 ** 40, 1e21])("events may have a retry delay of %d ms, which is not cut short", async (retryMs) => {
  const { server, client } = await startAndConnect({ style: "session", session: { retryMs } });
  await server.untilSubscribed();
  server.requests.find(({ operation }) => operation === "GET")?.hangUp();
  for (let n = 0; n < 20; n += 1) await client.callTool("run", { key: `k${n}` });
  expect(server.count("GET")).toBe(1);
});

it("a session is renewed for a subscription too", async () => {
  const { server, client } = await startAndConnect(SESSION);
  server.sessions.forget();
  let wake: () => void = () => undefined;
  const updated = new Promise<void>((resolve) => (wake = resolve));
  await client.listen({ resourceSubscriptions: [NOTE] }, () => wake());
  await server.until(() => [...server.sessions.sessions.values()].some(({ subscriptions }) => subscriptions.has(NOTE)));
  await server.untilSubscribed();
  server.updateNote();
  await updated;
});

it.runIf(IS_LONG)("a session works while its GET has no answer", async () => {
  const server = await startServer(SESSION);
  server.inject("GET", silence, 10);
  const client = await connectTo(server);
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
});

it("a session with an empty id is used without an id", async () => {
  const server = await startServer({ style: "session", session: { sessionIds: false } });
  server.inject("initialize", (request, serve) => {
    const { answer } = request;
    request.answer = (code, body, headers) => answer.call(request, code, body, { ...headers, "mcp-session-id": "" });
    return serve();
  });
  const client = await connectTo(server);
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  await client.close();
  expect(server.operations).not.toContain("DELETE");
  expect(server.requests.filter(({ headers }) => headers["mcp-session-id"] !== undefined)).toEqual([]);
});

it("a session may be renewed in another revision", async () => {
  const older = REVISIONS.filter(({ style }) => style === "session").at(-2)?.name;
  const { server, client } = await startAndConnect(SESSION);
  expect(client.revision).toBe(NEWEST_SESSION.name);
  server.sessions.forget();
  server.inject("initialize", (request, serve) => {
    const { answer } = request;
    request.answer = (code, body, headers) => {
      const text = JSON.stringify(body).replaceAll(NEWEST_SESSION.name, older ?? "");
      answer.call(request, code, JSON.parse(text) as object, headers);
    };
    return serve();
  });
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  expect(client.revision).toBe(older);
  expect(server.requests.at(-1)?.headers["mcp-protocol-version"]).toBe(older);
});

it.each([
  ["sessions", "stateless"],
  ["sessions", "legacy-sse"],
  ["stateless", "session"],
  ["stateless", "legacy-sse"],
] as const)(
  "a server that restarts in another style fails calls of connected clients, and works for new ones: first %s, then %s",
  async (was, is) => {
    const { server, client } = await startAndConnect(STYLES[was]);
    await server.restart(is);
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toMatchObject({ kind: "timeout" });
    expect(server.backend.runCount("a")).toBe(0);
    await client.close();
    expect(textOf(await (await connectTo(server)).callTool("run", { key: "b" }))).toBe("ran b");
  },
);

it("a server that restarts in another style fails calls after legacy HTTP+SSE too", async () => {
  const { server, client } = await startAndConnect(LEGACY_SSE);
  await server.restart("stateless");
  const { error } = await outcome(client.callTool("run", { key: "a" }));
  expectHelpful(error);
  expect(error).not.toMatchObject({ kind: "timeout" });
  expect(server.backend.runCount("a")).toBe(0);
});

it("a stateless subscription is opened once more for each time that the server completes it", async () => {
  const { server, client } = await startAndConnect({ style: "stateless" });
  server.inject("subscriptions/listen", async (request, serve) => {
    await serve();
    const result = { resultType: "complete" };
    request.chunk(`data: ${JSON.stringify({ jsonrpc: "2.0", id: request.json?.["id"], result })}\n\n`);
    request.end();
  });
  let changes = 0;
  const subscription = await client.listen({ toolsListChanged: true }, () => (changes += 1));
  // Opened again after a pause, which makes the client report the list as changed.
  await eventually(() => expect(changes).toBeGreaterThan(0));
  expect(server.count("subscriptions/listen")).toBe(2);
  await subscription.close();
});

it("a stateless subscription is closed at the server when the client closes it", async () => {
  const { server, client } = await startAndConnect({ style: "stateless" });
  const subscription = await client.listen({ toolsListChanged: true });
  const [visit] = server.requests.filter(({ operation }) => operation === "subscriptions/listen");
  await subscription.close();
  await server.until(() => visit?.closed.aborted === true);
});

it("clients may connect many at once", async () => {
  for (const options of [SESSION, STYLES["stateless"] ?? {}, LEGACY_SSE]) {
    const server = await startServer(options);
    const clients = await Promise.all(Array.from({ length: 10 }, () => connectTo(server)));
    const results = await Promise.all(clients.map((client, n) => client.callTool("run", { key: `k${n}` })));
    expect(results.map(textOf)).toEqual(clients.map((_, n) => `ran k${n}`));
    if (options !== STYLES["stateless"]) expect(server.sessions.opened).toBe(10);
  }
});
