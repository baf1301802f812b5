// Asks the user, one line at a time. Available only if stdin and stderr are both terminals; stdout is for data. Other
// dialogs wait for their turn.

import { createInterface, type Interface } from "node:readline";
import { Writable } from "node:stream";
import { onAbort } from "../../core/async.ts";
import { isTerminal } from "./output.ts";
import type { ProgressLine } from "./progress-line.ts";
import { TypedLines } from "./typed-lines.ts";

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

/** Whether the user answers yes. */
export async function agrees(dialog: Dialog, prompt: string): Promise<boolean> {
  return /^y(?:es)?$/i.test((await dialog.confirm(prompt)) ?? "");
}

export class Prompter {
  readonly #onInterrupt: () => void;
  readonly #line: ProgressLine | undefined;
  #queue: Promise<unknown> = Promise.resolve();

  /** `onInterrupt` is called at Ctrl-C. The progress line is paused while a dialog is open. */
  constructor(onInterrupt: () => void, line?: ProgressLine) {
    this.#onInterrupt = onInterrupt;
    this.#line = line;
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
    const resume = this.#line?.pause();
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
      resume?.();
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
  readonly #typed: TypedLines;

  constructor(input: Interface, output: MutableStderr) {
    this.#input = input;
    this.#output = output;
    this.#typed = new TypedLines(input);
  }

  print(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  async ask(prompt: string): Promise<string | undefined> {
    return (await this.#line(prompt))?.trim();
  }

  confirm(prompt: string): Promise<string | undefined> {
    this.#typed.clear();
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
    const line = await this.#typed.next();
    this.isOpen = line === undefined;
    return line;
  }
}
