// The person at the terminal, asked one line at a time. Only where stdin and stderr are both terminals is there one;
// stdout is for data and is never asked on. While a question stands, the progress line keeps still, and questions that
// come at the same time wait for each other. What is asked is for others to know.

import { createInterface, type Interface } from "node:readline";
import { Writable } from "node:stream";
import { onAbort } from "../../core/async.ts";
import { isTerminal } from "./harmless.ts";
import type { ProgressLine } from "./progress-line.ts";

/** One talk with the person: several questions about one thing. */
export interface Talk {
  tell(text: string): void;
  /** What was typed, without the spaces around it; undefined where the person has ended the input. */
  ask(prompt: string): Promise<string | undefined>;
  /** The same, but nothing that was typed before the question counts as its answer. */
  confirm(prompt: string): Promise<string | undefined>;
  /** What was typed, as it was; it is not shown. */
  secret(prompt: string): Promise<string | undefined>;
}

export class Person {
  readonly #line: ProgressLine;
  readonly #interrupt: () => void;
  #turn: Promise<unknown> = Promise.resolve();

  /** `interrupt` is called at Ctrl-C. */
  constructor(line: ProgressLine, interrupt: () => void) {
    this.#line = line;
    this.#interrupt = interrupt;
  }

  static isThere(): boolean {
    return isTerminal(process.stdin) && isTerminal(process.stderr);
  }

  /** Rejects with the signal's reason when nobody waits for the answers any more. */
  talk<T>(signal: AbortSignal, about: (talk: Talk) => Promise<T>): Promise<T> {
    const turn = this.#turn.then(() => this.#talk(signal, about));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #talk<T>(signal: AbortSignal, about: (talk: Talk) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const release = this.#line.hold();
    const veil = new Veil();
    const input = createInterface({ input: process.stdin, output: veil, terminal: true, historySize: 0 });
    const lines = new Lines(input, veil);
    input.on("SIGINT", this.#interrupt);
    let forget = (): void => undefined;
    const gone = new Promise<never>((_, reject) => {
      forget = onAbort(signal, () => reject(signal.reason as Error));
    });
    try {
      return await Promise.race([about(lines), gone]);
    } finally {
      forget();
      input.close();
      // What stands half written keeps its line.
      if (lines.isOpen) process.stderr.write("\n");
      release();
    }
  }
}

/** Stderr, unless what is typed must not be seen there. */
class Veil extends Writable {
  isDown = false;

  get columns(): number {
    return process.stderr.columns;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (!this.isDown) process.stderr.write(chunk);
    done();
  }
}

class Lines implements Talk {
  /** A question stands. */
  isOpen = false;
  readonly #input: Interface;
  readonly #veil: Veil;
  readonly #typed: string[] = [];
  #answer: ((line: string | undefined) => void) | undefined;
  #ended = false;

  constructor(input: Interface, veil: Veil) {
    this.#input = input;
    this.#veil = veil;
    input.on("line", (line) => this.#hear(line));
    input.on("close", () => {
      this.#ended = true;
      this.#hear(undefined);
    });
  }

  tell(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  async ask(prompt: string): Promise<string | undefined> {
    return (await this.#line(prompt))?.trim();
  }

  confirm(prompt: string): Promise<string | undefined> {
    this.#typed.length = 0;
    return this.ask(prompt);
  }

  async secret(prompt: string): Promise<string | undefined> {
    process.stderr.write(prompt);
    this.#veil.isDown = true;
    try {
      return await this.#line("");
    } finally {
      this.#veil.isDown = false;
      if (!this.isOpen) process.stderr.write("\n");
    }
  }

  async #line(prompt: string): Promise<string | undefined> {
    this.#input.setPrompt(prompt);
    this.#input.prompt();
    this.isOpen = true;
    const line = await this.#next();
    this.isOpen = line === undefined;
    return line;
  }

  #hear(line: string | undefined): void {
    const answer = this.#answer;
    this.#answer = undefined;
    if (answer !== undefined) answer(line);
    else if (line !== undefined) this.#typed.push(line);
  }

  async #next(): Promise<string | undefined> {
    const early = this.#typed.shift();
    if (early !== undefined || this.#ended) return early;
    return new Promise((resolve) => {
      this.#answer = resolve;
    });
  }
}
