// What a trivial Lisp evaluation takes, seen from the client's side over stdio, beside a loop inside the image that
// reads a JSON line, evaluates and answers; and how soon the first answer comes when the core is in the cache. Time,
// not CPU: two processes take part in the one, one in the other. What the second process costs before it does anything is
// measured too.

import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Figure } from "./main.ts";
import { median } from "./median.ts";

const CALLS = 5_000;
const WARM_UP = 3_000;
const ROUNDS = 3;
const STARTS = 9;
/** The project's promises. */
const MOST_TIMES = 2;
const MOST_START_MS = 340;
/** A core is saved in the background after the first session has begun. */
const CORE_MS = 15_000;

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const BARE = [
  "sbcl",
  "--noinform",
  "--no-sysinit",
  "--no-userinit",
  "--disable-debugger",
  "--load",
  path("bare-lisp.lisp"),
];
const RELAYED = [process.execPath, path("bare-relay.js"), ...BARE];
const OURS = [process.execPath, path("catenary-lisp.js")];

const INITIALIZE =
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}';
const evaluate = (id: number): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"evaluate-lisp","arguments":{"code":"(+ 1 2)"}}}`;

/** A server on its stdio, asked one line at a time. */
class Program {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  #rest = "";
  #wake: (line: string) => void = () => undefined;

  constructor([command = "", ...args]: readonly string[], cache: string) {
    const env = { ...process.env, CATENARY_CACHE: cache };
    this.#child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], env });
    this.#child.stdout.setEncoding("utf8").on("data", (text: string) => {
      const lines = (this.#rest + text).split("\n");
      this.#rest = lines.pop() ?? "";
      for (const line of lines) this.#wake(line);
    });
  }

  ask(line: string): Promise<string> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      this.#child.stdin.write(`${line}\n`);
    });
  }

  async evaluate(id: number): Promise<void> {
    const answer = await this.ask(evaluate(id));
    if (!answer.includes(`"id":${id},`) || !answer.includes('"text":"=> 3"')) throw new Error(`Not 3: ${answer}`);
  }

  async end(): Promise<void> {
    const exited = once(this.#child, "exit");
    this.#child.stdin.end();
    await exited;
  }
}

/** The median of microseconds from a line out to its answer. */
async function latency(command: readonly string[], cache: string): Promise<number> {
  const program = new Program(command, cache);
  if (command === OURS) await program.ask(INITIALIZE);
  for (let id = 1; id <= WARM_UP; id += 1) await program.evaluate(id);
  const times: number[] = [];
  for (let id = WARM_UP + 1; id <= WARM_UP + CALLS; id += 1) {
    const begun = performance.now();
    await program.evaluate(id);
    times.push((performance.now() - begun) * 1000);
  }
  await program.end();
  return median(times);
}

/** Milliseconds from the start of the program to its first evaluation's answer. */
async function firstAnswer(cache: string): Promise<number> {
  const begun = performance.now();
  const program = new Program(OURS, cache);
  await program.ask(INITIALIZE);
  await program.evaluate(1);
  const ms = performance.now() - begun;
  await program.end();
  return ms;
}

/** Leaves a core in the cache, as the first use of a machine does. */
async function warm(cache: string): Promise<void> {
  const program = new Program(OURS, cache);
  await program.ask(INITIALIZE);
  await program.evaluate(1);
  await pause(CORE_MS);
  await program.end();
}

export async function liveCosts(tell: (text: string) => void): Promise<Figure[]> {
  const cache = mkdtempSync(join(tmpdir(), "catenary-bench-"));
  try {
    tell("live Lisp: a core is saved first");
    await warm(cache);
    const bare: number[] = [];
    const relayed: number[] = [];
    const ours: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      tell(`live Lisp: round ${round + 1} of ${ROUNDS}`);
      bare.push(await latency(BARE, cache));
      relayed.push(await latency(RELAYED, cache));
      ours.push(await latency(OURS, cache));
    }
    const starts: number[] = [];
    for (let start = 0; start < STARTS; start += 1) starts.push(await firstAnswer(cache));
    return [
      {
        name: "a trivial Lisp evaluation over stdio, p50",
        value: median(ours) / median(bare),
        unit: "x a bare loop in the image",
        bound: MOST_TIMES,
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
        bound: MOST_START_MS,
        detail: `slowest of ${STARTS}: ${Math.max(...starts).toFixed(0)} ms`,
      },
    ];
  } finally {
    rmSync(cache, { recursive: true, force: true });
  }
}
