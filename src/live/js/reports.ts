// What the controller tells the host: errors as conditions, and the texts of the JavaScript tools.

import { ExpiringMap } from "../../core/expiring-map.ts";
import type { Condition, Frame, GuestText } from "../runtime.ts";
import type { SourceInfo, VariableList } from "./globals.ts";
import type { HeapProfile } from "./inspector.ts";
import type { Thrown, ThrownFrame } from "./messages.ts";
import { CodeSyntaxError, parse, type Parsed } from "./parse.ts";
import type { ReloadReport } from "./reload.ts";
import { rewrite, type Shift, writtenColumn } from "./rewrite.ts";

// Turns an error into the condition that is sent to the host: type, message, and the stack frames of the user's code,
// with positions in the code as the user wrote it. Frames of Node and of the guest are removed, also in printed errors.

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
    const own = this.#ownFrames(texts);
    return own.slice(0, MAX_FRAMES).map((text, number) => ({ number, text: cutFrame(this.restoreColumns(text)) }));
  }

  /** The frames of the stack, with the variables that were captured. A value that is not an error has no stack. */
  #withLocals(lines: readonly string[], captured: readonly ThrownFrame[]): Frame[] {
    const texts = lines.length > 0 ? this.#ownFrames(lines) : captured.map(frameText);
    let next = 0;
    return texts.slice(0, MAX_FRAMES).map((text, number) => {
      const found = captured.findIndex((one, at) => at >= next && isSameFrame(text, one));
      const shown = { number, text: cutFrame(this.restoreColumns(text)) };
      if (found < 0) return shown;
      next = found + 1;
      return { ...shown, captured: found, locals: captured[found]?.locals ?? [] };
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
  const found = SYNTAX_POSITION.exec(stack)?.groups;
  if (found === undefined) return undefined;
  const { place = "", file = "", line = "", indent = "", mark } = found;
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
  const [, called = "", , at] =
    /^(?:async )?(?:new )?(?:(.*?)(?: \[as [^\]]*\])? )?(\()?.*?:(\d+)(?::\d+)?\)?$/.exec(text) ?? [];
  if (!text.includes(url)) return false;
  const own = called.slice(called.lastIndexOf(".") + 1).replace("<anonymous>", "");
  return own === name.slice(name.lastIndexOf(".") + 1) || Number(at) === line;
}

function isNodeFrame(text: string): boolean {
  return /(?:^|\(|async |at )node:/.test(text) || text === "<anonymous>";
}

function cutFrame(text: string): string {
  return text.length > MAX_FRAME_LENGTH ? `${text.slice(0, MAX_FRAME_LENGTH)}...` : text;
}

// The texts of the JavaScript tools, made from what the main thread found: profiles, heap, variables, sources. Also the
// text of check-syntax, which does not need the main thread.

export interface ToolOutcome {
  readonly value?: string;
  readonly realMs: number;
  readonly found?: unknown;
}

/** The maximum number of rows of a table. */
const MAX_ROWS = 20;

interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
}

interface ProfileRow {
  readonly function: string;
  readonly place: string;
  readonly self: number;
}

export function toolReport(op: string, outcome: ToolOutcome, conditions: ConditionBuilder): GuestText {
  const { found } = outcome;
  const isGuestFile = (url: string): boolean => conditions.isGuestFile(url);
  switch (op) {
    case "profile-code":
      return timeReport(outcome, isGuestFile);
    case "heap-report":
      return heapReport(outcome, found as HeapProfile, isGuestFile);
    case "inspect":
    case "read-resource":
      return found as GuestText;
    case "reload":
      return reloadReport(found as ReloadReport, (thrown) => conditions.fromThrown(thrown));
    case "list-definitions":
    case "list-variables":
      return variableReport(found as VariableList);
    default:
      return sourceReport(found as SourceInfo | string);
  }
}

export function syntaxReport(code: string): GuestText {
  try {
    const parsed = parse(code);
    const { declared, awaits } = rewrite(parsed);
    const language = parsed.typedColumn !== undefined ? "TypeScript" : "JavaScript";
    const names = declared.map(({ name, type }) => `${name} (${type})`).join(", ");
    const text = [
      `The syntax is valid: ${language}, ${parsed.program.body.length} statement(s).`,
      ...(names === "" ? [] : [`It declares ${names}.`]),
      ...(awaits ? ["It has a top-level await."] : []),
    ].join("\n");
    return { text, data: { valid: true, language, declared: declared.map(({ name, type }) => ({ name, type })) } };
  } catch (error) {
    const { message } = parseCondition(error, code, "");
    if (!(error instanceof CodeSyntaxError)) return { text: message, isError: true };
    return {
      text: `The syntax is invalid: ${message}`,
      data: { valid: false, message: error.message, ...error.position },
    };
  }
}

/** One row for each function, the largest first. */
function sumByFunction(
  samples: Iterable<readonly [CallFrame, number]>,
  isGuestFile: (url: string) => boolean,
): ProfileRow[] {
  const sums = new Map<string, ProfileRow>();
  for (const [{ functionName, url, lineNumber }, amount] of samples) {
    // "dispatch" is the profiler itself.
    if (amount === 0 || isGuestFile(url) || (url === "" && functionName === "dispatch")) continue;
    const name = functionName === "" ? "(anonymous)" : functionName;
    const place = url === "" ? "" : `${url}:${lineNumber + 1}`;
    const key = `${name} ${place}`;
    sums.set(key, { function: name, place, self: (sums.get(key)?.self ?? 0) + amount });
  }
  return [...sums.values()].toSorted((one, other) => other.self - one.self);
}

interface TimeProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame }[];
  readonly samples?: readonly number[];
  readonly timeDeltas?: readonly number[];
}

