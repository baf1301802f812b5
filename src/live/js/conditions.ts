// Turns an error into the condition that is sent to the host: type, message, and the stack frames of the user's code,
// with positions in the code as the user wrote it. Frames of Node and of the guest are removed, also in printed errors.

import { ExpiringMap } from "../../core/expiring-map.ts";
import type { Condition, Frame } from "../runtime.ts";
import type { Thrown, ThrownFrame } from "./messages.ts";
import { CodeSyntaxError, type Parsed } from "./parse.ts";
import { type Shift, writtenColumn } from "./rewrite.ts";

const MAX_FRAMES = 20;
const MAX_FRAME_LENGTH = 300;
/** Column maps are kept for this many cells. */
const MAX_CELLS = 1_000;
const AT = "    at ";
/** What Node writes above the stack of a syntax error. The mark is absent if the line is too long for Node to show. */
const SYNTAX_POSITION = /^(?<place>(?<file>\S[^\n]*):\d+)\n(?<line>[^\n]*)\n(?<indent>[ \t]*)(?<mark>\^?)/;

/** The name that a cell, which is one evaluated piece of code, has in stack frames. */
export function cellName(number: number): string {
  return `<eval ${number}>`;
}

/** How to get from a column of the code that runs to the column that the user wrote. */
type CellColumns = Pick<Parsed, "typedColumn"> & { readonly shifts: readonly Shift[] };

export class ConditionBuilder {
  /** The URL of the folder with the guest's own files. */
  readonly #guestFolder: string;
  readonly #cells = new ExpiringMap<string, CellColumns>({ maxEntries: MAX_CELLS });

  constructor(guestFolder: string) {
    this.#guestFolder = guestFolder;
  }

  addCell(name: string, columns: CellColumns): void {
    if (columns.shifts.length > 0 || columns.typedColumn !== undefined) this.#cells.set(name, columns);
  }

  isGuestFile(url: string): boolean {
    return url.startsWith(this.#guestFolder);
  }

  fromThrown({ type, message, stack, frames: captured = [] }: Thrown): Condition {
    const syntax = type === "SyntaxError" ? syntaxPosition(stack) : undefined;
    const lines = [...(syntax === undefined ? [] : [syntax.at]), ...stackLines(stack)];
    const frames = captured.length > 0 ? this.#withLocals(lines, captured) : this.frames(lines);
    const position = syntax === undefined ? "" : ` (${this.restoreColumns(syntax.at)})${syntax.excerpt}`;
    return { type, message: `${withAdvice(message)}${position}`, restarts: [], frames };
  }

  frames(texts: readonly string[]): Frame[] {
    const ownFrames = this.#ownFrames(texts);
    return ownFrames
      .slice(0, MAX_FRAMES)
      .map((text, number) => ({ number, text: cutFrame(this.restoreColumns(text)) }));
  }

  /** The frames of the stack, with the variables that were captured. A value that is not an error has no stack. */
  #withLocals(lines: readonly string[], captured: readonly ThrownFrame[]): Frame[] {
    const texts = lines.length > 0 ? this.#ownFrames(lines) : captured.map(frameText);
    let next = 0;
    return texts.slice(0, MAX_FRAMES).map((text, number) => {
      const position = captured.findIndex((frame, at) => at >= next && isSameFrame(text, frame));
      const plainFrame = { number, text: cutFrame(this.restoreColumns(text)) };
      if (position < 0) return plainFrame;
      next = position + 1;
      return { ...plainFrame, captured: position, locals: captured[position]?.locals ?? [] };
    });
  }

