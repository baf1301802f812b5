// A trial: a gateway with its upstreams, callers on all its transports, and kill -9 of one upstream process after another
// at random moments that follow from a seed. It stops by itself and leaves no process behind.

import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { childTransport, type ChildTransport } from "../../src/transport/child-process.ts";
import { BusyCaller, type CallerOptions } from "./busy-caller.ts";
import { createRandom, type Random } from "./random.ts";
import { evaluateCalls, type Evaluation, type Kill } from "./evaluate-calls.ts";
import { withEnvironment, commandLine, processes, type ProcessInfo } from "../support/processes.ts";
import { countTransport, countFetch, ResponseCounter } from "./response-counter.ts";

/** This long after a kill, the calls that it hit must have been answered, and the next call must work. */
const QUIET_MS = 1_000;

export interface Trial {
  readonly title: string;
  /** `NAME=REVISIONS` of each upstream; several are merged. */
  readonly upstreams: readonly string[];
  readonly callers: readonly CallerOptions[];
}

export interface TrialReport extends Evaluation {
  readonly title: string;
  readonly kills: number;
  readonly seconds: number;
}

const GATEWAY = fileURLToPath(new URL("gateway-program.js", import.meta.url));
const MARK = "CATENARY_FAULTS";
/** The longest time between two kills. */
const MAX_PAUSE_MS = 240;
/** Percent of the kills that hit all processes at once, and that may hit a process that is still starting. */
const KILL_ALL_PERCENT = 3;
const KILL_EARLY_PERCENT = 15;
/** After this many kills, the trial checks that everything works. */
const CHECK_INTERVAL = 50;
/** For what should happen soon. A busy machine may stall for most of a minute. */
const WAIT_MS = 60_000;
/** The time limit of a trial, and what each kill adds to it. */
const MIN_TIMEOUT_MS = 60_000;
const TIMEOUT_PER_KILL_MS = 2_000;

export async function runTrial(trial: Trial, kills: number, seed: number): Promise<TrialReport> {
  const startedAt = performance.now();
  const running = new RunningTrial(trial, createRandom(seed));
  try {
    await running.open();
    await running.kill(kills);
    await running.settle();
  } finally {
    await running.close();
  }
  return { title: trial.title, ...running.evaluate(), seconds: (performance.now() - startedAt) / 1_000 };
}

class RunningTrial {
  readonly #trial: Trial;
  readonly #random: Random;
  readonly #mark = randomUUID();
  readonly #folder = mkdtempSync(join(tmpdir(), "catenary-faults-"));
  readonly #log = join(this.#folder, "ran");
  readonly #callers: BusyCaller[];
  readonly #counters = new Map<string, ResponseCounter>();
  readonly #kills: Kill[] = [];
  /** All processes that the gateway was seen to start. */
  readonly #started = new Map<string, ProcessInfo>();
  readonly #faults: string[] = [];
  readonly #up = new Set<number>();
  #gateway: ChildTransport | undefined;

  constructor(trial: Trial, random: Random) {
    this.#trial = trial;
    this.#random = random;
    const upstreams = trial.upstreams.map((upstream) => upstream.slice(0, upstream.indexOf("=")));
    this.#callers = trial.callers.map((options) => new BusyCaller(options, upstreams, random));
  }

