// The answer to a call, cut off after each of its bytes, head and body: once in every style. The call comes to its true
// result or to an error, never to half a result, and its tool has run once. Where events have ids, what was cut off is
// had by another request; then every step is heard once and in order.

import { describe, expect, it } from "vitest";
import type { FaultyServerOptions, FaultyServer } from "../../support/faulty-server/server.ts";
import type { Client } from "../../../src/client/index.ts";
import { connectTo, startAndConnect, LEGACY_SSE, startServer, outcome, STYLES, textOf } from "./fixture.ts";

const STEPS = 2;
const AT_ONCE = 64;

/** Of one length, so that all answers are. */
const keyOf = (bytes: number): string => `cut-${String(bytes).padStart(5, "0")}`;

interface Cut {
  readonly bytes: number;
  readonly isWhole: boolean;
  /** How many steps were heard. */
  readonly steps: number;
}

/** A call with a fault in its way, and everything that must be true of it whatever that was. */
async function call(server: FaultyServer, client: Client, bytes: number): Promise<Cut> {
  const key = keyOf(bytes);
  const steps: number[] = [];
  const onProgress = ({ progress }: { progress: number }): unknown => steps.push(progress);
  const { value, error } = await outcome(client.callTool("run", { key, steps: STEPS }, { onProgress }));
  const said = `${bytes} bytes: ${JSON.stringify(value ?? error?.message)}`;
  expect(server.backend.runCount(key), said).toBe(1);
  expect(steps, said).toEqual(Array.from({ length: steps.length }, (_, n) => n + 1));
  if (error === undefined) expect(textOf(value ?? {}), said).toBe(`ran ${key}`);
  else expect(error, said).toMatchObject({ kind: "closed", mayHaveRun: true });
  return { bytes, isWhole: error === undefined, steps: steps.length };
}

/** Cuts each answer after as many bytes as its key says. */
function cutting(server: FaultyServer): void {
  server.inject(
    "tools/call",
    (request, serve) => {
      request.cutAfter(Number(String(request.json?.["params"].arguments.key).slice("cut-".length)));
      return serve();
    },
    100_000,
  );
}

async function cutEverywhere(
  options: FaultyServerOptions,
): Promise<{ server: FaultyServer; cuts: readonly Cut[]; length: number }> {
  const { server, client } = await startAndConnect(options);
  cutting(server);
  await call(server, client, 90_000);
  const length = server.requests.find(({ operation }) => operation === "tools/call")?.sent ?? 0;
  const cuts: Cut[] = [];
  // Ids grow by a digit or two on the way.
  for (let from = 0; from < length + 8; from += AT_ONCE) {
    const batch = Array.from({ length: Math.min(AT_ONCE, length + 8 - from) }, (_, n) => from + n);
    cuts.push(...(await Promise.all(batch.map((bytes) => call(server, client, bytes)))));
  }
  expect(cuts.length).toBe(length + 8);
  return { server, cuts, length };
}

describe("an answer that is cut off after each byte", { timeout: 60_000 }, () => {
  it.each([
    ["exchanges as JSON", { style: "stateless", stateless: { answers: "json" } }],
    ["exchanges as streams", STYLES["exchanges as streams"] ?? {}],
    ["sessions of JSON", STYLES["sessions of JSON"] ?? {}],
    ["sessions without ids of events", STYLES["sessions without ids of events"] ?? {}],
  ] satisfies [string, FaultyServerOptions][])("in %s is lost until it is whole", async (_, options) => {
    const { cuts, length } = await cutEverywhere(options);
    const first = cuts.findIndex(({ isWhole }) => isWhole);
    // What comes after the last event of a stream says nothing more.
    expect(first).toBeGreaterThan(length - 20);
    expect(cuts.slice(first).every(({ isWhole }) => isWhole)).toBe(true);
  });

  it("in sessions is had all the same, once it is known which it was", async () => {
    const { server, cuts, length } = await cutEverywhere(STYLES["sessions"] ?? {});
    const first = cuts.findIndex(({ isWhole }) => isWhole);
    const head = server.requests.find(({ operation }) => operation === "tools/call");
    expect(head?.sent).toBe(length);
    // The first event, right after the head, names the stream.
    expect(first).toBeLessThan(length / 2);
    expect(cuts.slice(first).every(({ isWhole, steps }) => isWhole && steps === STEPS)).toBe(true);
    expect(server.sessions.opened).toBe(1);
    const resumed = server.requests.filter(({ headers }) => headers["last-event-id"] !== undefined);
    expect(resumed.length).toBeGreaterThan(length / 2);
  });

  it("by the old pair of addresses is lost with the stream, and another stream is opened", async () => {
    const server = await startServer(LEGACY_SSE);
    const client = await connectTo(server);
    // Here it is the stream that is cut: so many bytes after the call came.
    for (const bytes of [0, 1, 40, 100, 150, 200, 260]) {
      const key = keyOf(bytes);
      const stream = server.requests.findLast(({ operation }) => operation === "GET");
      server.inject("tools/call", (_visit, serve) => {
        stream?.cutAfter(stream.sent + bytes);
        return serve();
      });
      const { value, error } = await outcome(client.callTool("run", { key }));
      if (error === undefined) expect(textOf(value ?? {})).toBe(`ran ${key}`);
      else expect(error).toMatchObject({ kind: "closed", mayHaveRun: true });
      expect(server.backend.runCount(key)).toBe(1);
      if (error === undefined) stream?.hangUp();
      await server.until(() => stream?.closed.aborted === true);
      expect(textOf(await client.callTool("run", { key: `after ${bytes}` }))).toBe(`ran after ${bytes}`);
    }
  });
});
