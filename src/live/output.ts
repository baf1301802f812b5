// Captures what an evaluation prints, and what its process prints between evaluations (background output). Both are
// limited: the first characters of an evaluation's output are kept, and the last ones of background output.

import type { Guest, OutputListener, OutputStream } from "./guest.ts";

export interface CapturedOutput {
  readonly text: string;
  /** The number of characters printed, including those that were not kept. */
  readonly total: number;
}

export type ProgressListener = (text: string, total: number) => void;

/** The minimum time between two progress reports. */
const PROGRESS_INTERVAL_MS = 100;
/** The maximum length of a report. If more was printed since the last report, only its end is sent. */
const MAX_PROGRESS_LENGTH = 2_000;

export class OutputCapture {
  readonly #maxLength: number;
  readonly #kept: Record<OutputStream, string> = { stdout: "", stderr: "" };
  readonly #totals: Record<OutputStream, number> = { stdout: 0, stderr: 0 };
  readonly #onProgress: ProgressListener | undefined;
  readonly #onOutput: OutputListener | undefined;
  #unreported = "";
  #timer: NodeJS.Timeout | undefined;

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
    if (this.#onProgress !== undefined) this.#report(text);
    this.#onOutput?.(text, stream);
  };

  /** `dropped`: the number of characters that the guest counted but did not send. */
  captured(stream: OutputStream, dropped = 0): CapturedOutput {
    return { text: this.#kept[stream], total: this.#totals[stream] + dropped };
  }

  /** Ends the progress reports. */
  close(): void {
    clearTimeout(this.#timer);
    this.#unreported = "";
  }

  #report(text: string): void {
    this.#unreported = lastChars(this.#unreported + text, MAX_PROGRESS_LENGTH);
    if (this.#timer !== undefined) return;
    this.#flush();
    const next = (): void => {
      this.#timer = undefined;
      if (this.#unreported === "") return;
      this.#flush();
      this.#timer = setTimeout(next, PROGRESS_INTERVAL_MS);
    };
    this.#timer = setTimeout(next, PROGRESS_INTERVAL_MS);
  }

  #flush(): void {
    const text = this.#unreported;
    this.#unreported = "";
    this.#onProgress?.(text, this.#totals.stdout + this.#totals.stderr);
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

/** The first `max` characters. Never ends in half a surrogate pair, which many JSON parsers refuse. */
export function firstChars(text: string, max: number): string {
  if (text.length <= max) return text;
  const code = text.charCodeAt(max - 1);
  return text.slice(0, code >= 0xd800 && code < 0xdc00 ? max - 1 : max);
}

/** The last `max` characters. Never begins with half a surrogate pair. */
export function lastChars(text: string, max: number): string {
  if (text.length <= max) return text;
  const at = text.length - max;
  const code = text.charCodeAt(at);
  return text.slice(code >= 0xdc00 && code < 0xe000 ? at + 1 : at);
}
