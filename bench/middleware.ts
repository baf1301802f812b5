// What each built-in middleware adds to a `tools/call` in the same process, compared with a chain without middleware. The
// middleware passes the call on. Work that it has with every call (bare-work.ts) is measured by itself in the same rounds.

import { tmpdir } from "node:os";
import { join } from "node:path";
import { chain, createServer, type Chain } from "catenary";
import { MIDDLEWARE } from "catenary/middleware";
import { serveTransport } from "catenary/stdio";
import { memoryPair } from "catenary/testing";
import { NEWEST } from "../src/protocol/revisions/index.ts";
import { BARE_WORK } from "./bare-work.ts";
import { BASELINE, createFigure, median, OURS, takeTurns, type Figure, type Measurement } from "./measurement.ts";

/** Options with which the middleware passes the call on. Those that are not here are created without options. */
const OPTIONS: Readonly<Record<string, unknown>> = {
  audit: { methods: ["prompts/get"], write: () => undefined },
  authorize: { rules: [{ allow: true, tools: ["*"] }] },
  concurrency: { calls: 1e9 },
  confirm: { tools: ["delete*"] },
  describe: { tools: { other: { title: "Another" } } },
  filter: { prompts: { not: ["draft*"] } },
  inject: { tools: { other: { arguments: { key: "value" } } } },
  log: { level: "error" },
  pin: { file: join(tmpdir(), `catenary-bench-${process.pid}`, "pins.json") },
  "rate-limit": { calls: 1e9, per: "second" },
  "read-only": { allow: ["*"] },
  retry: { methods: ["prompts/get"] },
  rename: { tools: { other: "another" } },
  timeout: { totalMs: 60_000, methods: ["prompts/get"] },
};

/** What a middleware may add to a call beyond its own work. */
const MAX_EXTRA_US = 1;
/** The name of the column. */
const OWN_WORK = "Own work";
const FIRST_CALLS = 50_000;
const SLICE = 5_000;
const ROUNDS = 40;

const server = createServer({ name: "bench", version: "1.0.0" }).tool(
  "echo",
  // Middleware that treats tools by their annotations passes it on.
  {
    input: { type: "object", properties: { text: { type: "string" } } },
    annotations: { readOnlyHint: true },
  },
  ({ text }) => String(text),
);
const _meta = {
  "io.modelcontextprotocol/protocolVersion": NEWEST.name,
  "io.modelcontextprotocol/clientCapabilities": {},
};
const params = { name: "echo", arguments: { text: "hello world" }, _meta };

interface Subject {
  /** Makes calls one after another, and returns the CPU time of one in microseconds. */
  readonly makeCalls: (count: number) => Promise<number>;
  readonly close: () => Promise<unknown>;
}

/** A gateway to the server, which gets messages in memory. */
async function start(middleware: Chain): Promise<Subject> {
  const gateway = middleware.to(server);
  const [client, transport] = memoryPair();
  const served = await serveTransport(gateway, transport);
  let answered: (message: unknown) => void = () => undefined;
  await client.start(({ message }) => answered(message));
  const call = (id: number): Promise<unknown> => {
    const answer = new Promise((resolve) => (answered = resolve));
    void client.send({ jsonrpc: "2.0", id, method: "tools/call", params });
    return answer;
  };
  let last = 0;
  const makeCalls = async (count: number): Promise<number> => {
    const before = process.cpuUsage();
    for (const until = last + count; last < until;) {
      last += 1;
      const { result } = (await call(last)) as { result?: { content?: readonly unknown[] } };
      if (result?.content?.length !== 1) throw new Error("The echo is missing");
    }
    const { user, system } = process.cpuUsage(before);
    return (user + system) / count;
  };
  return { makeCalls, close: () => Promise.all([served.close(), gateway.close()]) };
}

/** Does the work of a middleware alone, and returns its CPU time in microseconds. */
function doBareWork(work: (count: number) => void, count: number): number {
  const before = process.cpuUsage();
  work(count);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

export const measureMiddleware: Measurement = async ({ onProgress, divisor }) => {
  const figures: Figure[] = [];
  const empty = chain((request, context, next) => next(request, context));
  const chains = [...MIDDLEWARE].map(([name, create]) => [name, chain(create(OPTIONS[name]))] as const);
  for (const [name, one] of [["Only calls `next`", empty] as const, ...chains]) {
    onProgress(`middleware ${name}: ${ROUNDS / divisor} slices of ${SLICE} calls with and without it`);
    const [without, through] = [await start(chain()), await start(one)];
    for (const { makeCalls } of [without, through]) await makeCalls(FIRST_CALLS / divisor);
    const work = BARE_WORK[name];
    work?.(FIRST_CALLS);
    const subjects = { [BASELINE]: () => without.makeCalls(SLICE), [OURS]: () => through.makeCalls(SLICE) };
    const own = work && { [OWN_WORK]: () => doBareWork(work, SLICE) };
    const { [OWN_WORK]: ownRounds, ...rounds } = await takeTurns({ ...subjects, ...own }, ROUNDS / divisor);
    const figure = createFigure("middleware", name, "µs", rounds);
    const ownUs = ownRounds === undefined ? 0 : median(ownRounds);
    const ownResult = ownRounds && { [OWN_WORK]: { value: ownUs, ratio: 1, extra: ownUs } };
    figures.push({ ...figure, results: { ...figure.results, ...ownResult }, maxExtra: MAX_EXTRA_US + ownUs });
    await Promise.all([without.close(), through.close()]);
  }
  return figures;
};
