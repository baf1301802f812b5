// What each built-in middleware adds to a `tools/call` in the same process, compared with a chain without middleware, and
// how much of that is beyond its own work: what the same job adds if it is written by hand, in front of the server and
// behind the same empty chain (programs/bare-middleware.js). All three take turns. The middleware passes the call on.

import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chain, createServer, type Chain, type Handler, type Middleware } from "catenary";
import * as middleware from "catenary/middleware";
import { serveTransport } from "catenary/stdio";
import { memoryPair } from "catenary/testing";
import { NEWEST } from "../src/protocol/revisions/index.ts";
import { BASELINE, BEYOND, createFigure, OURS, takeTurns, type Figure } from "./figures.ts";
import { programPath } from "./measured-server.ts";
import type { Measurement } from "./measurement.ts";

/** The built-in middleware, by the names that a config uses. */
const MIDDLEWARE = new Map(
  Object.entries(middleware).map(([name, create]) => [
    name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
    create as (options: unknown) => Middleware,
  ]),
);

/** Options with which the middleware passes the call on. Those that are not here are created without options. */
const OPTIONS: Readonly<Record<string, unknown>> = {
  audit: { methods: ["prompts/get"], write: () => undefined },
  authorize: { rules: [{ allow: true, tools: ["*"] }] },
  concurrency: { calls: 1e9 },
  confirm: { include: ["delete*"] },
  describe: { tools: { other: { title: "Another" } } },
  filter: { prompts: { exclude: ["draft*"] } },
  inject: { tools: { other: { arguments: { key: "value" } } } },
  log: { level: "error" },
  pin: { file: join(tmpdir(), `catenary-bench-${process.pid}`, "pins.json") },
  "rate-limit": { calls: 1e9, per: "second" },
  "read-only": { include: ["*"] },
  retry: { methods: ["prompts/get"] },
  rename: { tools: { other: "another" } },
  timeout: { totalMs: 60_000, methods: ["prompts/get"] },
};

/** What a middleware may cost on a call beyond its own work. */
const BOUND = { extra: 1 };
/** The name of the column. */
const OWN_WORK = "Own work";
/** Before it is measured, every middleware gets these calls: what is shared is then compiled for all of them. */
const FIRST_CALLS = 10_000;
/** So many that the collections of garbage that a middleware causes are in each slice. */
const SLICE = 2_000;
const ROUNDS = 50;

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
async function start(middleware: Chain, target: Handler = server): Promise<Subject> {
  const gateway = middleware.to(target);
  const [client, transport] = memoryPair();
  const served = await serveTransport(gateway, transport);
  let answered: (message: unknown) => void = () => undefined;
  await client.start((inbound) => inbound.kind === "message" && answered(inbound.message));
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

/** By the name of the middleware: the server behind one that was written by hand. */
async function loadBareHandlers(): Promise<ReadonlyMap<string, Handler>> {
  const { href } = pathToFileURL(programPath("bare-middleware.js"));
  const { createBareHandlers } = (await import(href)) as {
    readonly createBareHandlers: (server: Handler) => ReadonlyMap<string, Handler>;
  };
  return createBareHandlers(server);
}

/** What else runs on the machine only adds to the time, so the fastest rounds say most. */
function firstDecile(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 10)] ?? Number.NaN;
}

export const measureMiddleware: Measurement = async ({ onProgress, divisor, only }) => {
  const unknown = only?.find((name) => !MIDDLEWARE.has(name));
  if (unknown !== undefined) {
    throw new Error(`Unknown middleware: ${unknown}. Expected one of ${[...MIDDLEWARE.keys()].join(", ")}`);
  }
  const without = await start(chain());
  const subjects = new Map<string, Subject>();
  subjects.set("Only calls `next`", await start(chain((request, context, next) => next(request, context))));
  for (const [name, create] of MIDDLEWARE) subjects.set(name, await start(chain(create(OPTIONS[name]))));
  const bare = new Map<string, Subject>();
  for (const [name, handler] of await loadBareHandlers()) bare.set(name, await start(chain(), handler));
  const all = [without, ...subjects.values(), ...bare.values()];
  for (const { makeCalls } of all) await makeCalls(FIRST_CALLS / divisor);
  const figures: Figure[] = [];
  for (const [name, ours] of subjects) {
    if (only?.includes(name) === false) continue;
    onProgress(`middleware ${name}: ${ROUNDS / divisor} slices of ${SLICE} calls with and without it`);
    const byHand = bare.get(name);
    const {
      base = [],
      through = [],
      own = base,
    } = await takeTurns(
      {
        base: () => without.makeCalls(SLICE),
        through: () => ours.makeCalls(SLICE),
        ...(byHand && { own: () => byHand.makeCalls(SLICE) }),
      },
      ROUNDS / divisor,
    );
    const [usBase, usThrough, usOwn] = [firstDecile(base), firstDecile(through), firstDecile(own)];
    const values = {
      [BASELINE]: [usBase],
      [OURS]: [usThrough],
      [OWN_WORK]: [usOwn],
      [BEYOND]: [usBase + usThrough - usOwn],
    };
    figures.push(createFigure("middleware", name, "µs", values, BOUND));
  }
  for (const { close } of all) await close();
  return figures;
};
