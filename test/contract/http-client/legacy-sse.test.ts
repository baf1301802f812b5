// The old pair of addresses: one stream that brings everything, and another address for what we say. There is nothing to
// take up again: a stream that breaks takes with it what was under way, and the next call opens another.

import { describe, expect, it } from "vitest";
import {
  drip,
  hangUp,
  instead,
  lost,
  misaddressed,
  noisy,
  redirect,
  refusal,
  reset,
  silence,
  status,
} from "../../support/faulty-server/faults.ts";
import { NOTE } from "../../support/faulty-server/backend.ts";
import type { Fault, FaultyServer } from "../../support/faulty-server/server.ts";
import type { Visit } from "../../support/http/raw-server.ts";
import { expectHelpful, joined, met, OLD, opened, outcome, textOf } from "./fixture.ts";

const streamOf = (end: FaultyServer): Visit | undefined => end.visits.findLast(({ what }) => what === "GET");

describe("a message to the other address", () => {
  const fails: Readonly<Record<string, readonly [Fault, number, object]>> = {
    "500 and a page": [status(500), 0, { kind: "http", status: 500 }],
    "502 and a page": [status(502), 0, { kind: "http", status: 502 }],
    "400 and an error": [refusal(400, { code: -32000, message: "No" }), 0, { kind: "http", mayHaveRun: false }],
    "403": [status(403), 0, { kind: "unauthorized", mayHaveRun: false }],
    "hanging up": [hangUp, 0, { kind: "closed", mayHaveRun: true }],
    "a reset": [reset, 0, { kind: "closed", mayHaveRun: true }],
  };
  it.each(Object.entries(fails))("that meets %s fails its call once, and the next one works", async (_, row) => {
    const [fault, runs, failure] = row;
    const { end, client } = await met(OLD);
    end.lay("tools/call", fault);
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expect(error).toMatchObject(failure);
    expectHelpful(error);
    expect(end.desk.runsOf("a")).toBe(runs);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(end.count("GET")).toBe(1);
  });

  it.each([
    ["drips", drip],
    ["says OK and more", instead("OK", { "content-type": "text/plain" })],
    ["is a page", instead("<html>Thanks</html>", { "content-type": "text/html" })],
    ["is a message", misaddressed],
  ])("counts as sent where the answer %s", async (_, fault) => {
    const { end, client } = await met(OLD);
    end.lay("tools/call", async (visit, serve) => {
      const { answer } = visit;
      visit.answer = () => undefined;
      await serve();
      visit.answer = answer;
      await fault(visit, async () => visit.answer(202, "Accepted"));
    });
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(end.desk.runsOf("a")).toBe(1);
  });

  it("that is executed though nobody says that it came is answered by the stream", async () => {
    const { end, client } = await met(OLD);
    end.lay("tools/call", async (visit, serve) => {
      visit.answer = () => undefined;
      await serve();
    });
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(end.desk.runsOf("a")).toBe(1);
  });

  it("that is executed while a proxy says 502 comes to one outcome, and runs once", async () => {
    const { end, client } = await met(OLD);
    end.lay("tools/call", lost(502));
    const { value, error } = await outcome(client.callTool("run", { key: "a" }));
    if (error === undefined) expect(textOf(value ?? {})).toBe("ran a");
    else expect(error).toMatchObject({ kind: "http", status: 502, mayHaveRun: true });
    expect(end.desk.runsOf("a")).toBe(1);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("that nobody answers is given up", async () => {
    const { end, client } = await met(OLD);
    end.lay("tools/call", silence);
    const { error } = await outcome(client.callTool("run", { key: "a" }, { timeoutMs: 100 }));
    expect(error).toMatchObject({ kind: "timeout" });
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("is not sent to another origin", async () => {
    const { end, client } = await met(OLD);
    const other = await opened(OLD);
    end.lay(
      "tools/call",
      redirect(307, () => other.url),
    );
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expectHelpful(error);
    expect(other.visits).toEqual([]);
    const away = await opened(OLD);
    away.lay("GET", (visit) => {
      visit.begin(200, { "content-type": "text/event-stream" });
      visit.chunk(`event: endpoint\ndata: ${other.server.origin}/messages\n\n`);
    });
    const { error: refused } = await outcome(joined(away));
    expect(refused).toMatchObject({ mayHaveRun: false, message: expect.stringContaining(other.server.origin) });
    expect(other.visits).toEqual([]);
  });

  it("that finds its session forgotten is sent in a new one", async () => {
    const { end, client } = await met(OLD);
    end.lay("tools/call", status(404));
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(end.desk.runsOf("a")).toBe(1);
    expect(end.sessions.opened).toBe(2);
  });
});

describe("the one stream", () => {
  it("brings noise, and the answers all the same", async () => {
    const end = await opened(OLD);
    end.lay("GET", noisy);
    const client = await joined(end);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  });

  it("drips", async () => {
    const end = await opened(OLD);
    end.lay("GET", drip);
    const client = await joined(end);
    const steps: number[] = [];
    const onProgress = ({ progress }: { progress: number }): unknown => steps.push(progress);
    expect(textOf(await client.callTool("run", { key: "a", steps: 3 }, { onProgress }))).toBe("ran a");
    expect(steps).toEqual([1, 2, 3]);
  });

  it("breaks in mid-call: all that was under way fails, once, and nothing runs twice", async () => {
    const { end, client } = await met(OLD);
    const keys = ["a", "b", "c"];
    const calls = keys.map((key) => outcome(client.callTool("hold", { key })));
    await end.until(() => keys.every((key) => end.desk.isHolding(key)));
    streamOf(end)?.hangUp();
    for (const { error } of await Promise.all(calls)) {
      expect(error).toMatchObject({ kind: "closed", mayHaveRun: true });
      expectHelpful(error);
    }
    for (const key of keys) end.desk.release(key);
    expect(textOf(await client.callTool("run", { key: "d" }))).toBe("ran d");
    for (const key of keys) expect(end.desk.runsOf(key)).toBe(1);
    expect(end.sessions.opened).toBe(2);
  });

  it("is opened again where somebody listens, and told what it must know", async () => {
    const { end, client } = await met(OLD);
    let wake: () => void = () => undefined;
    const heard = new Promise<void>((resolve) => (wake = resolve));
    await client.listen({ resourceSubscriptions: [NOTE] }, () => wake());
    await end.restart();
    await end.until(() => [...end.sessions.sessions.values()].some(({ subscriptions }) => subscriptions.has(NOTE)));
    end.touch();
    await heard;
  });

  it("that names no address is given up after the time to start", async () => {
    const end = await opened(OLD);
    end.lay("GET", (visit) => visit.begin(200, { "content-type": "text/event-stream" }), 10);
    const { error } = await outcome(joined(end, { startTimeoutMs: 200 }));
    expectHelpful(error);
    expect(error).toMatchObject({ kind: "timeout" });
  });

  it("that ends before it named an address is an end that is not there", async () => {
    const end = await opened(OLD);
    end.lay("GET", (visit) => visit.answer(200, "", { "content-type": "text/event-stream" }), 10);
    const { error } = await outcome(joined(end));
    expectHelpful(error);
  });
});
