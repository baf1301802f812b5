// Splits what a program writes to stderr into lines, and limits how many are passed on.

/** A longer line is passed on in pieces. */
const MAX_LINE_LENGTH = 8_192;
/** More lines of one program within a second are left out, and their number is passed on as a line. */
export const MAX_LINES_PER_SECOND = 500;

/** Splits chunks of the stderr of a program into lines. */
export class LineSplitter {
  readonly #onLine: (line: string) => void;
  #rest = "";
  /** The lines passed on since then, and those left out. */
  #since = 0;
  #passed = 0;
  #leftOut = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  readonly add = (chunk: string): void => {
    const lines = `${this.#rest}${chunk}`.split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#pass(line);
    if (this.#rest.length > MAX_LINE_LENGTH) this.#passRest();
  };

  /** Passes on an incomplete last line, and the number of lines that were left out. */
  flush(): void {
    this.#passRest();
    this.#reportLeftOut();
  }

  #passRest(): void {
    if (this.#rest !== "") this.#pass(this.#rest);
    this.#rest = "";
  }

  #pass(line: string): void {
    if (this.#leftOut > 0) {
      this.#leftOut += 1;
      return;
    }
    if (this.#passed === 0) this.#since = performance.now();
    if (this.#passed >= MAX_LINES_PER_SECOND) {
      const leftMs = this.#since + 1_000 - performance.now();
      if (leftMs > 0) {
        this.#leftOut = 1;
        this.#timer = setTimeout(() => this.#reportLeftOut(), leftMs).unref();
        return;
      }
      this.#since = performance.now();
      this.#passed = 0;
    }
    this.#passed += 1;
    this.#onLine(line);
  }

  #reportLeftOut(): void {
    clearTimeout(this.#timer);
    const count = this.#leftOut;
    this.#leftOut = 0;
    this.#passed = 0;
    if (count > 0) this.#onLine(`(${count} lines left out: more than ${MAX_LINES_PER_SECOND} in a second)`);
  }
}
