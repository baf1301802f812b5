// Captures what an evaluation prints, and what its process prints between evaluations (background output). Both are
// limited: the first characters of an evaluation's output are kept, and the last ones of background output.

import { unref } from "../core/async.ts";
import { firstChars, lastChars, OutputReports, type ProgressListener } from "../core/text.ts";
import type { Guest, OutputListener, OutputStream } from "./guest.ts";

export interface CapturedOutput {
  readonly text: string;
  /** The number of characters printed, including those that were not kept. */
  readonly total: number;
}

export class OutputCapture {
  readonly #maxLength: number;
  readonly #kept: Record<OutputStream, string> = { stdout: "", stderr: "" };
  readonly #totals: Record<OutputStream, number> = { stdout: 0, stderr: 0 };
  readonly #onProgress: ProgressListener | undefined;
  #reports: OutputReports | undefined;
  readonly #onOutput: OutputListener | undefined;

  /** `onProgress` gets recent output at intervals; `onOutput` gets all output as soon as it arrives. */
  constructor(maxLength: number, onProgress?: ProgressListener, onOutput?: OutputListener) {
    this.#maxLength = maxLength;
    this.#onProgress = onProgress;
    this.#onOutput = onOutput;
  }

  readonly write: OutputListener = (text, stream) => {
    const free = this.#maxLength - this.#totals[stream];
    if (free > 0) this.#kept[stream] += firstChars(text, free);
    this.#totals[stream] += text.length;
    if (this.#onProgress !== undefined) (this.#reports ??= new OutputReports(this.#onProgress)).write(text);
    this.#onOutput?.(text, stream);
  };

  /** How many characters were printed. */
  get total(): number {
    return this.#totals.stdout + this.#totals.stderr;
  }

  /** `dropped`: the number of characters that the guest counted but did not send. */
  captured(stream: OutputStream, dropped = 0): CapturedOutput {
    return { text: this.#kept[stream], total: this.#totals[stream] + dropped };
  }

  /** Ends the progress reports. */
  close(): void {
    this.#reports?.close();
  }
}

/** How often a silent run reports that it still goes on; clients give up after a minute or so of silence. */
const HEARTBEAT_MS = 5_000;

export function startHeartbeat(
  report: (seconds: number) => void,
  capture: OutputCapture,
  since: number,
): NodeJS.Timeout {
  let printed = 0;
  const beat = (): void => {
    if (capture.total === printed) report(Math.round((performance.now() - since) / 1000));
    printed = capture.total;
  };
  return unref(setInterval(beat, HEARTBEAT_MS));
}

/** How many characters of background output are kept for the next evaluation. */
export const MAX_BACKGROUND_LENGTH = 4_000;
/** After this many characters, reading stops until the next request, and the process may block. */
const MAX_BACKGROUND_READ = 1_000_000;

/** The number of characters of background output since the session began, in the `_meta` of the resource with the output. */
export const PRINTED = "catenary/printed";

/** Output that a process prints while no evaluation runs, for example from timers and threads. */
export class BackgroundOutput {
  #text = "";
  #length = 0;
  /** How many characters were printed since the session began. */
  #total = 0;
  #isAnnounced = false;
  readonly #onOutput: (() => void) | undefined;

  /** `onOutput` is called for the first output after `read` or `take`, so a flood calls it no more often than it is read. */
  constructor(onOutput?: () => void) {
    this.#onOutput = onOutput;
  }

  /** Receives the guest's output from now on. */
  listen(guest: Guest): void {
    guest.onRawOutput = (text, stream) => {
      this.write(text, stream);
      if (this.#length > MAX_BACKGROUND_READ) guest.pauseOutput(true);
    };
  }

  readonly write: OutputListener = (text) => {
    this.#text = lastChars(this.#text + text, MAX_BACKGROUND_LENGTH);
    this.#length += text.length;
    this.#total += text.length;
    if (this.#isAnnounced) return;
    this.#isAnnounced = true;
    this.#onOutput?.();
  };

  /** What `take` will return, and how many characters were printed since the session began. */
  read(): CapturedOutput {
    this.#isAnnounced = false;
    return { text: this.#text, total: this.#total };
  }

  /** Resumes reading if it was stopped. */
  release(guest: Guest): void {
    if (this.#length > MAX_BACKGROUND_READ) guest.pauseOutput(false);
    this.#length = 0;
  }

  /** The process has ended by itself. */
  end(): void {
    this.#text = withoutMemoryReport(this.#text);
  }

  take(): string {
    this.#isAnnounced = false;
    const text = this.#text;
    this.#text = "";
    return text;
  }
}

const OUT_OF_MEMORY = /heap out of memory|Heap exhausted/;

/** Describes why a process ended. A runtime that runs out of memory reports it on stderr before it exits. */
export function exitReason(how: string, stderr: string, memoryLimit: string, what = "its process ended"): string {
  if (!OUT_OF_MEMORY.test(stderr)) return `${what} (${how})`;
  return `its process ran out of memory (limit ${memoryLimit})`;
}

/** What V8 and SBCL print about their own memory and frames when they have none left, up to the end. */
const MEMORY_REPORT = /(?:\n?<--- Last few GCs --->|FATAL ERROR: .{0,200}heap out of memory|^Heap exhausted d)[^]*$/m;

/** The output of a process that has ended. If it ran out of memory, the notice says so, and its report is left out. */
export function withoutMemoryReport(output: string): string {
  return OUT_OF_MEMORY.test(output) ? output.replace(MEMORY_REPORT, "") : output;
}
