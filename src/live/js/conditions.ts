// What went wrong, as the host is told: the error's type and message, and the frames that are the user's own, at the
// places that the user wrote. Frames of Node and of the guest itself are left out, here and in printed errors.

import type { Condition, Frame } from "../runtime.ts";
import { writtenColumn, type Anchors } from "./source-positions.ts";
import type { Thrown } from "./messages.ts";
import { SyntaxFault } from "./parse.ts";
import type { SyntaxPlace } from "./print.ts";
import { columnWithTypes, type TypeGaps } from "./source-positions.ts";

const MOST_FRAMES = 20;
const MOST_FRAME_CHARS = 300;
/** Pieces of code whose columns can be found again. */
const MOST_CELLS = 1_000;
const AT = "    at ";

/** How a piece of code is named in places. */
export function cellName(number: number): string {
  return `<eval ${number}>`;
}

export class Conditions {
  /** The folder of the guest's own files, as stacks have it. */
  readonly #own: string;
  /** Where the columns of a piece of code were moved. */
  readonly #moves = new Map<string, { readonly anchors: Anchors; readonly gaps: TypeGaps }>();

  constructor(own: string) {
    this.#own = own;
  }

  moved(name: string, anchors: Anchors, gaps: TypeGaps): void {
    if (anchors.size === 0 && gaps.size === 0) return;
    this.#moves.set(name, { anchors, gaps });
    const [oldest] = this.#moves.size > MOST_CELLS ? this.#moves.keys() : [];
    if (oldest !== undefined) this.#moves.delete(oldest);
  }

  isOwn(url: string): boolean {
    return url.startsWith(this.#own);
  }

  of({ type, message, stack, place }: Thrown): Condition {
    const lines = stackLines(stack);
    const said = advised(message);
    if (place === undefined) return { type, message: said, restarts: [], frames: this.frames(lines) };
    const at = placeText(place);
    const { around } = place;
    const shown = around === undefined ? "" : `\n${excerpt(around.text, 1, around.column)}`;
    return { type, message: `${said} (${this.placed(at)})${shown}`, restarts: [], frames: this.frames([at, ...lines]) };
  }

  frames(texts: readonly string[]): Frame[] {
    const users = texts.filter((text) => !text.includes(this.#own) && !isNodes(text));
    return users.slice(0, MOST_FRAMES).map((text, number) => ({ number, text: shortened(this.placed(text)) }));
  }

  /** The same text with the columns that were written; without one where it cannot be known. */
  placed(text: string): string {
    return text.replaceAll(/(<eval \d+>):(\d+):(\d+)/g, (_whole, name: string, line: string, column: string) => {
      const { anchors, gaps } = this.#moves.get(name) ?? {};
      const bare = writtenColumn(anchors, Number(line), Number(column));
      const written = columnWithTypes(gaps, Number(line), bare);
      return written === undefined ? `${name}:${line}` : `${name}:${line}:${written}`;
    });
  }

  /** A printed error without our frames, and without those of Node by which we were called. */
  trimmed(text: string): string {
    if (!text.includes(AT)) return text;
    const kept: string[] = [];
    let isBelow = false;
    for (const line of text.split("\n")) {
      const isFrame = line.trimStart().startsWith("at ");
      isBelow = isFrame && (isBelow || line.includes(this.#own));
      if (!isBelow || !(line.includes(this.#own) || isNodes(line))) {
        kept.push(line);
        continue;
      }
      while (/^\s+at .*\(node:vm:/.test(kept.at(-1) ?? "")) kept.pop();
      // Properties of the error follow.
      if (line.endsWith(" {")) kept.push(`${kept.pop() ?? ""} {`);
    }
    return this.placed(kept.join("\n"));
  }
}

/** Of TypeScript the line alone: what is left of it without its types has other columns. */
function placeText({ file, line, column }: SyntaxPlace): string {
  return column === undefined || /\.m?ts(?:[?#].*)?$/.test(file) ? `${file}:${line}` : `${file}:${line}:${column}`;
}

/** What Node says of modules speaks of files that nobody here has; and not of what helps. */
function advised(message: string): string {
  const [, wanted, from] =
    /^Cannot find package '([^']+)' imported from (\S+)$/.exec(message) ??
    /^Cannot find module '([^'./][^']*)'\nRequire stack:\n- (\S+\/)session\.js$/.exec(message) ??
    [];
  if (wanted !== undefined && from !== undefined) {
    const how = `install it there (npm install ${wanted}), or give the session another folder (cwd)`;
    return `Cannot find package '${wanted}' from ${from}: ${how}`;
  }
  if (message === "Cannot use 'import.meta' outside a module") {
    return `${message}: what is evaluated is none; import() a file that is one, or use process.cwd()`;
  }
  return message.replace(/\nRequire stack:\n- \S+\/session\.js$/, "");
}

/** Why code could not be made ready to run. */
export function unreadable(error: unknown, source: string, name: string): Condition {
  if (error instanceof SyntaxFault) return faultCondition(error, source, name);
  const { name: type, message } = error as Error;
  const why = error instanceof RangeError ? `The code is nested too deeply to be read (${message})` : message;
  return { type, message: why, restarts: [], frames: [] };
}

/** With the line itself and a mark below the place. */
function faultCondition(fault: SyntaxFault, source: string, name: string): Condition {
  const { line, column } = fault.place;
  const text = `${name}:${line}:${column}`;
  return {
    type: "SyntaxError",
    message: `${fault.message} (line ${line}, column ${column})\n${excerpt(source, line, column)}`,
    restarts: [],
    frames: [{ number: 0, text }],
  };
}

/** The line, cut where it is long, and a mark below the column. */
function excerpt(source: string, line: number, column: number): string {
  const whole = source.split("\n")[line - 1] ?? "";
  const from = Math.max(0, column - 60);
  const before = whole.slice(from, column - 1).replaceAll(/\S/g, " ");
  return `  ${whole.slice(from, from + 100)}\n  ${before}^`;
}

function stackLines(stack: string): string[] {
  return stack
    .split("\n")
    .filter((line) => line.startsWith(AT))
    .map((line) => line.slice(AT.length));
}

function isNodes(text: string): boolean {
  return /(?:^|\(|async |at )node:/.test(text) || text === "<anonymous>";
}

function shortened(text: string): string {
  return text.length > MOST_FRAME_CHARS ? `${text.slice(0, MOST_FRAME_CHARS)}...` : text;
}
