// One trial: a gateway with its ends, callers at all its doors, and one process of an end after another killed by -9 at
// moments that follow from a seed. It stops by itself, and nothing that it started is left.

import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { childTransport, type ChildTransport } from "../../src/transport/child-process.ts";
import { BusyCaller, type Plan } from "./busy-caller.ts";
import { chanceOf, type Chance } from "./random.ts";
import { judge, type Kill, type Verdict } from "./evaluate-calls.ts";
import { withEnvironment, commandLine, processes, type ProcessInfo } from "../support/processes.ts";
import { counted, countedFetch, Tally } from "./response-counter.ts";

/** After so long without a kill, what the last one hit is answered, and the next call works. */
const QUIET_MS = 1_000;

export interface Trial {
  readonly title: string;
  /** `NAME=REVISIONS` of each end; several are merged. */
  readonly ends: readonly string[];
  readonly plans: readonly Plan[];
}

export interface Report extends Verdict {
  readonly title: string;
  readonly kills: number;
  readonly seconds: number;
}

const GATEWAY = fileURLToPath(new URL("gateway.js", import.meta.url));
const MARK = "CATENARY_FAULTS";
/** A kill comes within so many milliseconds of the one before. */
const SPREAD_MS = 240;
/** Of a hundred kills, so many are of all processes at once, and so many of one that may still be starting. */
const MASSACRES = 3;
const EARLY = 15;
/** So many kills, and then it is looked whether everything works. */
const ROUND = 50;
const PATIENCE_MS = 10_000;
/** What a trial may take: so much, and so much for each kill. */
const LEAST_MS = 20_000;
const EACH_MS = 2_000;

export async function tryOut(trial: Trial, kills: number, seed: number): Promise<Report> {
  const begun = performance.now();
  const stage = new Stage(trial, chanceOf(seed));
  try {
    await stage.open();
    await stage.kill(kills);
    await stage.settle();
  } finally {
    await stage.close();
  }
  return { title: trial.title, ...stage.verdict(), seconds: (performance.now() - begun) / 1_000 };
}

class Stage {
  readonly #trial: Trial;
  readonly #chance: Chance;
  readonly #mark = randomUUID();
  readonly #folder = mkdtempSync(join(tmpdir(), "catenary-faults-"));
  readonly #log = join(this.#folder, "ran");
  readonly #callers: BusyCaller[];
  readonly #tallies = new Map<string, Tally>();
  readonly #kills: Kill[] = [];
  /** All that the gateway ever started, as far as it was seen. */
  readonly #started = new Map<string, ProcessInfo>();
  readonly #faults: string[] = [];
  readonly #up = new Set<number>();
  #gateway: ChildTransport | undefined;

  constructor(trial: Trial, chance: Chance) {
    this.#trial = trial;
    this.#chance = chance;
    const ends = trial.ends.map((end) => end.slice(0, end.indexOf("=")));
    this.#callers = trial.plans.map((plan) => new BusyCaller(plan, ends, chance));
  }