function timeReport({ value, realMs, found }: ToolOutcome, isGuestFile: (url: string) => boolean): GuestText {
  const { nodes = [], samples = [], timeDeltas = [] } = (found ?? {}) as Partial<TimeProfile>;
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const spent = samples.map((id, at) => [frames.get(id) as CallFrame, (timeDeltas[at] ?? 0) / 1000] as const);
  const all = sumByFunction(spent, isGuestFile).filter((row) => !/^\((?:root|program|idle)\)$/.test(row.function));
  const total = all.reduce((sum, { self }) => sum + self, 0);
  const shown = all.slice(0, MAX_ROWS);
  const lines = shown.map((row) => {
    const share = `${((100 * row.self) / total).toFixed(1)}%`.padStart(6);
    return `${row.self.toFixed(1).padStart(9)} ms ${share}  ${row.function}${row.place === "" ? "" : `  ${row.place}`}`;
  });
  const head = `${realMs.toFixed(1)} ms real, ${samples.length} samples, ${total.toFixed(1)} ms in code`;
  const text = [
    head,
    "",
    ...(lines.length > 0 ? ["Self time by function:", ...lines] : ["The code was too short to be sampled."]),
  ];
  if (value !== undefined) text.push("", `=> ${value}`);
  const functions = shown.map((row) => ({ ...row, self: hundredths(row.self) }));
  return { text: text.join("\n"), data: { realMs: hundredths(realMs), samples: samples.length, functions } };
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}

interface HeapNode {
  readonly callFrame: CallFrame;
  readonly selfSize: number;
  readonly children?: readonly HeapNode[];
}

function heapReport(
  { value }: ToolOutcome,
  { heap, memory, spaces, grown, profile }: HeapProfile,
  isGuestFile: (url: string) => boolean,
): GuestText {
  const lines = [
    `Heap: ${bytes(heap.used_heap_size)} used of ${bytes(heap.heap_size_limit)} allowed`,
    `Process: ${bytes(memory.rss)} resident, ${bytes(memory.external)} external, ${bytes(memory.arrayBuffers)} in buffers`,
    `Spaces: ${spaces
      .filter(({ space_used_size: used }) => used > 0)
      .map(({ space_name: name, space_used_size: used }) => `${name.replace(/_space$/, "")} ${bytes(used)}`)
      .join(", ")}`,
  ];
  const { head } = (profile ?? {}) as { readonly head?: HeapNode };
  const shown = head === undefined ? [] : sumByFunction(allocations(head), isGuestFile).slice(0, MAX_ROWS);
  if (grown !== undefined) {
    lines.push(
      "",
      `Heap growth after the code and a full garbage collection: ${grown < 0 ? "-" : "+"}${bytes(Math.abs(grown))}`,
    );
    lines.push(...(shown.length > 0 ? ["Still in use, by allocating function (sampled):"] : []));
    for (const row of shown) lines.push(`${bytes(row.self).padStart(12)}  ${row.function}  ${row.place}`.trimEnd());
  }
  if (value !== undefined) lines.push("", `=> ${value}`);
  const usage = { used: heap.used_heap_size, limit: heap.heap_size_limit, resident: memory.rss };
  return { text: lines.join("\n"), data: { ...usage, ...(grown === undefined ? {} : { grown, allocations: shown }) } };
}

function* allocations(node: HeapNode): Generator<readonly [CallFrame, number]> {
  yield [node.callFrame, node.selfSize];
  for (const child of node.children ?? []) yield* allocations(child);
}

function bytes(count: number): string {
  if (count < 10_000) return `${count} bytes`;
  return count < 10_000_000 ? `${(count / 1024).toFixed(0)} KiB` : `${(count / 1024 / 1024).toFixed(1)} MiB`;
}

function variableReport({ variables, total }: VariableList): GuestText {
  if (total === 0) return { text: "There are no matching variables.", data: { variables, total } };
  const lines = variables.map(({ name, type, preview }) => `${name}: ${type} = ${preview}`);
  if (total > variables.length) lines.push(`... ${total - variables.length} more`);
  return { text: lines.join("\n"), data: { variables, total } };
}

function reloadReport(found: ReloadReport, toCondition: (thrown: Thrown) => Condition): GuestText {
  const { checked, reloaded, names, missing } = found;
  const failed = found.failed.map(({ file, thrown }) => {
    const { type, message } = toCondition(thrown);
    return { file, error: `${type}: ${message}` };
  });
  const lines: string[] = [];
  if (reloaded.length > 0) lines.push("Reloaded:");
  for (const { file, isChanged } of reloaded) lines.push(`  ${file}${isChanged ? "" : " (imports a reloaded module)"}`);
  if (names.length > 0) lines.push(`Names that have the new values: ${names.join(", ")}`);
  if (missing.length > 0)
    lines.push(`Names that have no value in the new modules, so that they keep the old one: ${missing.join(", ")}`);
  if (failed.length > 0) lines.push("Failed, so that the old module stays:");
  for (const { file, error } of failed) lines.push(`  ${file}: ${error.replaceAll("\n", "\n    ")}`);
  if (lines.length === 0) lines.push(`No module has changed, of ${checked} loaded from files outside of packages.`);
  const data = { reloaded: reloaded.map(({ file }) => file), failed: failed.map(({ file }) => file), names, missing };
  return { text: lines.join("\n"), data, isError: failed.length > 0 };
}

function sourceReport(found: SourceInfo | string): GuestText {
  if (typeof found === "string") return { text: found, isError: true };
  const head = found.place === "" ? "" : `// ${found.place}\n`;
  return { text: head + found.source, data: { ...found } };
}
