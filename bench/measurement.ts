// What the measurements share: figures as ratios to a baseline, processes that report their cost, and runs in which all
// processes take turns, so that a change of the machine's speed meets all of them alike.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Peer } from "./peers.ts";

/** The names of results: what the others are compared with, ours, and ours without work that cannot be left out. */
export const BASELINE = "Baseline";
export const OURS = "Catenary";
export const BEYOND = "Beyond own work";

export type Unit = "µs" | "ms" | "MB";

export interface Result {
  /** In the unit of the figure, the median of all rounds. */
  readonly value: number;
  /** To the baseline of the same round, the median of all rounds. */
  readonly ratio: number;
  /** Beyond the baseline of the same round, the median of all rounds. */
  readonly extra: number;
}

export interface Figure {
  /** The table in docs/reference/performance.md. */
  readonly table: string;
  readonly name: string;
  readonly unit: Unit;
  /** By implementation. The first is the baseline, with the ratio 1. */
  readonly results: Readonly<Record<string, Result>>;
  /** If present, this is how much more than the baseline it (or what is beyond own work) may be, whatever the ratio. */
  readonly maxExtra?: number;
}

/** The options of a measurement. */
export interface Settings {
  readonly onProgress: (line: string) => void;
  /** The implementations that are measured beside ours. */
  readonly peers: readonly Peer[];
  /** Divides the number of slices and rounds, for a quick look. */
  readonly divisor: number;
  /** Only these middleware are measured. */
  readonly only?: readonly string[] | undefined;
}

export type Measurement = (settings: Settings) => Promise<Figure[]>;

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** The values of each implementation, one for each round. */
export type Rounds = Readonly<Record<string, readonly number[]>>;

export function createFigure(table: string, name: string, unit: Unit, rounds: Rounds): Figure {
  const base = rounds[BASELINE] ?? [];
  const results = Object.entries(rounds).map(([who, values]) => {
    const ratio = median(values.map((value, round) => value / (base[round] ?? Number.NaN)));
    const extra = median(values.map((value, round) => value - (base[round] ?? Number.NaN)));
    return [who, { value: median(values), ratio, extra }] as const;
  });
  return { table, name, unit, results: Object.fromEntries(results) };
}

/** Runs each function once a round, every other round in reverse order, and returns their values. */
export async function takeTurns<T>(
  subjects: Readonly<Record<string, () => T | Promise<T>>>,
  rounds: number,
): Promise<Record<string, T[]>> {
  const order = Object.entries(subjects).map(([who, measure]) => ({ who, measure, values: [] as T[] }));
  for (let round = 0; round < rounds; round += 1) {
    for (const { measure, values } of round % 2 === 0 ? order : order.toReversed()) values.push(await measure());
  }
  return Object.fromEntries(order.map(({ who, values }) => [who, values]));
}

/** A process, and what makes calls to it or lets it make calls. */
export interface Subject {
  readonly server: MeasuredServer;
  readonly makeCalls: (count: number) => Promise<void>;
}

export type Start = () => Promise<Subject>;

/** Starts all of them. A peer that does not answer is left out. */
async function startAll(
  starts: Readonly<Record<string, Start>>,
  { onProgress }: Settings,
): Promise<[string, Subject][]> {
  const started: [string, Subject][] = [];
  for (const [who, start] of Object.entries(starts)) {
    try {
      const subject = await start();
      started.push([who, subject]);
      await subject.makeCalls(1);
    } catch (error) {
      if (who === BASELINE || who === OURS) throw error;
      onProgress(`left out ${who}: ${String(error)}`);
      if (started.at(-1)?.[0] === who) await started.pop()?.[1].server.stop();
    }
  }
  return started;
}

/** The first calls are reported apart: the code is not compiled yet, and the heap still grows. */
const FIRST_CALLS = 20_000;
const SLICE = 400;
const LATER_SLICES = 30;

/** CPU time per call of processes that get calls in turns, first and later, and their memory. */
export async function measureCalls(
  name: string,
  starts: Readonly<Record<string, Start>>,
  settings: Settings,
  sliceSize = SLICE,
): Promise<{ later: Figure; first: Figure; memory: Figure }> {
  const first = FIRST_CALLS / sliceSize / settings.divisor;
  const slices = first + LATER_SLICES / settings.divisor;
  settings.onProgress(`${name}: ${slices} slices of ${sliceSize} calls to each of ${Object.keys(starts).join(", ")}`);
  const subjects = await startAll(starts, settings);
  const turns = subjects.map(([who, { server, makeCalls }]) => {
    const measure = async (): Promise<{ us: number; mb: number }> => {
      const before = await server.cost();
      await makeCalls(sliceSize);
      const after = await server.cost();
      return { us: ((after.cpuMs - before.cpuMs) / sliceSize) * 1000, mb: after.rssMb };
    };
    return [who, measure] as const;
  });
  const values = Object.entries(await takeTurns(Object.fromEntries(turns), slices));
  await Promise.all(subjects.map(([, { server }]) => server.stop()));
  const part = (key: "us" | "mb", from: number, to: number): Rounds =>
    Object.fromEntries(values.map(([who, each]) => [who, each.slice(from, to).map((one) => one[key])]));
  return {
    later: createFigure("calls", name, "µs", part("us", first, slices)),
    first: createFigure("first calls", name, "µs", part("us", 0, first)),
    memory: createFigure("memory", name, "MB", part("mb", first, slices)),
  };
}

/** The path of a file in bench/programs. */
export function programPath(name: string): string {
  return fileURLToPath(new URL(`programs/${name}`, import.meta.url));
}

export interface Cost {
  readonly cpuMs: number;
  readonly rssMb: number;
  readonly peakMb: number;
}

/** A program in a child process that reports its cost on request (see report-cost.js). */
export class MeasuredServer {
  readonly child: ChildProcess;
  readonly url: string;

  private constructor(child: ChildProcess, url: string) {
    this.child = child;
    this.url = url;
  }

  /** Starts a server over HTTP, which sends its URL first. */
  static async start(program: string, args: readonly string[] = []): Promise<MeasuredServer> {
    const child = forkMeasured(program, args, "ignore");
    const { url } = await nextMessage<{ url: string }>(child, program);
    return new MeasuredServer(child, url);
  }

  /** Starts a program over stdio. */
  static startStdio(program: string, args: readonly string[] = []): MeasuredServer {
    return new MeasuredServer(forkMeasured(program, args, "pipe"), program);
  }

  async cost(): Promise<Cost> {
    return this.ask<Cost>("cost");
  }

  async ask<T>(message: string | object): Promise<T> {
    const answered = nextMessage<T>(this.child, this.url);
    this.child.send(message);
    return answered;
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await exited;
  }
}

/** Without the TypeScript loader of this process: the child is measured as it would run by itself. */
function forkMeasured(program: string, args: readonly string[], streams: "ignore" | "pipe"): ChildProcess {
  return fork(programPath(program), args, {
    execArgv: ["--no-warnings", "--import", new URL("programs/report-cost.js", import.meta.url).href],
    stdio: [streams, streams, "inherit", "ipc"],
  });
}

/** The next message of a child process. Rejects where it exits instead. */
async function nextMessage<T>(child: ChildProcess, name: string): Promise<T> {
  const done = new AbortController();
  const exited = once(child, "exit", { signal: done.signal }).then(([code]) => {
    throw new Error(`${name} exited with ${String(code)}`);
  });
  try {
    const [message] = (await Promise.race([once(child, "message", { signal: done.signal }), exited])) as [T];
    return message;
  } finally {
    done.abort();
    exited.catch(() => undefined);
  }
}
