// Says at once which test has failed, and ends a run in which nothing happens any more with the names of the files that run.
// Otherwise a run that is ended from outside would not say why: failures are printed at its end, and a file that blocks its
// process cannot be ended by the timeouts of its tests.

import { readFileSync } from "node:fs";
import type { Reporter, TestCase, TestModule } from "vitest/node";

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

  onTestCaseResult(test: TestCase): void {
    this.#timer?.refresh();
    const { state, errors } = test.result();
    if (state === "failed")
      console.error(`Failed: ${test.module.relativeModuleId}: ${test.fullName}: ${errors[0]?.message}`);
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
