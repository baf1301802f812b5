// What each built-in middleware adds to a `tools/call` in the same process, compared with a chain without middleware. The
// middleware passes the call on, so the work that it is for (writing a line, starting a timer) is not counted.

import { tmpdir } from "node:os";
import { join } from "node:path";
import { chain, createServer, type Chain } from "catenary";
import { MIDDLEWARE } from "catenary/middleware";
import { serveTransport } from "catenary/stdio";
import { memoryPair } from "catenary/testing";
import { NEWEST } from "../src/protocol/revisions/index.ts";
import { BASELINE, createFigure, OURS, takeTurns, type Figure, type Measurement } from "./measurement.ts";

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

/** What a middleware may add to a call. */
const MAX_EXTRA_US = 1;
/**
 * What more is allowed to middleware that has work with every call: reading clocks, learning the upstream or the tool,
 * reading arguments and results.
 */
const OWN_WORK_US: Readonly<Record<string, number>> = {
  authorize: 4,
  breaker: 2,
  concurrency: 2,
  confirm: 2,
  log: 3,
  metrics: 4,
  pin: 3,
  "read-only": 2,
  redact: 20,
  shape: 1,
  trace: 8,
  validate: 4,
};
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

export const measureMiddleware: Measurement = async ({ onProgress, divisor }) => {
  const figures: Figure[] = [];
  const empty = chain((request, context, next) => next(request, context));
  const chains = [...MIDDLEWARE].map(([name, create]) => [name, chain(create(OPTIONS[name]))] as const);
  for (const [name, one] of [["Only calls `next`", empty] as const, ...chains]) {
    onProgress(`middleware ${name}: ${ROUNDS / divisor} slices of ${SLICE} calls with and without it`);
    const [without, through] = [await start(chain()), await start(one)];
    for (const { makeCalls } of [without, through]) await makeCalls(FIRST_CALLS / divisor);
    const subjects = { [BASELINE]: () => without.makeCalls(SLICE), [OURS]: () => through.makeCalls(SLICE) };
    const rounds = await takeTurns(subjects, ROUNDS / divisor);
    figures.push({
      ...createFigure("middleware", name, "µs", rounds),
      maxExtra: MAX_EXTRA_US + (OWN_WORK_US[name] ?? 0),
    });
    await Promise.all([without.close(), through.close()]);
  }
  return figures;
};
