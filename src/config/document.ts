// Parses the text of a config and collects its problems, each with a position. Comments, trailing commas and a byte order
// mark are allowed; syntax errors are reported in plain words. The readers decide what the values mean. A file in TOML is
// parsed into the same nodes.

import { createScanner, parseTree, printParseErrorCode, type ParseError } from "jsonc-parser";
import { readBounded } from "../core/files.ts";
import { defined, isObject } from "../core/values.ts";

/** A value in a document, as jsonc-parser has it, whose declarations are not in the package. */
export interface Node {
  readonly type: "object" | "array" | "property" | "string" | "number" | "boolean" | "null";
  readonly value?: unknown;
  readonly offset: number;
  readonly length: number;
  readonly colonOffset?: number;
  readonly parent?: Node;
  readonly children?: Node[];
}

/** The most bytes of a config, or of a client's file. Some clients keep all that they know in one file. */
export const MAX_CONFIG_BYTES = 33_554_432;
/** The most servers of a config. */
export const MAX_SERVERS = 1_000;
/** The parser is recursive, so the depth must be limited. No real config comes near this. */
const MAX_DEPTH = 64;
/** One mistake can cause many syntax errors. Only the first of each line is reported, and no more than this many. */
const MAX_SYNTAX_ERRORS = 20;

/** After one of these errors, the parser can still make sense of the rest of the text. */
const RECOVERABLE = new Set(["CommaExpected", "InvalidEscapeCharacter", "InvalidUnicode", "InvalidCharacter"]);

const MESSAGES: Readonly<Record<string, readonly [message: string, hint?: string]>> = {
  InvalidSymbol: ["Not a JSON value", "put strings in double quotes; only true, false and null need none"],
  InvalidNumberFormat: ["Not a JSON number", "write 10, 1.5 or 1e3"],
  PropertyNameExpected: ["Expected a key in double quotes"],
  ValueExpected: ["Expected a value"],
  ColonExpected: ["Expected a colon between key and value"],
  CommaExpected: ["Expected a comma before this"],
  CloseBraceExpected: ["Expected a closing brace }"],
  CloseBracketExpected: ["Expected a closing bracket ]"],
  EndOfFileExpected: ["Unexpected text after the config", "the file holds one object, { ... }, and comments"],
  UnexpectedEndOfComment: ["The comment is not closed", "end it with */"],
  UnexpectedEndOfString: ["The string is not closed", 'end it with " on the same line'],
  UnexpectedEndOfNumber: ["The number is incomplete"],
  InvalidUnicode: ["\\u must be followed by four hexadecimal digits"],
  InvalidEscapeCharacter: ["Invalid escape sequence in a string", "write \\\\ for one backslash"],
  InvalidCharacter: ["Unescaped control character in a string", "write \\n for a newline and \\t for a tab"],
};

/** Parses TOML if the path says so, otherwise JSON. Returns undefined if it cannot; the reasons are added to `problems`. */
export async function parseDocument(problems: Problems, path = ""): Promise<Node | undefined> {
  if (path.endsWith(".toml")) return parseToml(problems);
  const { text } = problems;
  const deep = findTooDeep(createScanner(text, true));
  if (deep !== undefined) {
    problems.error(deep, `More than ${MAX_DEPTH} nested objects and arrays`, "a config needs no more than 8");
    return undefined;
  }
  if (text.trim() === "") {
    problems.error(
      0,
      "The file is empty",
      'write {"mcpServers": {"notes": {"command": "npx", "args": ["-y", "notes-mcp"]}}}',
    );
    return undefined;
  }
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  const codes = errors.map(({ error }) => printParseErrorCode(error));
  const lines = new Set<number>();
  for (const [index, { offset }] of errors.entries()) {
    if (lines.size === MAX_SYNTAX_ERRORS) break;
    const { line } = problems.position(offset);
    if (lines.has(line)) continue;
    lines.add(line);
    const [message, hint] = MESSAGES[codes[index] ?? ""] ?? ["Not valid JSON"];
    problems.error(Math.min(offset, text.length), message, hint);
  }
  if (root === undefined || codes.some((code) => !RECOVERABLE.has(code))) return undefined;
  removeDuplicates(root, problems);
  return root;
}