  /** The caller on stdio is the one that starts the gateway. */
  async open(): Promise<void> {
    const stdio = this.#callers.find(({ options }) => options.transport === "stdio");
    if (stdio === undefined) throw new TypeError("A trial needs a caller on stdio");
    let stderr = "";
    let onUrl = (_url: string): void => undefined;
    const urlReceived = new Promise<string>((resolve) => {
      onUrl = resolve;
    });
    this.#gateway = childTransport({
      command: process.execPath,
      args: [GATEWAY, "--log", this.#log, ...this.#trial.upstreams.flatMap((upstream) => ["--upstream", upstream])],
      env: { [MARK]: this.#mark, CATENARY_CACHE: join(this.#folder, "cache") },
      onStderr: (chunk) => {
        stderr += chunk.toString();
        if (stderr.startsWith("http") && stderr.includes("\n")) onUrl(stderr.slice(0, stderr.indexOf("\n")));
      },
    });
    // Rejects where the gateway cannot be started.
    const first = stdio.open(countTransport(this.#gateway, this.#counter(stdio)), { timeoutMs: 0 });
    const url = (await Promise.race([urlReceived, first])) ?? (await urlReceived);
    const others = this.#callers.filter((caller) => caller !== stdio);
    await Promise.all([
      first,
      ...others.map((caller) => {
        const target = caller.options.transport === "legacy sse" ? new URL("/sse", url) : url;
        return caller.open(target, { timeoutMs: 0, fetch: countFetch(this.#counter(caller)) });
      }),
    ]);
    // One after the other, so that each upstream is known to ask before several callers can be asked at once.
    for (const caller of this.#callers) await caller.probe();
    for (const caller of this.#callers) caller.begin();
  }

  async kill(count: number): Promise<void> {
    const deadline = performance.now() + MIN_TIMEOUT_MS + count * TIMEOUT_PER_KILL_MS;
    while (this.#kills.length < count) {
      if (performance.now() > deadline) {
        const { child } = this.#gateway ?? {};
        const { state = "gone" } = processes().find(({ pid }) => pid === child?.pid) ?? {};
        const problem = `after ${this.#kills.length} of ${count} kills no worker was left to kill`;
        this.#faults.push(`${problem}; the gateway is ${state}: ${child?.stderrTail() ?? ""}`);
        return;
      }
      await after(this.#random.next() * MAX_PAUSE_MS);
      const isEarly = this.#random.percent(KILL_EARLY_PERCENT);
      const workers = this.#workers().filter(({ pid }) => isEarly || this.#isUp(pid));
      if (workers.length === 0) continue;
      const isAll = this.#random.percent(KILL_ALL_PERCENT);
      const chosen = isAll ? workers.slice(0, count - this.#kills.length) : [this.#random.pick(workers)];
      for (const { pid } of chosen) this.#killOne(pid);
      if (this.#kills.length % CHECK_INTERVAL < chosen.length) await this.#check();
    }
  }

  /** After the last kill, checks that every call is answered, the next ones work, and subscriptions are alive. */
  async settle(): Promise<void> {
    await this.#check();
    await Promise.all(this.#callers.map((caller) => caller.stop()));
    for (const caller of this.#callers) await caller.checkSubscription(WAIT_MS);
  }

  async close(): Promise<void> {
    this.#workers();
    const stdio = this.#callers.filter(({ options }) => options.transport === "stdio");
    await Promise.allSettled(this.#callers.filter((caller) => !stdio.includes(caller)).map((caller) => caller.close()));
    await Promise.allSettled(stdio.map((caller) => caller.close()));
    await this.#gateway?.close();
    const deadline = performance.now() + WAIT_MS;
    while (this.#remaining().length > 0 && performance.now() < deadline) await after(20);
    for (const pid of this.#remaining()) {
      this.#faults.push(`still running after the trial: ${pid} ${commandLine(pid)}`);
      process.kill(pid, "SIGKILL");
    }
  }

  evaluate(): Evaluation & { kills: number } {
    const calls = this.#callers.flatMap((caller) => caller.calls);
    const evaluation = evaluateCalls(calls, this.#kills, readFileSync(this.#log, "utf8"));
    rmSync(this.#folder, { recursive: true, force: true });
    const counted = [...this.#counters].flatMap(([name, counter]) => counter.faults(name));
    const own = this.#callers.flatMap(({ faults }) => faults);
    const faults = [...evaluation.faults, ...counted, ...own, ...this.#faults];
    return { ...evaluation, faults, kills: this.#kills.length };
  }

  #counter({ options: { name } }: BusyCaller): ResponseCounter {
    const counter = new ResponseCounter();
    this.#counters.set(name, counter);
    return counter;
  }

  #killOne(pid: number): void {
    const at = performance.now();
    process.kill(pid, "SIGKILL");
    this.#kills.push({ pid, at });
  }

  /** After QUIET_MS calls must work, and no zombie may stay. */
  async #check(): Promise<void> {
    await after(QUIET_MS);
    const zombies = (): ProcessInfo[] => this.#children().filter(({ state }) => state === "Z");
    const deadline = performance.now() + WAIT_MS;
    while (zombies().length > 0 && performance.now() < deadline) await after(20);
    for (const { pid } of zombies()) this.#faults.push(`${pid} stays a zombie after its kill`);
    await Promise.all(this.#callers.map((caller) => caller.probe()));
  }

  /** Whether the worker has got a request. */
  #isUp(pid: number): boolean {
    if (!this.#up.has(pid)) {
      const lines = readFileSync(this.#log, "utf8").matchAll(/^here (\d+) /gm);
      for (const [, here] of lines) this.#up.add(Number(here));
    }
    return this.#up.has(pid);
  }

  #workers(): ProcessInfo[] {
    return this.#children().filter(({ pid, state }) => state !== "Z" && commandLine(pid).includes(this.#log));
  }

  #children(): ProcessInfo[] {
    const gateway = this.#gateway?.child?.pid;
    const found = processes().filter(({ parent }) => parent === gateway);
    for (const child of found) this.#started.set(`${child.pid} ${child.startTime}`, child);
    return found;
  }

  #remaining(): number[] {
    const ours = processes().filter(
      ({ pid, startTime, state }) => state !== "Z" && this.#started.has(`${pid} ${startTime}`),
    );
    return [...new Set([...withEnvironment(MARK, this.#mark), ...ours.map(({ pid }) => pid)])];
  }
}

const OLDEST = "2024-11-05";
const SESSION = "2025-11-25";
const STATELESS = "2026-07-28";

const SESSION_CALLERS: readonly CallerOptions[] = [
  { name: "old", style: "session", revision: OLDEST, transport: "legacy sse" },
  { name: "session", style: "session", revision: SESSION, transport: "http", holds: true },
];
const STATELESS_CALLERS: readonly CallerOptions[] = [
  { name: "stateless", style: "stateless", revision: STATELESS, transport: "http", holds: true },
  { name: "stateless-elicited", style: "stateless", revision: STATELESS, transport: "http", elicits: true },
];
const SESSION_OVER_STDIO: CallerOptions = {
  name: "session-elicited",
  style: "session",
  revision: SESSION,
  transport: "stdio",
  elicits: true,
  holds: true,
};
const STATELESS_OVER_STDIO: CallerOptions = {
  name: "stateless-stdio",
  style: "stateless",
  revision: STATELESS,
  transport: "stdio",
  elicits: true,
};

/** One upstream of both styles, one of each style with callers of both, and all three merged. */
export const TRIALS: readonly Trial[] = [
  {
    title: "an upstream of both styles",
    upstreams: ["both="],
    callers: [...SESSION_CALLERS, ...STATELESS_CALLERS, SESSION_OVER_STDIO],
  },
  {
    title: "an upstream with sessions",
    upstreams: [`old=${SESSION}`],
    callers: [...SESSION_CALLERS, ...STATELESS_CALLERS, STATELESS_OVER_STDIO],
  },
  {
    title: "a stateless upstream",
    upstreams: [`new=${STATELESS}`],
    callers: [...SESSION_CALLERS, ...STATELESS_CALLERS, SESSION_OVER_STDIO],
  },
  {
    title: "three merged upstreams",
    upstreams: ["both=", `old=${SESSION}`, `new=${STATELESS}`],
    callers: [...SESSION_CALLERS, ...STATELESS_CALLERS, SESSION_OVER_STDIO],
  },
];
