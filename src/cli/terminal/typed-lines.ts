// The lines that a person types at a prompt, in order. Lines that are typed before they are asked for wait here.

import type { Interface } from "node:readline";

export class TypedLines {
  readonly #lines: string[] = [];
  #hasEnded = false;
  #wake: () => void = () => undefined;

  constructor(input: Interface) {
    input.on("line", (line) => {
      this.#lines.push(line);
      this.#wake();
    });
    input.on("close", () => this.end());
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }

  /** Whether `next` would have to wait. */
  get mustWait(): boolean {
    return this.isEmpty && !this.#hasEnded;
  }

  /** Waits for a line, or for the end of the input. */
  async wait(): Promise<void> {
    if (this.mustWait) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  /** The next line; undefined at the end of the input. */
  async next(): Promise<string | undefined> {
    await this.wait();
    return this.#lines.shift();
  }

  clear(): void {
    this.#lines.length = 0;
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake();
  }
}
