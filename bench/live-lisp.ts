// The time of a trivial Lisp evaluation over stdio, compared with a loop inside the image that reads a JSON line,
// evaluates and answers; and the time to the first result with a cached core. It measures time and not CPU, since our
// server has two processes and the loop one. A relay that only copies bytes shows what the second process costs.

import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { median, programPath, type Measurement } from "./measurement.ts";

const CALLS = 5_000;
const WARM_UP = 3_000;
const ROUNDS = 3;
const STARTS = 9;
/** The limits of the project. */
const MAX_RATIO = 2;
const MAX_START_MS = 340;
/** The core is saved in the background after the first session has begun. */
const CORE_SAVE_MS = 15_000;

const BARE = [
  "sbcl",
  "--noinform",
  "--no-sysinit",
  "--no-userinit",
  "--disable-debugger",
  "--load",
  programPath("bare-lisp.lisp"),
];
const RELAYED = [process.execPath, programPath("bare-relay.js"), ...BARE];
const OURS = [process.execPath, programPath("catenary-lisp.js")];

const INITIALIZE =
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}';
const evaluate = (id: number): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"evaluate-lisp","arguments":{"code":"(+ 1 2)"}}}`;

/** A server over stdio that gets one request at a time. */
class Program {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  #rest = "";
  #onLine: (line: string) => void = () => undefined;

  constructor([command = "", ...args]: readonly string[], cache: string) {
    const env = { ...process.env, CATENARY_CACHE: cache };
    this.#child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], env });
    this.#child.stdout.setEncoding("utf8").on("data", (text: string) => {
      const lines = (this.#rest + text).split("\n");
      this.#rest = lines.pop() ?? "";
      for (const line of lines) this.#onLine(line);
    });
  }

  request(line: string): Promise<string> {
    return new Promise((resolve) => {
      this.#onLine = resolve;
      this.#child.stdin.write(`${line}\n`);
    });
  }

  async evaluate(id: number): Promise<void> {
    const answer = await this.request(evaluate(id));
    if (!answer.includes(`"id":${id},`) || !answer.includes('"text":"=> 3"'))
      throw new Error(`Unexpected result: ${answer}`);
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, "exit");
    this.#child.stdin.end();
    await exited;
  }
}

/** The median of the microseconds from a request to its response. */
async function measureLatency(command: readonly string[], cache: string): Promise<number> {
  const program = new Program(command, cache);
  if (command === OURS) await program.request(INITIALIZE);
  for (let id = 1; id <= WARM_UP; id += 1) await program.evaluate(id);
  const times: number[] = [];
  for (let id = WARM_UP + 1; id <= WARM_UP + CALLS; id += 1) {
    const startedAt = performance.now();
    await program.evaluate(id);
    times.push((performance.now() - startedAt) * 1000);
  }
  await program.stop();
  return median(times);
}

/** Milliseconds from the start of the program to its first result. */
async function measureStart(cache: string): Promise<number> {
  const startedAt = performance.now();
  const program = new Program(OURS, cache);
  await program.request(INITIALIZE);
  await program.evaluate(1);
  const ms = performance.now() - startedAt;
  await program.stop();
  return ms;
}

/** Saves a core in the cache, as the first use does. */
async function saveCore(cache: string): Promise<void> {
  const program = new Program(OURS, cache);
  await program.request(INITIALIZE);
  await program.evaluate(1);
  await pause(CORE_SAVE_MS);
  await program.stop();
}

export const measureLiveLisp: Measurement = async (onProgress) => {
  const cache = mkdtempSync(join(tmpdir(), "catenary-bench-"));
  try {
    onProgress("live Lisp: saving a core first");
    await saveCore(cache);
    const bare: number[] = [];
    const relayed: number[] = [];
    const ours: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      onProgress(`live Lisp: round ${round + 1} of ${ROUNDS}`);
      bare.push(await measureLatency(BARE, cache));
      relayed.push(await measureLatency(RELAYED, cache));
      ours.push(await measureLatency(OURS, cache));
    }
    const starts: number[] = [];
    for (let start = 0; start < STARTS; start += 1) starts.push(await measureStart(cache));
    return [
      {
        name: "a trivial Lisp evaluation over stdio, p50",
        value: median(ours) / median(bare),
        unit: "x a bare loop in the image",
        bound: MAX_RATIO,
        detail: `${median(ours).toFixed(0)} us, bare ${median(bare).toFixed(0)} us`,
      },
      {
        name: "the bare loop behind a process that only copies bytes, p50",
        value: median(relayed) / median(bare),
        unit: "x a bare loop in the image",
        detail: `${median(relayed).toFixed(0)} us`,
      },
      {
        name: "start to the first Lisp answer, warm core",
        value: median(starts),
        unit: "ms",
        bound: MAX_START_MS,
        detail: `slowest of ${STARTS}: ${Math.max(...starts).toFixed(0)} ms`,
      },
    ];
  } finally {
    rmSync(cache, { recursive: true, force: true });
  }
};