/** Parses a file in TOML, which some clients use. */
async function parseToml(problems: Problems): Promise<Node | undefined> {
  const { text } = problems;
  const { parse, TomlError } = await import("smol-toml");
  try {
    return toNode(parse(text, { maxDepth: MAX_DEPTH }), 0, keyOffsets(text));
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // Only the first line of the message: the others quote the text.
    const [reason = ""] = error.message.split("\n");
    problems.error(problems.offset(error), `Not valid TOML: ${reason.replace(/^Invalid TOML document: /, "")}`);
    return undefined;
  }
}

/** The offsets of the keys in a text, by their paths as JSON. */
type Offsets = ReadonlyMap<string, number>;

/** Makes nodes of a value. `offset` is that of the nearest key that was found. */
export function toNode(value: unknown, offset: number, offsets: Offsets = new Map(), path: string[] = []): Node {
  const [at, length] = [offsets.get(JSON.stringify(path)) ?? offset, 0];
  if (Array.isArray(value)) {
    const children = value.map((item: unknown, index) => toNode(item, at, offsets, [...path, String(index)]));
    return { type: "array", offset: at, length, children };
  }
  if (!isObject(value)) {
    const type = typeof value as "string" | "number" | "boolean";
    return { type, offset: at, length, value };
  }
  if (value instanceof Date) return { type: "string", offset: at, length, value: value.toISOString() };
  const children = Object.entries(value).map(([name, inner]) => {
    const node = toNode(inner, at, offsets, [...path, name]);
    return makeProperty(node, name, node);
  });
  return { type: "object", offset: at, length, children };
}

/** A key that is written otherwise in the file: `written` is used in messages. */
export interface KeyNode extends Node {
  readonly written?: string;
}

/** A property that begins where `like` does. */
export function makeProperty(like: Node, key: string, value: Node, written: string = key): Node {
  const { offset, length } = like;
  const keyNode: KeyNode = { type: "string", offset, length, value: key, ...(written !== key && { written }) };
  return { type: "property", offset, length, children: [keyNode, value] };
}

export interface Member {
  readonly key: string;
  readonly keyNode: KeyNode;
  readonly property: Node;
  readonly value: Node;
}

/** Empty if the node is not an object. */
export function membersOf(node: Node | undefined): Member[] {
  if (node?.type !== "object") return [];
  return (node.children ?? []).flatMap((property) => {
    const [keyNode, value] = property.children ?? [];
    return keyNode === undefined || value === undefined
      ? []
      : [{ key: String(keyNode.value), keyNode, property, value }];
  });
}

