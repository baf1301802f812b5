// What the measurements share: the figures they return, the median, and child processes that report their cost.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** The largest value that the project allows; absent where there is no limit. */
  readonly bound?: number;
  readonly detail: string;
}

/** Measures something and returns its figures; `onProgress` gets lines for the user. */
export type Measurement = (onProgress: (line: string) => void) => Promise<Figure[]>;

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** The path of a file in bench/programs. */
export function programPath(name: string): string {
  return fileURLToPath(new URL(`programs/${name}`, import.meta.url));
}

export interface Cost {
  readonly cpuMs: number;
  readonly maxRssKb: number;
}

/** Reads the cost from the last line of a child's stderr (see report-cost.js). Throws where it is missing. */
export function parseCost(stderr: string): Cost {
  const line = stderr.trim().split("\n").at(-1) ?? "";
  let cost: Partial<Cost> | null;
  try {
    cost = JSON.parse(line) as Partial<Cost> | null;
  } catch {
    cost = null;
  }
  const { cpuMs, maxRssKb } = cost ?? {};
  if (!isPositive(cpuMs) || !isPositive(maxRssKb)) {
    throw new Error(`The child did not report its cost: ${stderr.trim()}`);
  }
  return { cpuMs, maxRssKb };
}

const isPositive = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value) && value > 0;

export interface CurrentCost {
  readonly cpuMs: number;
  readonly rssMb: number;
}

/** A server in a child process that reports its cost on request (see report-cost.js). */
export class MeasuredServer {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  static async start(program: string): Promise<MeasuredServer> {
    // Without the TypeScript loader of this process: the child is measured as it would run by itself.
    const child = fork(programPath(program), [], { execArgv: [] });
    const { url } = await nextMessage<{ url: string }>(child, program);
    return new MeasuredServer(child, url);
  }

  async cost(): Promise<CurrentCost> {
    const answered = nextMessage<CurrentCost>(this.#child, this.url);
    this.#child.send("cost");
    return answered;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }
}

/** The next message of a child process. Rejects where it exits instead. */
export async function nextMessage<T>(child: ChildProcess, name: string): Promise<T> {
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
