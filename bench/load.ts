// `npm run load`: 10,000 sessions and 10,000 listens open at one server, as far as the limit of open files allows.
// What memory they take, whether a caller is answered as fast beside them, whether each hears each change exactly
// once, and what the one too many is told. It ends by itself, within five minutes, and with it all that it started.

import { readFileSync } from "node:fs";
import { MeasuredChild } from "./child.ts";
import { Crowd } from "./crowd.ts";
import { Connection, type Answer } from "./http-client.ts";

const MOST = 10_000;
const PROCESSES = 4;
const NEWS = 5;
const LONGEST_MS = 300_000;
const MEMORY_MB = 1_024;

/** Half of the files that a process may open, less some for everything else: a session's stream and a listen each take one. */
function affordable(): number {
  const limits = process.platform === "linux" ? readFileSync("/proc/self/limits", "utf8") : "";
  const [, files = "1024"] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
  return Math.min(MOST, Math.floor((Number(files) - 500) / 2));
}

/** One caller that calls again and again, and knows how long each call took. */
class Probe {
  readonly #connection: Connection;
  readonly #path: string;
  #id = 0;

  constructor(url: string) {
    this.#connection = new Connection(url);
    this.#path = new URL(url).pathname;
  }

  call(name: string): Promise<Answer> {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const params = { name, arguments: { text: "hello" }, _meta };
    const headers = `MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: ${name}\r\n`;
    const body = JSON.stringify({ jsonrpc: "2.0", id: (this.#id += 1), method: "tools/call", params });
    return this.#connection.post(this.#path, headers, body);
  }

  async initialize(): Promise<Answer> {
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "late", version: "1" } };
    return this.#connection.post(
      this.#path,
      "",
      JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
    );
  }

  /** Milliseconds of each call, until it is told to stop. */
  async latencies(isOver: (calls: number) => boolean): Promise<number[]> {
    const taken: number[] = [];
    while (!isOver(taken.length)) {
      const begin = performance.now();
      const { status } = await this.call("echo");
      if (status !== 200) throw new Error(`A caller was answered ${status}`);
      taken.push(performance.now() - begin);
    }
    return taken.toSorted((a, b) => a - b);
  }

  close(): void {
    this.#connection.close();
  }
}

const at = (sorted: readonly number[], part: number): number => sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
const ms = (sorted: readonly number[]): string =>
  `p50 ${at(sorted, 0.5).toFixed(2)} ms, p99 ${at(sorted, 0.99).toFixed(2)} ms, longest ${(sorted.at(-1) ?? Number.NaN).toFixed(2)} ms`;
const say = (text: string): void => void process.stdout.write(`${text}\n`);

const faults: string[] = [];
function hold(isTrue: boolean, text: string): void {
  say(`${isTrue ? "ok  " : "FAIL"} ${text}`);
  if (!isTrue) faults.push(text);
}

async function load(server: MeasuredChild, crowd: Crowd): Promise<void> {
  const streams = affordable();
  const size = { sessions: MOST, streams, listens: streams };
  const probe = new Probe(server.url);
  const idle = await probe.latencies((calls) => calls >= 3_000);
  say(`     alone: ${ms(idle)}; ${(await server.costs()).rssMb.toFixed(0)} MB`);

  const begin = performance.now();
  await crowd.open(size);
  const seconds = ((performance.now() - begin) / 1000).toFixed(1);
  say(
    `     ${size.sessions} sessions, ${streams} of them with a stream, and ${streams} listens, opened in ${seconds} s`,
  );
  const { rssMb } = await server.costs();
  hold(rssMb < MEMORY_MB, `memory with all of them open: ${rssMb.toFixed(0)} MB (bound ${MEMORY_MB})`);

  const beside = await probe.latencies((calls) => calls >= 3_000);
  say(`     beside them: ${ms(beside)}`);

  const announcer = new Probe(server.url);
  const during: number[] = [];
  const spread: number[] = [];
  for (let news = 1; news <= NEWS; news += 1) {
    let over = false;
    const probing = probe.latencies(() => over);
    const told = performance.now();
    await announcer.call("announce");
    await crowd.heard(news);
    spread.push(performance.now() - told);
    over = true;
    during.push(...(await probing));
  }
  say(`     while ${2 * streams} are told: ${ms(during.toSorted((a, b) => a - b))}`);
  say(`     until the last has heard: ${spread.map((time) => time.toFixed(0)).join(", ")} ms`);
  const { least, most, hungUp, ...counts } = await crowd.counts();
  hold(counts.streams === 2 * streams && hungUp === 0, `${counts.streams} streams are open, ${hungUp} were ended`);
  hold(least === NEWS && most === NEWS, `each has heard ${NEWS} changes once: least ${least}, most ${most}`);

  const late = await probe.initialize();
  const isTold = late.status === 503 && late.head.includes("retry-after");
  hold(isTold, `one session more is answered ${late.status}${isTold ? " with Retry-After" : ""}`);

  const peak = (await server.costs()).rssMb;
  hold(peak < MEMORY_MB, `memory after all that: ${peak.toFixed(0)} MB (bound ${MEMORY_MB})`);
  await crowd.leave();
  const after = await probe.latencies((calls) => calls >= 3_000);
  say(`     when they have gone: ${ms(after)}; ${(await server.costs()).rssMb.toFixed(0)} MB`);
  announcer.close();
  probe.close();
}

const server = await MeasuredChild.start("load-server.js");
const crowd = new Crowd(server.url, PROCESSES);
const watch = setTimeout(() => {
  faults.push("it took too long");
  void Promise.all([crowd.leave(), server.end()]).then(() => process.exit(1));
}, LONGEST_MS);
try {
  await load(server, crowd);
} finally {
  clearTimeout(watch);
  await crowd.leave();
  await server.end();
}
if (faults.length > 0) process.exitCode = 1;
