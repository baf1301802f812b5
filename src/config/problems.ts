// What is wrong with a config: each mistake with its place in the text, all of them at once, in the order of the text.
// Where things stand is reckoned here; what is a mistake is decided by those who read the parts.

export interface Problem {
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 units, as editors count; a byte order mark does not count. */
  readonly column: number;
  /** With an error the config is of no use; with warnings it is. */
  readonly severity: "error" | "warning";
}

/** A config that is of no use, with everything that is wrong with it. */
export class ConfigError extends Error {
  readonly path: string;
  /** What was read. */
  readonly text: string;
  readonly problems: readonly Problem[];

  constructor(path: string, text: string, problems: readonly Problem[], options?: ErrorOptions) {
    super(problems.map((problem) => describeProblem(path, problem)).join("\n"), options);
    this.name = "ConfigError";
    this.path = path;
    this.text = text;
    this.problems = problems;
  }
}

/** In one line: `catenary.json:3:5: error: ...; what to do`. */
export function describeProblem(path: string, { line, column, severity, message, hint }: Problem): string {
  return `${path}:${line}:${column}: ${severity}: ${message}${hint === undefined ? "" : `; ${hint}`}`;
}

export type Position = Pick<Problem, "line" | "column">;

/** As they stand in the file. */
export function inOrder(problems: readonly Problem[]): Problem[] {
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
}

export class Problems {
  /** Where each line begins. */
  readonly #lines: readonly number[];
  readonly #found = new Map<string, Problem>();

  constructor(text: string) {
    this.#lines = [0, ...Array.from(text.matchAll(/\r\n|\n|\r/g), ({ index, 0: end }) => index + end.length)];
  }

  error(offset: number, message: string, hint?: string): void {
    this.#add(offset, "error", message, hint);
  }

  warn(offset: number, message: string, hint?: string): void {
    this.#add(offset, "warning", message, hint);
  }

  /** Errors, each counted once. */
  get errors(): number {
    return [...this.#found.values()].filter(({ severity }) => severity === "error").length;
  }

  sorted(): Problem[] {
    return inOrder([...this.#found.values()]);
  }

  position(offset: number): Position {
    let [first, beyond] = [0, this.#lines.length];
    while (beyond - first > 1) {
      const middle = (first + beyond) >> 1;
      if ((this.#lines[middle] ?? 0) <= offset) first = middle;
      else beyond = middle;
    }
    return { line: first + 1, column: offset - (this.#lines[first] ?? 0) + 1 };
  }

  /** The same thing is said of a place once: a text may be read twice. */
  #add(offset: number, severity: Problem["severity"], message: string, hint: string | undefined): void {
    const problem = { ...this.position(offset), severity, message, ...(hint === undefined ? undefined : { hint }) };
    this.#found.set(JSON.stringify(problem), problem);
  }
}
