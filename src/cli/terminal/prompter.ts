// Shows progress to the user at the terminal, and asks the user. While a dialog is open, the progress line is paused.

import { createInterface, type Interface } from "node:readline";
import { Writable } from "node:stream";
import type { Progress } from "../../client/contexts.ts";
import { onAbort } from "../../core/async.ts";
import { isTerminal, oneLine, truncate } from "./output.ts";

// Shows progress on stderr: on a terminal as one line that is redrawn in place, otherwise as plain lines, at most one
// per second. Other messages are printed above the line. The line is hidden while a dialog is open. Progress comes from
// the server, so its numbers may have any value and its messages any length.

export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface ProgressLineOptions {
  readonly quiet?: boolean;
  /** Whether the terminal cannot move the cursor. */
  readonly dumb?: boolean;
}

/** Work that takes less time is not shown. */
const SHOW_AFTER_MS = 300;
const REDRAW_MS = 100;
const PLAIN_INTERVAL_MS = 1_000;
const BAR_WIDTH = 24;
/** Narrower screens get no bar. */
const MIN_BAR_COLUMNS = 48;
const SPINNER = ["|", "/", "-", "\\"] as const;
const CLEAR = "\r\u001b[K";

export class ProgressLine {
  readonly #screen: Screen;
  readonly #isQuiet: boolean;
  readonly #inPlace: boolean;
  /** Messages that arrived while paused. */
  readonly #waiting: string[] = [];
  #pauses = 0;
  #isDrawn = false;
  #frame = 0;
  #busy: { text: string; since: number } | undefined;
  #progress: Progress | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lastPlain = -Infinity;

  constructor(screen: Screen, { quiet = false, dumb = false }: ProgressLineOptions = {}) {
    this.#screen = screen;
    this.#isQuiet = quiet;
    this.#inPlace = screen.isTTY === true && !dumb;
  }

  /** Shows a spinner with this text if stderr is a terminal, after `SHOW_AFTER_MS`. */
  busy(text: string): void {
    this.#busy = { text, since: performance.now() };
    this.#progress = undefined;
    this.#startTimer();
  }

