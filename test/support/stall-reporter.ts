// Ends a run in which nothing happens any more, and names the files that have not ended. A file that blocks its process
// cannot be ended by the timeouts of its tests: the run would wait for it without end, and would not say for what.

import { readFileSync } from "node:fs";
import type { Reporter, TestModule } from "vitest/node";

/** Longer than a test with its hooks may take. */
const STALLED_MINUTES = 10;

export class StallReporter implements Reporter {
  /** When each file began. */
  readonly #running = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  onTestRunStart(): void {
    this.#timer = setTimeout(() => this.#end(), STALLED_MINUTES * 60_000);
  }

  onTestModuleQueued({ relativeModuleId }: TestModule): void {
    this.#running.set(relativeModuleId, Date.now());
    this.#timer?.refresh();
  }

  onTestCaseResult(): void {
    this.#timer?.refresh();
  }

  onTestModuleEnd({ relativeModuleId }: TestModule): void {
    this.#running.delete(relativeModuleId);
    this.#timer?.refresh();
  }

  onTestRunEnd(): void {
    clearTimeout(this.#timer);
  }

  #end(): never {
    const files = [...this.#running].map(([name, begunAt]) => `${name}, for ${minutesSince(begunAt)} min`);
    console.error(`No test has ended for ${STALLED_MINUTES} minutes. These files run: ${files.join("; ") || "none"}`);
    for (const worker of workers()) process.kill(worker, "SIGKILL");
    process.exit(1);
  }
}

function minutesSince(time: number): number {
  return Math.round((Date.now() - time) / 60_000);
}

/** Our child processes, where the system tells: a worker that is blocked does not end with us. */
function workers(): number[] {
  try {
    return readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8")
      .split(" ")
      .filter(Boolean)
      .map(Number);
  } catch {
    return [];
  }
}
