// The time of a trivial Lisp evaluation over stdio, compared with a loop inside the image that reads a JSON line,
// evaluates and answers; and the time to the first result with a cached core. It measures time and not CPU, since our
// server has two processes and the loop one. A relay that only copies bytes shows what the second process costs.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { INITIALIZE, LineCaller } from "./callers.ts";
import { BASELINE, createFigure, median, OURS, takeTurns } from "./figures.ts";
import { programPath } from "./measured-server.ts";
import type { Measurement } from "./measurement.ts";

const CALLS = 5_000;
const WARM_UP = 3_000;
const ROUNDS = 3;
const STARTS = 9;
/** The core is saved in the background after the first session has begun. */
const CORE_SAVE_MS = 15_000;

const SBCL = ["--noinform", "--no-sysinit", "--no-userinit", "--disable-debugger", "--load"];
const BARE_LOOP = ["sbcl", ...SBCL, programPath("bare-lisp.lisp")];
const RELAYED_LOOP = [process.execPath, programPath("bare-relay.js"), ...BARE_LOOP];
const OUR_SERVER = [process.execPath, programPath("catenary-lisp.js")];

/** A server over stdio that gets one request at a time. */
class LispServer {
  readonly #child: ChildProcess;
  readonly #caller: LineCaller;

  constructor([command = "", ...args]: readonly string[], cache: string) {
    const env = { ...process.env, CATENARY_CACHE: cache };
    this.#child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], env });
    this.#caller = new LineCaller(this.#child);
  }

  static async start(command: readonly string[], cache: string): Promise<LispServer> {
    const server = new LispServer(command, cache);
    if (command === OUR_SERVER) await server.#caller.request(INITIALIZE);
    return server;
  }

  async evaluate(id: number): Promise<void> {
    const params = '{"name":"evaluate-lisp","arguments":{"code":"(+ 1 2)"}}';
    const answer = await this.#caller.request(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`);
    if (!answer.includes(`"id":${id},`) || !answer.includes('"text":"=> 3"'))
      throw new Error(`Unexpected result: ${answer}`);
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, "exit");
    this.#child.stdin?.end();
    await exited;
  }
}

/** The median of the microseconds from a request to its response. */
async function measureLatency(command: readonly string[], cache: string): Promise<number> {
  const server = await LispServer.start(command, cache);
  for (let id = 1; id <= WARM_UP; id += 1) await server.evaluate(id);
  const times: number[] = [];
  for (let id = WARM_UP + 1; id <= WARM_UP + CALLS; id += 1) {
    const startedAt = performance.now();
    await server.evaluate(id);
    times.push((performance.now() - startedAt) * 1000);
  }
  await server.stop();
  return median(times);
}

/** Milliseconds from the start of the program to its first result. It may run on, to save a core. */
async function measureStart(command: readonly string[], cache: string, runsOnMs = 0): Promise<number> {
  const startedAt = performance.now();
  const server = await LispServer.start(command, cache);
  await server.evaluate(1);
  const ms = performance.now() - startedAt;
  await pause(runsOnMs);
  await server.stop();
  return ms;
}

export const measureLiveLisp: Measurement = async ({ onProgress }) => {
  if (spawnSync("sbcl", ["--version"]).status !== 0) {
    onProgress("left out live Lisp: SBCL is not installed (apt-get install sbcl)");
    return [];
  }
  const cache = mkdtempSync(join(tmpdir(), "catenary-bench-"));
  try {
    onProgress("live Lisp: saving a core first");
    await measureStart(OUR_SERVER, cache, CORE_SAVE_MS);
    onProgress(`live Lisp: ${ROUNDS} rounds of ${CALLS} evaluations, ${STARTS} starts`);
    const loops = {
      [BASELINE]: () => measureLatency(BARE_LOOP, cache),
      [OURS]: () => measureLatency(OUR_SERVER, cache),
      Relay: () => measureLatency(RELAYED_LOOP, cache),
    };
    const starts = {
      [BASELINE]: () => measureStart(BARE_LOOP, cache),
      [OURS]: () => measureStart(OUR_SERVER, cache),
    };
    return [
      createFigure("live", "Lisp evaluation over stdio", "µs", await takeTurns(loops, ROUNDS), { ratio: 4.7 }),
      createFigure("live", "First Lisp result over stdio", "ms", await takeTurns(starts, STARTS), { ratio: 6.2 }),
    ];
  } finally {
    rmSync(cache, { recursive: true, force: true });
  }
};
