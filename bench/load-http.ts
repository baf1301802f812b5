// The first half of `npm run load`: opens 10,000 sessions and 10,000 subscriptions on one server, as far as the limit of
// open files allows. Measures memory, the latency of another caller, whether each stream receives each change exactly
// once, and the response to one session too many. Stops after five minutes at the latest.

import { readFileSync } from "node:fs";
import { ManyCallers } from "./many-callers.ts";
import { MeasuredServer } from "./measured-server.ts";
import { HttpConnection, type HttpResponse } from "./raw-http.ts";

const MAX_SESSIONS = 10_000;
const PROCESSES = 4;
const CHANGES = 5;
const TIMEOUT_MS = 300_000;
const MAX_MEMORY_MB = 1_024;

/** The number of streams, and of subscriptions, that the limit of open files allows. Each takes one file. */
function maxStreams(): number {
  const limits = process.platform === "linux" ? readFileSync("/proc/self/limits", "utf8") : "";
  const [, files = "1024"] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
  return Math.min(MAX_SESSIONS, Math.floor((Number(files) - 500) / 2));
}

/** A caller that measures the latency of its calls. */
class LatencyProbe {
  readonly #connection: HttpConnection;
  readonly #path: string;
  #id = 0;

  constructor(url: string) {
    this.#connection = new HttpConnection(url);
    this.#path = new URL(url).pathname;
  }

  call(name: string): Promise<HttpResponse> {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const params = { name, arguments: { text: "hello" }, _meta };
    const headers = `MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: ${name}\r\n`;
    const body = JSON.stringify({ jsonrpc: "2.0", id: (this.#id += 1), method: "tools/call", params });
    return this.#connection.post(this.#path, headers, body);
  }

  async initialize(): Promise<HttpResponse> {
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "load", version: "1" } };
    return this.#connection.post(
      this.#path,
      "",
      JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
    );
  }

  /** Makes calls until `isDone` and returns the milliseconds of each, ascending. */
  async measure(isDone: (calls: number) => boolean): Promise<number[]> {
    const latencies: number[] = [];
    while (!isDone(latencies.length)) {
      const startedAt = performance.now();
      const { status } = await this.call("echo");
      if (status !== 200) throw new Error(`A call was answered with ${status}`);
      latencies.push(performance.now() - startedAt);
    }
    return latencies.toSorted((a, b) => a - b);
  }

  close(): void {
    this.#connection.close();
  }
}

const quantile = (sorted: readonly number[], part: number): number =>
  sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
const formatLatencies = (sorted: readonly number[]): string =>
  `p50 ${quantile(sorted, 0.5).toFixed(2)} ms, p99 ${quantile(sorted, 0.99).toFixed(2)} ms, longest ${(sorted.at(-1) ?? Number.NaN).toFixed(2)} ms`;
const print = (line: string): void => void process.stdout.write(`${line}\n`);

const faults: string[] = [];
function check(isGood: boolean, text: string): void {
  print(`${isGood ? "ok  " : "FAIL"} ${text}`);
  if (!isGood) faults.push(text);
}

async function load(server: MeasuredServer, callers: ManyCallers): Promise<void> {
  const streams = maxStreams();
  const counts = { sessions: MAX_SESSIONS, streams, subscriptions: streams };
  const probe = new LatencyProbe(server.url);
  const idle = await probe.measure((calls) => calls >= 3_000);
  print(`     alone: ${formatLatencies(idle)}; ${(await server.cost()).rssMb.toFixed(0)} MB`);

  const startedAt = performance.now();
  await callers.open(counts);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  print(
    `     ${counts.sessions} sessions, ${streams} of them with a stream, and ${streams} subscriptions, opened in ${seconds} s`,
  );
  const { rssMb } = await server.cost();
  check(rssMb < MAX_MEMORY_MB, `memory with all of them open: ${rssMb.toFixed(0)} MB (bound ${MAX_MEMORY_MB})`);

  const loaded = await probe.measure((calls) => calls >= 3_000);
  print(`     with all of them open: ${formatLatencies(loaded)}`);

  const announcer = new LatencyProbe(server.url);
  const during: number[] = [];
  const delays: number[] = [];
  for (let change = 1; change <= CHANGES; change += 1) {
    let isReceived = false;
    const probing = probe.measure(() => isReceived);
    const announcedAt = performance.now();
    await announcer.call("announce");
    await callers.untilReceived(change);
    delays.push(performance.now() - announcedAt);
    isReceived = true;
    during.push(...(await probing));
  }
  print(`     while ${2 * streams} streams are notified: ${formatLatencies(during.toSorted((a, b) => a - b))}`);
  print(`     until the last was notified: ${delays.map((time) => time.toFixed(0)).join(", ")} ms`);
  const { min, max, ended, streams: open } = await callers.counts();
  check(open === 2 * streams && ended === 0, `${open} streams were opened, ${ended} were ended`);
  check(min === CHANGES && max === CHANGES, `each received ${CHANGES} changes once: min ${min}, max ${max}`);

  const late = await probe.initialize();
  const isRejected = late.status === 503 && late.head.includes("retry-after");
  check(isRejected, `one session more is answered with ${late.status}${isRejected ? " with Retry-After" : ""}`);

  const peak = (await server.cost()).rssMb;
  check(peak < MAX_MEMORY_MB, `memory afterwards: ${peak.toFixed(0)} MB (bound ${MAX_MEMORY_MB})`);
  await callers.stop();
  const after = await probe.measure((calls) => calls >= 3_000);
  print(`     after they disconnected: ${formatLatencies(after)}; ${(await server.cost()).rssMb.toFixed(0)} MB`);
  announcer.close();
  probe.close();
}

const server = await MeasuredServer.start("many-callers-server.js");
const callers = new ManyCallers(server.url, PROCESSES);
const timer = setTimeout(() => {
  faults.push("timed out");
  void Promise.all([callers.stop(), server.stop()]).then(() => process.exit(1));
}, TIMEOUT_MS);
try {
  await load(server, callers);
} finally {
  clearTimeout(timer);
  await callers.stop();
  await server.stop();
}
if (faults.length > 0) process.exitCode = 1;
