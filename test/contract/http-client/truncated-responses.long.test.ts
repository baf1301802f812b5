// The response to a call, cut off after each of its bytes, in each style. The call ends with its result or an error, never
// with a part of the result, and its tool runs once. If events have ids, the client resumes the stream, and each progress
// notification arrives once and in order.

import { expect, it } from "vitest";
import type { FaultyServerOptions, FaultyServer } from "../../support/faulty-server/server.ts";
import type { Client } from "../../../src/client/index.ts";
import { connectTo, startAndConnect, LEGACY_SSE, startServer, outcome, STYLES, textOf } from "./fixture.ts";

const STEPS = 2;
const AT_ONCE = 64;

/** Keys have the same length, so that all responses have the same length. */
const keyOf = (bytes: number): string => `cut-${String(bytes).padStart(5, "0")}`;

interface Cut {
  readonly bytes: number;
  readonly isComplete: boolean;
  /** The number of progress notifications. */
  readonly steps: number;
}

/** A call whose response is cut off, with the checks that hold for every cut. */
async function call(server: FaultyServer, client: Client, bytes: number): Promise<Cut> {
  const key = keyOf(bytes);
  const steps: number[] = [];
  const onProgress = ({ progress }: { progress: number }): unknown => steps.push(progress);
  const { value, error } = await outcome(client.callTool("run", { key, steps: STEPS }, { onProgress }));
  const detail = `${bytes} bytes: ${JSON.stringify(value ?? error?.message)}`;
  expect(server.backend.runCount(key), detail).toBe(1);
  expect(steps, detail).toEqual(Array.from({ length: steps.length }, (_, n) => n + 1));
  if (error === undefined) expect(textOf(value ?? {}), detail).toBe(`ran ${key}`);
  else expect(error, detail).toMatchObject({ kind: "closed", mayHaveRun: true });
  return { bytes, isComplete: error === undefined, steps: steps.length };
}

/** Cuts off each response after the number of bytes in its key. */
function injectCuts(server: FaultyServer): void {
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
  injectCuts(server);
  await call(server, client, 90_000);
  const length = server.requests.find(({ operation }) => operation === "tools/call")?.sent ?? 0;
  const cuts: Cut[] = [];
  // The ids get one or two digits longer during the test.
  for (let from = 0; from < length + 8; from += AT_ONCE) {
    const batch = Array.from({ length: Math.min(AT_ONCE, length + 8 - from) }, (_, n) => from + n);
    cuts.push(...(await Promise.all(batch.map((bytes) => call(server, client, bytes)))));
  }
  expect(cuts.length).toBe(length + 8);
  return { server, cuts, length };
}

it.each([
  ["stateless with JSON", { style: "stateless", stateless: { answers: "json" } }],
  ["stateless with SSE", STYLES["stateless with SSE"] ?? {}],
  ["sessions with JSON", STYLES["sessions with JSON"] ?? {}],
  ["sessions without event ids", STYLES["sessions without event ids"] ?? {}],
] satisfies [string, FaultyServerOptions][])(
  "a response that is cut off after each byte is lost unless it is complete (%s)",
  async (_, options) => {
    const { cuts, length } = await cutEverywhere(options);
    const first = cuts.findIndex(({ isComplete }) => isComplete);
    // Bytes after the last event of a stream do not matter.
    expect(first).toBeGreaterThan(length - 20);
    expect(cuts.slice(first).every(({ isComplete }) => isComplete)).toBe(true);
  },
);

it("a response that is cut off after each byte is resumed in a session, after the first event id", async () => {
  const { server, cuts, length } = await cutEverywhere(STYLES["sessions"] ?? {});
  const first = cuts.findIndex(({ isComplete }) => isComplete);
  const head = server.requests.find(({ operation }) => operation === "tools/call");
  expect(head?.sent).toBe(length);
  // The first event id comes right after the head.
  expect(first).toBeLessThan(length / 2);
  expect(cuts.slice(first).every(({ isComplete, steps }) => isComplete && steps === STEPS)).toBe(true);
  expect(server.sessions.opened).toBe(1);
  const resumed = server.requests.filter(({ headers }) => headers["last-event-id"] !== undefined);
  expect(resumed.length).toBeGreaterThan(length / 2);
});

it("a response that is cut off after each byte is lost with the stream of legacy HTTP+SSE, and another stream is opened", async () => {
  const server = await startServer(LEGACY_SSE);
  const client = await connectTo(server);
  // Here the stream is cut off, this many bytes after the call arrived.
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
