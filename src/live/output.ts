// Captures what an evaluation prints, and what its process prints between evaluations (background output). Both are
// limited: the first characters of an evaluation's output are kept, and the last ones of background output.

import { firstChars, lastChars, OutputReports, type ProgressListener } from "../core/text.ts";
import type { Guest, GuestReply, OutputListener, OutputStream, Step } from "./guest.ts";

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

/** How many characters of background output are kept for the next evaluation. */
const MAX_BACKGROUND_LENGTH = 4_000;
/** After this many characters, reading stops until the next request, and the process may block. */
const MAX_BACKGROUND_READ = 1_000_000;

/** Output that a process prints while no evaluation runs, for example from timers and threads. */
export class BackgroundOutput {
  #text = "";
  #length = 0;

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
  };

  /** Resumes reading if it was stopped. */
  release(guest: Guest): void {
    if (this.#length > MAX_BACKGROUND_READ) guest.pauseOutput(false);
    this.#length = 0;
  }

  take(): string {
    const text = this.#text;
    this.#text = "";
    return text;
  }
}

// What the run of one request has given: the guest's reply, how it ended, and what was printed. Separate from the session,
// which keeps records that are made of it.

/** Tells a caller that wants progress why nothing happens yet. */
export const WAITING = "Waiting for another evaluation in this session";

export interface RunResult {
  /** "interrupted": by another call, or by the caller's signal. */
  readonly outcome: "answered" | "refused" | "timeout" | "interrupted" | "lost";
  /** The guest's reply; empty if there was none. */
  readonly reply: GuestReply;
  /** The step that stopped the run, if it was stopped. */
  readonly step: Step | undefined;
  readonly state: "kept" | "lost";
  /** Why the run was refused, or its state lost. */
  readonly reason: string | undefined;
  /** Describes state that was lost before the run began. */
  readonly notice: string | undefined;
  /** What was printed between the previous run and this one. */
  readonly background: string;
  readonly timeoutMs: number;
  readonly capture: OutputCapture;
}
