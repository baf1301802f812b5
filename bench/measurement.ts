// What the measurements share: their options, and runs in which programs get calls in turns, so that a change of the
// machine's speed meets all of them alike.

import { BASELINE, createFigure, OURS, takeTurns, type Figure, type Rounds } from "./figures.ts";
import type { MeasuredServer } from "./measured-server.ts";
import type { Mode, Peer } from "./peers.ts";

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

/** A process, and what makes calls to it or lets it make calls. */
export interface Subject {
  readonly server: MeasuredServer;
  readonly makeCalls: (count: number) => Promise<void>;
}

export type Start = () => Promise<Subject>;

/** By name. */
export type Beside = (peers: readonly Peer[]) => Readonly<Record<string, Start>>;

/** The peers that have the mode, which is the argument of their programs. */
export function peersWith(mode: Mode, start: (program: string, mode: string) => Start): Beside {
  return (peers) =>
    Object.fromEntries(
      peers.filter(({ modes }) => modes.includes(mode)).map(({ name, program }) => [name, start(program, mode)]),
    );
}

/** A row: what is compared, and the most that ours may take. */
export interface Row {
  /** For "calls", the first calls and the memory go into tables of their own. */
  readonly table: "calls" | "variants" | "growth" | "client";
  readonly name: string;
  readonly baseline: Start;
  readonly ours: Start;
  readonly beside?: Beside;
  /** The number of calls of a turn. */
  readonly slice?: number;
  /** The ratio to the baseline. */
  readonly maxCpu: number;
  readonly maxMemory?: number;
}

const SLICE = 500;
/** The first slices are reported apart: the code is not compiled yet, and the heap still grows. */
const FIRST_SLICES = 10;
const LATER_SLICES = 20;

export function measureRows(rows: readonly Row[]): Measurement {
  return async (settings) => {
    const figures: Figure[] = [];
    for (const row of rows) figures.push(...(await measureRow(row, settings)));
    return figures;
  };
}

/** CPU time per call of processes that get calls in turns, first and later, and their memory. */
async function measureRow(row: Row, { onProgress, divisor, peers }: Settings): Promise<Figure[]> {
  const { table, name, baseline, ours, beside, slice = SLICE, maxCpu, maxMemory } = row;
  const first = FIRST_SLICES / divisor;
  const slices = first + LATER_SLICES / divisor;
  const starts = { [BASELINE]: baseline, [OURS]: ours, ...beside?.(peers) };
  onProgress(`${name}: ${slices} slices of ${slice} calls to each of ${Object.keys(starts).join(", ")}`);
  const subjects = await startAll(starts, onProgress);
  const turns = subjects.map(([who, { server, makeCalls }]) => {
    const measure = async (): Promise<{ us: number; mb: number }> => {
      const before = await server.cost();
      await makeCalls(slice);
      const after = await server.cost();
      return { us: ((after.cpuMs - before.cpuMs) / slice) * 1000, mb: after.rssMb };
    };
    return [who, measure] as const;
  });
  const values = Object.entries(await takeTurns(Object.fromEntries(turns), slices));
  await Promise.all(subjects.map(([, { server }]) => server.stop()));
  const part = (key: "us" | "mb", from: number, to: number): Rounds =>
    Object.fromEntries(values.map(([who, each]) => [who, each.slice(from, to).map((turn) => turn[key])]));
  const later = createFigure(table, name, "µs", part("us", first, slices), { ratio: maxCpu });
  if (table !== "calls") return [later];
  const memory = maxMemory === undefined ? undefined : { ratio: maxMemory };
  return [
    later,
    createFigure("first calls", name, "µs", part("us", 0, first)),
    createFigure("memory", name, "MB", part("mb", first, slices), memory),
  ];
}

/** Starts all of them. A peer that does not answer is left out. */
async function startAll(
  starts: Readonly<Record<string, Start>>,
  onProgress: (line: string) => void,
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
