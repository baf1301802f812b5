// Requests of a session-style server during a call, over connections that break: the user is asked once, and the server gets
// the answer. If the answer cannot be sent, the call fails only after its own timeout.

import { describe, expect, it } from "vitest";
import { cut, hangUp, reset, status } from "../../support/faulty-server/faults.ts";
import type { FaultyServerOptions } from "../../support/faulty-server/server.ts";
import { expectHelpful, startAndConnect, LEGACY_SSE, outcome, STYLES, textOf } from "./fixture.ts";

const SESSION = STYLES["sessions"] ?? {};

const KINDS: readonly [string, FaultyServerOptions][] = [
  ["sessions", SESSION],
  ["sessions without event ids", STYLES["sessions without event ids"] ?? {}],
  ["legacy HTTP+SSE", LEGACY_SSE],
];

function user(): { asked: number; elicit: () => { action: "accept"; content: { name: string } } } {
  const self = {
    asked: 0,
    elicit: () => {
      self.asked += 1;
      return { action: "accept" as const, content: { name: "Ada" } };
    },
  };
  return self;
}

const ANSWER = '{"action":"accept","content":{"name":"Ada"}}';

describe.each(KINDS)("a request of the server (%s)", (_, options) => {
  it("a request of the server reaches the user once, and is answered with its id", async () => {
    const person = user();
    const { server, client } = await startAndConnect(options, { elicit: person.elicit });
    for (const key of ["a", "b"]) expect(textOf(await client.callTool("ask", { key }))).toBe(ANSWER);
    expect(person.asked).toBe(2);
    expect(server.backend.responses.map(({ id }) => id)).toEqual([1, 2]);
  });

  it.each([
    ["closes the connection of", hangUp],
    ["resets the connection of", reset],
    ["cuts off its response to", cut(10)],
  ])("a request of the server is answered again if the server %s the first answer", async (_name, fault) => {
    const person = user();
    const { server, client } = await startAndConnect(options, { elicit: person.elicit });
    server.inject("response", fault);
    expect(textOf(await client.callTool("ask", { key: "a" }))).toBe(ANSWER);
    expect(person.asked).toBe(1);
    expect(server.backend.runCount("a")).toBe(1);
  });

  it("a request of the server does not fail its call before the timeout if the answer is refused, and the client works", async () => {
    const person = user();
    const { server, client } = await startAndConnect(options, { elicit: person.elicit });
    server.inject("response", status(500), 10);
    const { error } = await outcome(client.callTool("ask", { key: "a" }, { timeoutMs: 500 }));
    expectHelpful(error);
    expect(person.asked).toBe(1);
    // A repeated answer is the same.
    expect(
      new Set(server.requests.flatMap(({ operation, text }) => (operation === "response" ? [text] : []))).size,
    ).toBe(1);
    server.clearFaults();
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("a request of the server is cancelled at the server when its call is cancelled", async () => {
    const stop = new AbortController();
    let onRequest: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => (onRequest = resolve));
    const { server, client } = await startAndConnect(options, {
      elicit: () => {
        onRequest();
        return new Promise<never>(() => undefined);
      },
    });
    const call = outcome(client.callTool("ask", { key: "a" }, { signal: stop.signal }));
    await asked;
    stop.abort(new Error("enough"));
    expect((await call).error).toMatchObject({ kind: "cancelled" });
    await server.until(() => server.backend.received.some(({ method }) => method === "notifications/cancelled"));
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });
});

it("a request on a stream that breaks reaches the user once, wherever the stream is cut off", async () => {
  const measured = await startAndConnect(SESSION, { elicit: user().elicit });
  await measured.client.callTool("ask", { key: "a" });
  const length = measured.server.requests.find(({ operation }) => operation === "tools/call")?.sent ?? 0;
  const cuts = Array.from({ length: 20 }, (_, n) => Math.floor((length * (n + 1)) / 20));
  await Promise.all(
    cuts.map(async (bytes) => {
      const person = user();
      const { server, client } = await startAndConnect(SESSION, { elicit: person.elicit });
      server.inject("tools/call", cut(bytes));
      const { value, error } = await outcome(client.callTool("ask", { key: "a" }));
      expect(server.backend.runCount("a")).toBe(1);
      if (error === undefined) {
        expect(textOf(value ?? {})).toBe(ANSWER);
        expect(person.asked).toBe(1);
        expect(server.backend.responses).toHaveLength(1);
      } else {
        expect(error).toMatchObject({ kind: "closed", mayHaveRun: true });
        expect(person.asked).toBeLessThanOrEqual(1);
      }
    }),
  );
});

it("a request on a stream that breaks is lost if the server restarts: the call fails, and the next one asks again", async () => {
  const person = user();
  const { server, client } = await startAndConnect(SESSION, { elicit: person.elicit });
  server.inject("response", async (request) => {
    request.hangUp();
    await server.restart();
  });
  const { error } = await outcome(client.callTool("ask", { key: "a" }));
  expectHelpful(error);
  expect(error).toMatchObject({ mayHaveRun: true });
  expect(textOf(await client.callTool("ask", { key: "b" }))).toBe(ANSWER);
  expect(server.backend.runCount("a")).toBe(1);
});