/** The offsets of keys and tables in a file in TOML, by their paths. A key in an inline table is not among them. */
function keyOffsets(text: string): Offsets {
  const offsets = new Map<string, number>();
  const parts = (keys: string): string[] =>
    Array.from(
      keys.matchAll(/"([^"]*)"|'([^']*)'|([\w-]+)/g),
      ([, double, single, bare]) => double ?? single ?? bare ?? "",
    );
  let table: string[] = [];
  for (const { index, 1: header, 2: key } of text.matchAll(
    /^[ \t]*(?:\[+([^\]\n]+)\]|([\w."'-][\w."' -]{0,199}?)[ \t]*=)/gm,
  )) {
    if (header !== undefined) table = parts(header);
    const path = JSON.stringify(key === undefined ? table : [...table, ...parts(key)]);
    if (!offsets.has(path)) offsets.set(path, index);
  }
  return offsets;
}

/** The offset at which the text exceeds MAX_DEPTH. Counts brackets and braces, whether they match or not. */
function findTooDeep(scanner: ReturnType<typeof createScanner>): number | undefined {
  let depth = 0;
  for (;;) {
    const start = scanner.getPosition();
    const token = scanner.scan() as number;
    if (scanner.getPosition() === start) return undefined;
    if (token === OPEN_BRACE || token === OPEN_BRACKET) depth += 1;
    if (token === CLOSE_BRACE || token === CLOSE_BRACKET) depth -= 1;
    if (depth > MAX_DEPTH) return scanner.getTokenOffset();
  }
}

// In jsonc-parser, these are members of a `const enum`, which cannot be imported.
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [1, 2, 3, 4];

/** Reports and removes each key that its object already has. */
function removeDuplicates(node: Node, problems: Problems): void {
  const first = new Map<string, Node>();
  for (const { key, property } of membersOf(node)) {
    const other = first.get(key);
    if (other === undefined) first.set(key, property);
    else {
      const hint = `it is already on line ${problems.position(other.offset).line}: keep one of them`;
      problems.error(property.offset, `Duplicate key ${JSON.stringify(key)}`, hint);
    }
  }
  const { children = [] } = node;
  if (node.type === "object") children.splice(0, children.length, ...first.values());
  for (const child of children) removeDuplicates(child, problems);
}

/** A mistake in a config, or a warning about it. */
export interface Problem {
  /** What is wrong. */
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 code units, as in editors. A byte order mark does not count. */
  readonly column: number;
  /** A config with an error cannot be used; one with warnings can. */
  readonly severity: "error" | "warning";
  /** The server that has no value for one of its variables. Only this server cannot be used because of it. */
  readonly server?: string;
}

/** A config that cannot be used, with all its problems. */
export class ConfigError extends Error {
  /** The path of the config. */
  readonly path: string;
  /** The text of the config. */
  readonly text: string;
  /** All problems, in the order of the text. */
  readonly problems: readonly Problem[];

  constructor(path: string, text: string, problems: readonly Problem[], options?: ErrorOptions) {
    super(problems.map((problem) => describeProblem(path, problem)).join("\n"), options);
    this.name = "ConfigError";
    this.path = path;
    this.text = text;
    this.problems = problems;
  }
}

/** Whether the config cannot be used at all. */
export function isFatal({ severity, server }: Problem): boolean {
  return severity === "error" && server === undefined;
}

/** One line: `catenary.json:3:5: error: message; hint`. */
export function describeProblem(path: string, { line, column, severity, message, hint }: Problem): string {
  return `${path}:${line}:${column}: ${severity}: ${message}${hint === undefined ? "" : `; ${hint}`}`;
}

/** The text of a config or of a client's file, without a byte order mark, so that positions match the text. */
export async function readConfigText(path: string): Promise<string> {
  return (await readBounded(path, MAX_CONFIG_BYTES)).toString().replace(/^\uFEFF/, "");
}

/** A place in the text of a config. */
export type Position = Pick<Problem, "line" | "column">;

export function sortProblems(problems: readonly Problem[]): Problem[] {
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
}

/** Collects the problems of one text. All are reported together, in the order of the text. */
export class Problems {
  /** Without a byte order mark. */
  readonly text: string;
  /** The offset at which each line begins. */
  readonly #lines: readonly number[];
  readonly #problems = new Map<string, Problem>();
  #errors = 0;
  /** The server whose entry is being read. */
  #server: string | undefined;

  constructor(text: string) {
    this.text = text;
    this.#lines = [0, ...Array.from(text.matchAll(/\r\n|\n|\r/g), ({ index, 0: end }) => index + end.length)];
  }

  error(offset: number, message: string, hint?: string): void {
    this.#add(offset, "error", message, hint);
  }

  warn(offset: number, message: string, hint?: string): void {
    this.#add(offset, "warning", message, hint);
  }

  /** Reports an error about a value that is missing now, and that does not concern other servers. */
  missing(offset: number, message: string, hint?: string): void {
    this.#add(offset, "error", message, hint, this.#server);
  }

  /** Reads the entry of a server. */
  within<T>(server: string, work: () => T): T {
    this.#server = server;
    try {
      return work();
    } finally {
      this.#server = undefined;
    }
  }

  /** The number of errors that concern the whole config. */
  get errors(): number {
    return this.#errors;
  }

  sorted(): Problem[] {
    return sortProblems([...this.#problems.values()]);
  }

  position(offset: number): Position {
    let [line, after] = [0, this.#lines.length];
    while (after - line > 1) {
      const middle = (line + after) >> 1;
      if ((this.#lines[middle] ?? 0) <= offset) line = middle;
      else after = middle;
    }
    return { line: line + 1, column: offset - (this.#lines[line] ?? 0) + 1 };
  }

  offset({ line, column }: Position): number {
    return Math.min((this.#lines[line - 1] ?? 0) + column - 1, this.text.length);
  }

  /** A value may be read twice, so the same problem at the same position is kept once. */
  #add(
    offset: number,
    severity: Problem["severity"],
    message: string,
    hint: string | undefined,
    server?: string,
  ): void {
    const problem = defined({ ...this.position(offset), severity, message, hint, server });
    const key = JSON.stringify(problem);
    if (isFatal(problem) && !this.#problems.has(key)) this.#errors += 1;
    this.#problems.set(key, problem);
  }
}