  #ownFrames(texts: readonly string[]): readonly string[] {
    return texts.filter((text) => !text.includes(this.#guestFolder) && !isNodeFrame(text));
  }

  /**
   * Replaces columns of rewritten code with columns of the user's code; removes a column that cannot be restored. Also
   * removes the version from the URL of a reloaded module.
   */
  restoreColumns(text: string): string {
    return text
      .replaceAll(/[?&]reload=\d+(?=:\d)/g, "")
      .replaceAll(/(<eval \d+>):(\d+):(\d+)/g, (whole, name: string, line: string, column: string) => {
        const cell = this.#cells.get(name);
        if (cell === undefined) return whole;
        const plain = writtenColumn(cell.shifts, Number(line), Number(column));
        const written = cell.typedColumn === undefined ? plain : cell.typedColumn(Number(line), plain);
        return written === undefined ? `${name}:${line}` : `${name}:${line}:${written}`;
      });
  }

  /** Removes the guest's frames from a printed error, and the frames of Node that called the guest. */
  trimFrames(text: string): string {
    if (!text.includes(AT)) return text;
    const kept: string[] = [];
    let isInGuestPart = false;
    for (const line of text.split("\n")) {
      const isFrame = line.trimStart().startsWith("at ");
      isInGuestPart = isFrame && (isInGuestPart || line.includes(this.#guestFolder));
      if (!isInGuestPart || !(line.includes(this.#guestFolder) || isNodeFrame(line))) {
        kept.push(isFrame ? withPosition(line) : line);
        continue;
      }
      while (/^\s+at .*\(node:vm:/.test(kept.at(-1) ?? "")) kept.pop();
      // The removed line opened the list of the error's properties.
      if (line.endsWith(" {")) kept.push(`${kept.pop() ?? ""} {`);
    }
    return this.restoreColumns(kept.join("\n"));
  }
}

/** Where a syntax error is that Node has found in a file, and the line with a mark. */
function syntaxPosition(stack: string): { readonly at: string; readonly excerpt: string } | undefined {
  const groups = SYNTAX_POSITION.exec(stack)?.groups;
  if (groups === undefined) return undefined;
  const { place = "", file = "", line = "", indent = "", mark } = groups;
  const column = indent.length + 1;
  // For TypeScript, the column would refer to the source without types.
  const hasColumn = mark !== "" && !/\.m?ts(?:[?#].*)?$/.test(file);
  return {
    at: hasColumn ? `${place}:${column}` : place,
    excerpt: mark === "" ? "" : `\n${excerptOf(line, 1, column)}`,
  };
}

/** Where sessions in a sandbox start, unless they can see their folder. It is gone when the session ends. */
const SANDBOX_HOME = "/tmp/session/";

/** Node's messages about missing modules name one of our files and do not say what to do. */
function withAdvice(message: string): string {
  const [, wanted, from] =
    /^Cannot find package '([^']+)' imported from (.+)$/.exec(message) ??
    /^Cannot find module '([^'./][^']*)'\nRequire stack:\n- (.+\/)session\.js$/.exec(message) ??
    [];
  if (wanted !== undefined && from !== undefined) {
    if (from.startsWith(SANDBOX_HOME)) {
      const how = 'install it in a folder outside, and name that folder in "sandbox": {"read": [...]} and in "cwd"';
      return `Cannot find package '${wanted}': packages cannot be installed in the sandbox; ${how}`;
    }
    const how = `install it there (npm install ${wanted}), or give the session another folder (cwd)`;
    return `Cannot find package '${wanted}' from ${from}: ${how}`;
  }
  return message.replace(/\nRequire stack:\n- .+\/session\.js$/, "");
}

/** The condition of code that could not be parsed. */
export function parseCondition(error: unknown, source: string, cell: string): Condition {
  if (error instanceof CodeSyntaxError) return syntaxCondition(error, source, cell);
  const { name: type, message } = error as Error;
  const text = error instanceof RangeError ? `The code is nested too deeply to be parsed (${message})` : message;
  return { type, message: text, restarts: [], frames: [] };
}

function syntaxCondition(error: CodeSyntaxError, source: string, cell: string): Condition {
  const { line, column } = error.position;
  return {
    type: "SyntaxError",
    message: `${error.message} (line ${line}, column ${column})\n${excerptOf(source, line, column)}`,
    restarts: [],
    frames: [{ number: 0, text: `${cell}:${line}:${column}` }],
  };
}

/** Returns the line, cut if it is long, with a mark below the column. */
function excerptOf(source: string, line: number, column: number): string {
  const whole = source.split("\n")[line - 1] ?? "";
  const from = Math.max(0, column - 60);
  const before = whole.slice(from, column - 1).replaceAll(/\S/g, " ");
  return `  ${whole.slice(from, from + 100)}\n  ${before}^`;
}

function stackLines(stack: string): string[] {
  return stack
    .split("\n")
    .filter((line) => line.startsWith(AT))
    .map((line) => withPosition(line.slice(AT.length)));
}

/** V8 leaves out the position of a call at the very beginning of the code. */
function withPosition(frame: string): string {
  return frame.replace(/(<eval \d+>)(\)?)$/, "$1:1:1$2");
}

function frameText({ name, url, line, column }: ThrownFrame): string {
  const place = `${url}:${line}:${column}`;
  return name === "" ? place : `${name} (${place})`;
}

/** Whether the line of a stack, such as `Shop.sell (<eval 3>:2:5)`, is the frame that was captured. */
function isSameFrame(text: string, { name, url, line }: ThrownFrame): boolean {
  const [, calledName = "", , at] =
    /^(?:async )?(?:new )?(?:(.*?)(?: \[as [^\]]*\])? )?(\()?.*?:(\d+)(?::\d+)?\)?$/.exec(text) ?? [];
  if (!text.includes(url)) return false;
  const lastName = calledName.slice(calledName.lastIndexOf(".") + 1).replace("<anonymous>", "");
  return lastName === name.slice(name.lastIndexOf(".") + 1) || Number(at) === line;
}

function isNodeFrame(text: string): boolean {
  return /(?:^|\(|async |at )node:/.test(text) || text === "<anonymous>";
}

function cutFrame(text: string): string {
  return text.length > MAX_FRAME_LENGTH ? `${text.slice(0, MAX_FRAME_LENGTH)}...` : text;
}
