// Problems of a config: each has a position in the text, and all are reported at once, in the order of the text.

export interface Problem {
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 units, as editors count; a byte order mark does not count. */
  readonly column: number;
  /** A config with an error cannot be used; one with warnings can. */
  readonly severity: "error" | "warning";
}

/** A config that cannot be used, with all its problems. */
export class ConfigError extends Error {
  readonly path: string;
  /** The text of the config. */
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

/** One line: `catenary.json:3:5: error: message; hint`. */
export function describeProblem(path: string, { line, column, severity, message, hint }: Problem): string {
  return `${path}:${line}:${column}: ${severity}: ${message}${hint === undefined ? "" : `; ${hint}`}`;
}

export type Position = Pick<Problem, "line" | "column">;

export function sortProblems(problems: readonly Problem[]): Problem[] {
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
}

/** Collects the problems of one text. */
export class Problems {
  /** The offset at which each line begins. */
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

  /** The number of errors. */
  get errors(): number {
    return [...this.#found.values()].filter(({ severity }) => severity === "error").length;
  }

  sorted(): Problem[] {
    return sortProblems([...this.#found.values()]);
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

  /** A value may be read twice; the same problem at the same position counts once. */
  #add(offset: number, severity: Problem["severity"], message: string, hint: string | undefined): void {
    const problem = { ...this.position(offset), severity, message, ...(hint === undefined ? undefined : { hint }) };
    this.#found.set(JSON.stringify(problem), problem);
  }
}