  /** The caller on stdio is the one that starts the gateway. */
  async open(): Promise<void> {
    const stdio = this.#callers.find(({ plan }) => plan.door === "stdio");
    if (stdio === undefined) throw new TypeError("A trial needs a caller on stdio");
    let said = "";
    let tell = (_url: string): void => undefined;
    const address = new Promise<string>((resolve) => {
      tell = resolve;
    });
    this.#gateway = childTransport({
      command: process.execPath,
      args: [GATEWAY, "--log", this.#log, ...this.#trial.ends.flatMap((end) => ["--end", end])],
      env: { [MARK]: this.#mark, CATENARY_CACHE: join(this.#folder, "cache") },
      onStderr: (chunk) => {
        said += chunk.toString();
        if (said.startsWith("http") && said.includes("\n")) tell(said.slice(0, said.indexOf("\n")));
      },
    });
    // Where it cannot be started, this fails.
    const first = stdio.open(counted(this.#gateway, this.#tally(stdio)), { timeoutMs: 0, startTimeoutMs: PATIENCE_MS });
    const url = (await Promise.race([address, first])) ?? (await address);
    const others = this.#callers.filter((caller) => caller !== stdio);
    await Promise.all([
      first,
      ...others.map((caller) => {
        const door = caller.plan.door === "sse" ? new URL("/sse", url) : url;
        return caller.open(door, { timeoutMs: 0, fetch: countedFetch(this.#tally(caller)) });
      }),
    ]);
    for (const caller of this.#callers) caller.begin();
  }

  async kill(count: number): Promise<void> {
    const until = performance.now() + LEAST_MS + count * EACH_MS;
    while (this.#kills.length < count) {
      if (performance.now() > until) {
        const { child } = this.#gateway ?? {};
        const { state = "gone" } = processes().find(({ pid }) => pid === child?.pid) ?? {};
        const what = `after ${this.#kills.length} of ${count} kills there was nobody left to kill`;
        this.#faults.push(`${what}; the gateway is ${state}: ${child?.stderrTail() ?? ""}`);
        return;
      }
      await after(this.#chance.next() * SPREAD_MS);
      const isEarly = this.#chance.percent(EARLY);
      const workers = this.#workers().filter(({ pid }) => isEarly || this.#isUp(pid));
      if (workers.length === 0) continue;
      const isAll = this.#chance.percent(MASSACRES);
      const chosen = isAll ? workers.slice(0, count - this.#kills.length) : [this.#chance.pick(workers)];
      for (const { pid } of chosen) this.#killOne(pid);
      if (this.#kills.length % ROUND < chosen.length) await this.#look();
    }
  }

  /** After the last kill: every call is answered, the next ones work, and listens stand. */
  async settle(): Promise<void> {
    await this.#look();
    await Promise.all(this.#callers.map((caller) => caller.end()));
    for (const caller of this.#callers) await caller.hears(PATIENCE_MS);
  }

  async close(): Promise<void> {
    this.#workers();
    const stdio = this.#callers.filter(({ plan }) => plan.door === "stdio");
    await Promise.allSettled(this.#callers.filter((one) => !stdio.includes(one)).map((caller) => caller.close()));
    await Promise.allSettled(stdio.map((caller) => caller.close()));
    await this.#gateway?.close();
    const until = performance.now() + 5_000;
    while (this.#left().length > 0 && performance.now() < until) await after(20);
    for (const pid of this.#left()) {
      this.#faults.push(`still there at the end: ${pid} ${commandLine(pid)}`);
      process.kill(pid, "SIGKILL");
    }
  }

  verdict(): Verdict & { kills: number } {
    const calls = this.#callers.flatMap((caller) => caller.calls);
    const found = judge(calls, this.#kills, readFileSync(this.#log, "utf8"));
    rmSync(this.#folder, { recursive: true, force: true });
    const tallies = [...this.#tallies].flatMap(([name, tally]) => tally.faults(name));
    const own = this.#callers.flatMap(({ faults }) => faults);
    const faults = [...found.faults, ...tallies, ...own, ...this.#faults];
    return { ...found, faults, kills: this.#kills.length };
  }

  #tally({ plan: { name } }: BusyCaller): Tally {
    const tally = new Tally();
    this.#tallies.set(name, tally);
    return tally;
  }

  #killOne(pid: number): void {
    const at = performance.now();
    process.kill(pid, "SIGKILL");
    this.#kills.push({ pid, at });
  }

  /** Within the bound nobody is a zombie any more, and calls work. */
  async #look(): Promise<void> {
    await after(QUIET_MS);
    for (const { pid } of this.#children().filter(({ state }) => state === "Z")) {
      this.#faults.push(`${pid} is a zombie a second after the last kill`);
    }
    await Promise.all(this.#callers.map((caller) => caller.probe()));
  }

  /** Whether somebody has spoken with it. */
  #isUp(pid: number): boolean {
    if (!this.#up.has(pid)) {
      const said = readFileSync(this.#log, "utf8").matchAll(/^here (\d+) /gm);
      for (const [, here] of said) this.#up.add(Number(here));
    }
    return this.#up.has(pid);
  }

  #workers(): ProcessInfo[] {
    return this.#children().filter(({ pid, state }) => state !== "Z" && commandLine(pid).includes(this.#log));
  }

  #children(): ProcessInfo[] {
    const gateway = this.#gateway?.child?.pid;
    const found = processes().filter(({ parent }) => parent === gateway);
    for (const one of found) this.#started.set(`${one.pid} ${one.startTime}`, one);
    return found;
  }

  #left(): number[] {
    const ours = processes().filter(({ pid, startTime, state }) => state !== "Z" && this.#started.has(`${pid} ${startTime}`));
    return [...new Set([...withEnvironment(MARK, this.#mark), ...ours.map(({ pid }) => pid)])];
  }
}

// The trials that there are: one end that speaks everything, one of each style alone with callers of both, and the
// three of them merged.


const OLDEST = "2024-11-05";
const SESSION = "2025-11-25";
const EXCHANGE = "2026-07-28";

const SESSIONS: readonly Plan[] = [
  { name: "old", style: "session", revision: OLDEST, door: "sse" },
  { name: "session", style: "session", revision: SESSION, door: "http", holds: true },
];
const EXCHANGES: readonly Plan[] = [
  { name: "stateless", style: "stateless", revision: EXCHANGE, door: "http", holds: true },
  { name: "asked-exchange", style: "stateless", revision: EXCHANGE, door: "http", asked: true },
];
const SESSION_AT_HOME: Plan = {
  name: "asked-session",
  style: "session",
  revision: SESSION,
  door: "stdio",
  asked: true,
  holds: true,
};
const EXCHANGE_AT_HOME: Plan = {
  name: "home-exchange",
  style: "stateless",
  revision: EXCHANGE,
  door: "stdio",
  asked: true,
};

export const TRIALS: readonly Trial[] = [
  { title: "an end of both styles", ends: ["both="], plans: [...SESSIONS, ...EXCHANGES, SESSION_AT_HOME] },
  { title: "an end of sessions", ends: [`old=${SESSION}`], plans: [...SESSIONS, ...EXCHANGES, EXCHANGE_AT_HOME] },
  { title: "an end of exchanges", ends: [`new=${EXCHANGE}`], plans: [...SESSIONS, ...EXCHANGES, SESSION_AT_HOME] },
  {
    title: "three ends merged",
    ends: ["both=", `old=${SESSION}`, `new=${EXCHANGE}`],
    plans: [...SESSIONS, ...EXCHANGES, SESSION_AT_HOME],
  },
];
