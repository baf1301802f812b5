// Reads Smalltalk source as far as is needed before an engine compiles it: whether a string, a comment or a bracket is
// open, which names are assigned, and the chunks of the chunk format. Used by the host and by the Amber guest.

export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface Scan {
  /** What is not closed, or closes nothing, such as "The string that begins at line 1, column 5 is not closed". */
  readonly problem?: string;
  /** Whether the end of the code is missing, so that more code could complete it. */
  readonly isOpen: boolean;
  /** The names on the left of `:=`. */
  readonly assigned: ReadonlySet<string>;
}

/**
 * A comment, a string, a character, a word with the `:=` after it, or any other character. The groups of the first two are
 * empty if it is not closed.
 */
const TOKEN = /"[^"]*("?)|'[^']*(?:''[^']*)*('?)|\$[^]|(\w+)(?:\s*(:=))?|[^]/gu;
const PAIRS: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" };
const BRACKETS: Readonly<Record<string, string>> = { "(": "parenthesis", "[": "block", "{": "brace" };

export function scan(code: string): Scan {
  const open: { readonly bracket: string; readonly index: number }[] = [];
  const assigned = new Set<string>();
  const unclosed = (what: string, index: number): Scan => ({
    problem: `The ${what} that begins at ${positionText(positionAt(code, index))} is not closed`,
    isOpen: true,
    assigned,
  });
  for (const { 0: token, 1: comment, 2: string, 3: name, 4: assignment, index } of code.matchAll(TOKEN)) {
    if (comment === "") return unclosed("comment", index);
    if (string === "") return unclosed("string", index);
    if (name !== undefined) {
      if (assignment !== undefined) assigned.add(name);
      continue;
    }
    if (token in BRACKETS) open.push({ bracket: token, index });
    if (token in PAIRS && open.pop()?.bracket !== PAIRS[token]) {
      const at = positionText(positionAt(code, index));
      return { problem: `The ${token} at ${at} closes nothing`, isOpen: false, assigned };
    }
  }
  const last = open.at(-1);
  if (last !== undefined) return unclosed(BRACKETS[last.bracket] ?? "", last.index);
  return { isOpen: false, assigned };
}

function positionAt(code: string, index: number): Position {
  const before = code.slice(0, index).split("\n");
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

export function positionText({ line, column }: Position): string {
  return `line ${line}, column ${column}`;
}

/** Whether the code is in chunk format: it begins or ends with an exclamation mark. */
export function isChunked(code: string): boolean {
  return /^\s*!|!\s*$/.test(code);
}

/** The chunks of the code, without their marks and the doubling of exclamation marks within them. */
export function chunks(code: string): string[] {
  return code.split(/(?<!!)!(?!!)/).map((chunk) => chunk.replaceAll("!!", "!").trim());
}
