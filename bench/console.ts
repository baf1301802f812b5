// What the console costs the gateway: a filter over 100,000 rows, the memory of 100,000 rows, what the log of calls and
// the feed add to a call in the same process. Run it with `node --expose-gc --import tsx bench/console.ts`.

import { chain } from "../src/chain/chain.ts";
import type { Gateway } from "../src/chain/gateway.ts";
import { CallLog } from "../src/console/call-log.ts";
import { Feed } from "../src/console/feed.ts";
import { filterRows, parseFilter } from "../src/console/filter.ts";
import { KEPT } from "../src/console/kept-calls.ts";
import { TrafficStats } from "../src/console/traffic-stats.ts";
import type { CallRow, RowStatus } from "../src/console/types.ts";
import type { Handler, Request } from "../src/core/handler.ts";
import { fakeContext } from "../test/support/handlers/fake-client.ts";

const ROWS = 100_000;
const CALLS = 20_000;
const ROUNDS = 9;

const collect = (): void => (globalThis as { gc?: () => void }).gc?.();
const say = (what: string, value: number, unit: string): void => {
  process.stdout.write(`${what.padEnd(58)} ${value.toFixed(unit === "µs" ? 2 : 1).padStart(8)} ${unit}\n`);
};

/** The time of the processor, which other programs do not lengthen. */
function cpuMs(work: () => unknown): number {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1_000;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}

function measureFilters(): void {
  const statuses: readonly RowStatus[] = ["ok", "ok", "ok", "error", "cancelled"];
  const made: CallRow[] = Array.from({ length: ROWS }, (_, id) => ({
    ...{ id: id + 1, kind: "call", at: Date.now() - (ROWS - id) * 50, ms: id % 1_500, method: "tools/call" },
    ...{ name: `tool_${id % 400}`, server: `server-${id % 9}`, client: `Client ${id % 6} 1.0`, sent: id % 5_000 },
    ...{
      status: statuses[id % 5] ?? "ok",
      received: (id * 7) % 900_000,
      error: id % 5 === 3 ? "tool_error" : undefined,
    },
    ...(id % 10 === 9 && { parent: id, kind: "retry" as const }),
  }));
  // As a page gets them.
  const rows = JSON.parse(JSON.stringify(made)) as CallRow[];
  for (const text of [
    "status:error",
    "server:server-3 tool:tool_1* dur:>500ms client:client -method:ping since:10m",
    "tool_12",
    '"*ool*3*" size:>100kb',
  ]) {
    const times = Array.from({ length: ROUNDS }, () => cpuMs(() => filterRows(rows, parseFilter(text))));
    say(`Filter ${text}`.slice(0, 58), median(times), "ms");
  }
}

const RESULT = { resultType: "complete", content: [{ type: "text", text: "hello" }] };
const handler: Handler = () => Promise.resolve(RESULT);
const request = (id: number): Request => ({
  method: "tools/call",
  params: { name: `tool_${id % 400}`, arguments: { text: `hello ${id}` } },
});
const { context } = fakeContext({ name: "bench" });

async function callMany(gateway: Gateway, count: number): Promise<void> {
  for (let id = 0; id < count; id += 1) await gateway(request(id), context);
}

async function measureMemory(): Promise<void> {
  const gateway = chain().to({ notes: handler });
  const stats = new TrafficStats();
  collect();
  const before = process.memoryUsage().heapUsed;
  const log = new CallLog({
    limits: { rows: ROWS, bytes: 0 },
    onBegan: (row, of) => stats.began(row, of),
    onEnded: (row, caller) => stats.ended(row, caller),
  });
  const stop = gateway.observe(log.reader);
  await callMany(gateway, ROWS);
  stop();
  collect();
  say("Memory of 100,000 rows", (process.memoryUsage().heapUsed - before) / 1024 / 1024, "MB");
  say("Bytes of one row as JSON", JSON.stringify(log.kept.rows()).length / ROWS, "B");
}

async function measureCalls(): Promise<void> {
  const variants: Readonly<Record<string, (gateway: Gateway) => void>> = {
    "no reader": () => undefined,
    "a reader that wants steps and messages": (gateway) =>
      void gateway.observe({ steps: true, asked: () => undefined, passed: () => undefined }),
    "the log": (gateway) => void gateway.observe(new CallLog({ limits: KEPT }).reader),
    "the log and a page that looks": (gateway) => {
      const log = new CallLog({ limits: KEPT });
      const feed = new Feed(log);
      const sink = { send: () => undefined, sendJson: () => undefined, end: () => undefined, bufferedBytes: 0 };
      feed.add({ topics: new Set(["calls"]), filter: parseFilter(""), sink }, new AbortController().signal);
      gateway.observe(log.reader);
    },
  };
  const gateways = Object.entries(variants).map(([name, prepare]) => {
    const gateway = chain().to({ notes: handler });
    prepare(gateway);
    return { name, gateway, times: [] as number[] };
  });
  for (const { gateway } of gateways) await callMany(gateway, CALLS);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const { gateway, times } of gateways) {
      const start = process.cpuUsage();
      await callMany(gateway, CALLS);
      const { user, system } = process.cpuUsage(start);
      times.push((user + system) / CALLS);
    }
  }
  for (const { name, times } of gateways)
    say(`CPU of a call through a gateway in memory: ${name}`, median(times), "µs");
}

measureFilters();
await measureMemory();
await measureCalls();
