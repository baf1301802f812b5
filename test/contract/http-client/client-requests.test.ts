// Questions of a session-style end in mid-call, over connections that break: a person is asked once, the end hears the
// answer, and where it cannot be told the call fails in its own time and not before.

import { describe, expect, it } from "vitest";
import { cut, hangUp, reset, status } from "../../support/faulty-server/faults.ts";
import type { FaultyServerOptions } from "../../support/faulty-server/server.ts";
import { expectHelpful, startAndConnect, LEGACY_SSE, outcome, STYLES, textOf } from "./fixture.ts";

const SESSION = STYLES["sessions"] ?? {};

const WAYS: readonly [string, FaultyServerOptions][] = [
  ["sessions", SESSION],
  ["sessions without ids of events", STYLES["sessions without ids of events"] ?? {}],
  ["the old pair of addresses", LEGACY_SSE],
];

function person(): { asked: number; elicit: () => { action: "accept"; content: { name: string } } } {
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

describe.each(WAYS)("a question in %s", (_, options) => {
  it("is put once and answered once, under the id that the end gave it", async () => {
    const who = person();
    const { server, client } = await startAndConnect(options, { elicit: who.elicit });
    for (const key of ["a", "b"]) expect(textOf(await client.callTool("ask", { key }))).toBe(ANSWER);
    expect(who.asked).toBe(2);
    expect(server.backend.responses.map(({ id }) => id)).toEqual([1, 2]);
  });

  it.each([
    ["hangs up on", hangUp],
    ["resets", reset],
    ["cuts off what it says to", cut(10)],
  ])("is answered again where the end %s the first answer", async (_name, fault) => {
    const who = person();
    const { server, client } = await startAndConnect(options, { elicit: who.elicit });
    server.inject("response", fault);
    expect(textOf(await client.callTool("ask", { key: "a" }))).toBe(ANSWER);
    expect(who.asked).toBe(1);
    expect(server.backend.runCount("a")).toBe(1);
  });

  it("whose answer is refused leaves the call to its own time, and the client in order", async () => {
    const who = person();
    const { server, client } = await startAndConnect(options, { elicit: who.elicit });
    server.inject("response", status(500), 10);
    const { error } = await outcome(client.callTool("ask", { key: "a" }, { timeoutMs: 500 }));
    expectHelpful(error);
    expect(who.asked).toBe(1);
    // Whatever is said again is the same: an answer is not followed by another one.
    expect(new Set(server.requests.flatMap(({ operation, text }) => (operation === "response" ? [text] : []))).size).toBe(1);
    server.clearFaults();
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("that nobody answers is told to the end as soon as the call is over", async () => {
    const stop = new AbortController();
    let asked: () => void = () => undefined;
    const question = new Promise<void>((resolve) => (asked = resolve));
    const { server, client } = await startAndConnect(options, {
      elicit: () => {
        asked();
        return new Promise<never>(() => undefined);
      },
    });
    const call = outcome(client.callTool("ask", { key: "a" }, { signal: stop.signal }));
    await question;
    stop.abort(new Error("enough"));
    expect((await call).error).toMatchObject({ kind: "cancelled" });
    await server.until(() => server.backend.received.some(({ method }) => method === "notifications/cancelled"));
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });
});

describe("a question on a stream that breaks", () => {
  it("is put once, wherever in it the stream is cut, and the answer to the call is had", async () => {
    const lengths = await startAndConnect(SESSION, { elicit: person().elicit });
    await lengths.client.callTool("ask", { key: "a" });
    const length = lengths.server.requests.find(({ operation }) => operation === "tools/call")?.sent ?? 0;
    const places = Array.from({ length: 20 }, (_, n) => Math.floor((length * (n + 1)) / 20));
    await Promise.all(
      places.map(async (bytes) => {
        const who = person();
        const { server, client } = await startAndConnect(SESSION, { elicit: who.elicit });
        server.inject("tools/call", cut(bytes));
        const { value, error } = await outcome(client.callTool("ask", { key: "a" }));
        expect(server.backend.runCount("a")).toBe(1);
        if (error === undefined) {
          expect(textOf(value ?? {})).toBe(ANSWER);
          expect(who.asked).toBe(1);
          expect(server.backend.responses).toHaveLength(1);
        } else {
          expect(error).toMatchObject({ kind: "closed", mayHaveRun: true });
          expect(who.asked).toBeLessThanOrEqual(1);
        }
      }),
    );
  });

  it("belongs to no session after the end was started anew: the call fails, and the next one asks again", async () => {
    const who = person();
    const { server, client } = await startAndConnect(SESSION, { elicit: who.elicit });
    server.inject("response", async (request) => {
      request.hangUp();
      await server.restart();
    });
    const { error } = await outcome(client.callTool("ask", { key: "a" }, { timeoutMs: 5_000 }));
    expectHelpful(error);
    expect(error).toMatchObject({ mayHaveRun: true });
    expect(textOf(await client.callTool("ask", { key: "b" }))).toBe(ANSWER);
    expect(server.backend.runCount("a")).toBe(1);
  });
});
