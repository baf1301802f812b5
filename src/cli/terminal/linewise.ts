// Chunks of text, told a whole line at a time: what a program writes to its stderr comes in pieces of any length.

/** What has no end is told in pieces of about this length. */
const LONGEST_LINE = 8_192;

export class Linewise {
  readonly #say: (line: string) => void;
  #rest = "";

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  readonly add = (chunk: string): void => {
    const lines = `${this.#rest}${chunk}`.split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#say(line);
    if (this.#rest.length > LONGEST_LINE) this.flush();
  };

  /** Tells what is left, when it is over. */
  flush(): void {
    if (this.#rest !== "") this.#say(this.#rest);
    this.#rest = "";
  }
}