  progress(progress: Progress): void {
    if (!Number.isFinite(progress.progress)) return;
    const isFirst = this.#progress === undefined;
    this.#progress = progress;
    if (isFirst || !this.#inPlace) this.#draw();
    this.#startTimer();
  }

  /** Prints a message on a line of its own. */
  note(text: string): void {
    if (this.#pauses > 0) {
      this.#waiting.push(text);
      return;
    }
    this.#clear();
    this.#screen.write(`${text}\n`);
    if (this.#inPlace) this.#draw();
  }

  /** Hides the line and holds back messages until the returned function is called. */
  pause(): () => void {
    this.#clear();
    this.#pauses += 1;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#pauses -= 1;
      if (this.#pauses === 0) for (const text of this.#waiting.splice(0)) this.note(text);
    };
  }

  /** Removes the line. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#busy = undefined;
    this.#progress = undefined;
    this.#clear();
  }

  #startTimer(): void {
    if (this.#isQuiet) return;
    this.#timer ??= setInterval(() => this.#draw(), REDRAW_MS).unref();
  }

  #clear(): void {
    if (this.#isDrawn) this.#screen.write(CLEAR);
    this.#isDrawn = false;
  }

  #draw(): void {
    if (this.#isQuiet || this.#pauses > 0) return;
    if (!this.#inPlace) {
      this.#printPlain();
      return;
    }
    // A terminal that does not know its width reports 0.
    const columns = this.#screen.columns || 80;
    const line = this.#text(columns);
    if (line === undefined) return;
    // The last column stays free: a character there makes some terminals wrap.
    this.#screen.write(`${CLEAR}${truncate(columns - 1, line)}`);
    this.#isDrawn = true;
    this.#frame += 1;
  }

  #text(columns: number): string | undefined {
    const spinner = SPINNER[this.#frame % SPINNER.length];
    if (this.#progress !== undefined) {
      return progressText(this.#progress, (ratio) =>
        ratio === undefined || columns < MIN_BAR_COLUMNS ? `${spinner} ` : bar(ratio),
      );
    }
    const { text, since } = this.#busy ?? { text: "", since: Infinity };
    const elapsed = performance.now() - since;
    if (elapsed < SHOW_AFTER_MS) return undefined;
    return `${spinner} ${oneLine(text)}${elapsed < 2_000 ? "" : ` ${Math.floor(elapsed / 1_000)} s`}`;
  }

  #printPlain(): void {
    const progress = this.#progress;
    const now = performance.now();
    if (progress === undefined || now - this.#lastPlain < PLAIN_INTERVAL_MS) return;
    this.#lastPlain = now;
    // Each update is printed only once.
    this.#progress = undefined;
    this.#screen.write(`progress: ${progressText(progress, () => "")}\n`);
  }
}

function progressText({ progress, total, message }: Progress, indicator: (ratio?: number) => string): string {
  const hasTotal = typeof total === "number" && Number.isFinite(total) && total > 0;
  const ratio = hasTotal ? Math.min(Math.max(progress / total, 0), 1) : undefined;
  const count = hasTotal ? `${rounded(progress)}/${rounded(total)}` : rounded(progress);
  const percent = ratio === undefined ? "" : `${Math.floor(ratio * 100)}% `;
  const note = typeof message === "string" && message !== "" ? `  ${oneLine(message)}` : "";
  return `${indicator(ratio)}${percent}${count}${note}`;
}

function bar(ratio: number): string {
  const done = Math.round(ratio * BAR_WIDTH);
  return `[${"#".repeat(done)}${"-".repeat(BAR_WIDTH - done)}] `;
}

function rounded(value: number): string {
  return String(Math.round(value * 100) / 100);
}

// Asks the user, one line at a time. Available only if stdin and stderr are both terminals; stdout is for data. Other
// dialogs wait for their turn.

/** One or more related questions. An answer is undefined if the user closed the input (Ctrl-D). */
export interface Dialog {
  print(text: string): void;
  /** The answer, trimmed. */
  ask(prompt: string): Promise<string | undefined>;
  /** Like `ask`, but ignores lines that were typed before the question was shown. */
  confirm(prompt: string): Promise<string | undefined>;
  /** The answer, unchanged and not echoed. */
  askSecret(prompt: string): Promise<string | undefined>;
}

export class Prompter {
  readonly #line: ProgressLine;
  readonly #onInterrupt: () => void;
  #queue: Promise<unknown> = Promise.resolve();

  /** `onInterrupt` is called at Ctrl-C. */
  constructor(line: ProgressLine, onInterrupt: () => void) {
    this.#line = line;
    this.#onInterrupt = onInterrupt;
  }

  static isAvailable(): boolean {
    return isTerminal(process.stdin) && isTerminal(process.stderr);
  }

  /** Runs a dialog; rejects with the signal's reason when the signal is aborted. */
  open<T>(signal: AbortSignal, run: (dialog: Dialog) => Promise<T>): Promise<T> {
    const result = this.#queue.then(() => this.#open(signal, run));
    this.#queue = result.catch(() => undefined);
    return result;
  }

  async #open<T>(signal: AbortSignal, run: (dialog: Dialog) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const resume = this.#line.pause();
    const output = new MutableStderr();
    const input = createInterface({ input: process.stdin, output, terminal: true, historySize: 0 });
    const dialog = new ReadlineDialog(input, output);
    input.on("SIGINT", this.#onInterrupt);
    let stopListening = (): void => undefined;
    const aborted = new Promise<never>((_, reject) => {
      stopListening = onAbort(signal, () => reject(signal.reason as Error));
    });
    try {
      return await Promise.race([run(dialog), aborted]);
    } finally {
      stopListening();
      input.close();
      // Leave an unanswered question on a line of its own.
      if (dialog.isOpen) process.stderr.write("\n");
      resume();
    }
  }
}

/** Stderr that can be muted while a secret is typed. */
class MutableStderr extends Writable {
  isMuted = false;

  get columns(): number {
    return process.stderr.columns;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (!this.isMuted) process.stderr.write(chunk);
    done();
  }
}

class ReadlineDialog implements Dialog {
  /** Whether the question on the screen is still unanswered. */
  isOpen = false;
  readonly #input: Interface;
  readonly #output: MutableStderr;
  readonly #typed: string[] = [];
  #wake: () => void = () => undefined;
  #ended = false;

  constructor(input: Interface, output: MutableStderr) {
    this.#input = input;
    this.#output = output;
    input.on("line", (line) => {
      this.#typed.push(line);
      this.#wake();
    });
    input.on("close", () => {
      this.#ended = true;
      this.#wake();
    });
  }

  print(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  async ask(prompt: string): Promise<string | undefined> {
    return (await this.#line(prompt))?.trim();
  }

  confirm(prompt: string): Promise<string | undefined> {
    this.#typed.length = 0;
    return this.ask(prompt);
  }

  async askSecret(prompt: string): Promise<string | undefined> {
    process.stderr.write(prompt);
    this.#output.isMuted = true;
    try {
      return await this.#line("");
    } finally {
      this.#output.isMuted = false;
      if (!this.isOpen) process.stderr.write("\n");
    }
  }

  async #line(prompt: string): Promise<string | undefined> {
    this.#input.setPrompt(prompt);
    this.#input.prompt();
    this.isOpen = true;
    if (this.#typed.length === 0 && !this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const line = this.#typed.shift();
    this.isOpen = line === undefined;
    return line;
  }
}
