// The text of a config as values that know where they stand. Comments, commas at the end and a byte order mark are
// allowed; what is no JSON otherwise is told in plain words. What the values mean is not known here.

import type { Node, ParseError } from "jsonc-parser";
import type { Problems } from "./problems.ts";

interface Placed {
  readonly offset: number;
}

export interface TextValue extends Placed {
  readonly kind: "text";
  readonly text: string;
  /** Where a place in `text` stands in the source: what is escaped there is longer. */
  offsetOf(index: number): number;
}
export interface Member extends Placed {
  readonly name: string;
  readonly value: Value;
}
export interface ObjectValue extends Placed {
  readonly kind: "object";
  /** Each name once. */
  readonly members: readonly Member[];
}
export interface ListValue extends Placed {
  readonly kind: "list";
  readonly items: readonly Value[];
}
export interface PlainValue extends Placed {
  readonly kind: "number" | "boolean" | "null";
  readonly plain: number | boolean | null;
}
export type Value = TextValue | ObjectValue | ListValue | PlainValue;

/** Values inside each other; nobody writes more by hand, and the parser goes down by calling itself. */
const MOST_DEPTH = 64;
/** One slip may look like many to a parser; of a line only the first is told, and of a file so many. */
const MOST_SYNTAX_PROBLEMS = 20;

/** After one of these the rest of the text is understood as it was meant. */
const HARMLESS = new Set(["CommaExpected", "InvalidEscapeCharacter", "InvalidUnicode", "InvalidCharacter"]);

const SENTENCES: Readonly<Record<string, readonly [message: string, hint?: string]>> = {
  InvalidSymbol: [
    "This is no JSON value",
    "texts stand in double quotes; the words without quotes are true, false and null",
  ],
  InvalidNumberFormat: ["This is no number as JSON writes it", "write 10, 1.5 or 1e3"],
  PropertyNameExpected: ["A name in double quotes must stand here"],
  ValueExpected: ["A value is missing here"],
  ColonExpected: ["A colon is missing between a name and its value"],
  CommaExpected: ["A comma is missing before this"],
  CloseBraceExpected: ["A closing brace } is missing"],
  CloseBracketExpected: ["A closing bracket ] is missing"],
  EndOfFileExpected: ["There is more after the end of the config", "the file holds one object, { ... }, and comments"],
  UnexpectedEndOfComment: ["A comment that begins with /* is not closed", "end it with */"],
  UnexpectedEndOfString: ["A text is not closed", 'end it with " on the same line'],
  UnexpectedEndOfNumber: ["A number is not complete"],
  InvalidUnicode: ["\\u is followed by four digits from 0 to f"],
  InvalidEscapeCharacter: ["A backslash means something special in a text", "write \\\\ for one backslash"],
  InvalidCharacter: ["This character must be escaped in a text", "write \\n for a new line and \\t for a tab"],
};

/** Undefined where nothing can be made of it; `problems` says why. */
export async function parseDocument(text: string, problems: Problems): Promise<Value | undefined> {
  const { createScanner, parseTree, printParseErrorCode } = await import("jsonc-parser");
  const deep = tooDeep(createScanner(text, true));
  if (deep !== undefined) {
    problems.error(
      deep,
      `Values stand more than ${MOST_DEPTH} deep inside each other`,
      "a config needs no more than 8",
    );
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
  const names = errors.map(({ error }) => printParseErrorCode(error));
  const lines = new Set<number>();
  for (const [index, { offset }] of errors.entries()) {
    const { line } = problems.position(offset);
    if (lines.has(line) || lines.size === MOST_SYNTAX_PROBLEMS) continue;
    lines.add(line);
    const [message, hint] = SENTENCES[names[index] ?? ""] ?? ["This is no JSON"];
    problems.error(Math.min(offset, text.length), message, hint);
  }
  if (root === undefined || names.some((name) => !HARMLESS.has(name))) return undefined;
  return valueOf(root, text, problems);
}

/** Where it becomes too deep. Brackets are counted, whatever they close. */
function tooDeep(scanner: ReturnType<typeof import("jsonc-parser").createScanner>): number | undefined {
  let depth = 0;
  for (;;) {
    const start = scanner.getPosition();
    const token = scanner.scan() as number;
    if (scanner.getPosition() === start) return undefined;
    if (token === OPEN_BRACE || token === OPEN_BRACKET) depth += 1;
    if (token === CLOSE_BRACE || token === CLOSE_BRACKET) depth -= 1;
    if (depth > MOST_DEPTH) return scanner.getTokenOffset();
  }
}

// A `const enum` of the package, which has no value to import.
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [1, 2, 3, 4];

function valueOf(node: Node, text: string, problems: Problems): Value {
  const { offset, children = [] } = node;
  switch (node.type) {
    case "object":
      return { kind: "object", offset, members: membersOf(children, text, problems) };
    case "array":
      return { kind: "list", offset, items: children.map((child) => valueOf(child, text, problems)) };
    case "string":
      return { kind: "text", offset, text: String(node.value), offsetOf: offsetsIn(text, offset) };
    case "property":
    case "number":
    case "boolean":
    case "null":
      return { kind: node.type === "property" ? "null" : node.type, offset, plain: node.value as PlainValue["plain"] };
  }
}

function membersOf(properties: readonly Node[], text: string, problems: Problems): Member[] {
  const members = new Map<string, Member>();
  for (const { children: [key, child] = [] } of properties) {
    if (key === undefined || child === undefined) continue;
    const name = String(key.value);
    const first = members.get(name);
    const member = { name, offset: key.offset, value: valueOf(child, text, problems) };
    if (first === undefined) {
      members.set(name, member);
      continue;
    }
    const { line } = problems.position(first.offset);
    problems.error(
      key.offset,
      `${JSON.stringify(name)} stands here for the second time`,
      `it is on line ${line} already: keep one of them`,
    );
  }
  return [...members.values()];
}

/** Goes on from where it was asked last, since a text is read from its beginning to its end. */
function offsetsIn(text: string, offset: number): TextValue["offsetOf"] {
  let [passed, at] = [0, offset + 1];
  return (index) => {
    if (index < passed) [passed, at] = [0, offset + 1];
    for (; passed < index; passed += 1) at += text[at] !== "\\" ? 1 : text[at + 1] === "u" ? 6 : 2;
    return Math.min(at, text.length);
  };
}
