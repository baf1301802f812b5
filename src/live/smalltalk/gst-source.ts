// Splits the source of an evaluation into pieces that GNU Smalltalk can compile one by one: statements, class definitions
// and methods, in bracket syntax (`Object subclass: Point3 [ ... ]`) and in chunk format (`!Point3 methodsFor: 'x'!`).
// GNU Smalltalk reads such files itself, but then it prints mistakes to stderr and answers no value.

import { defined } from "../../core/values.ts";
import { isMark, Lines, nextMark, readVariables, tokenize, type Scope, type Token } from "./gst-tokens.ts";

export interface Piece {
  /** `file`: something that only the reader of GNU Smalltalk itself understands. */
  readonly kind: "statements" | "class" | "method" | "variable" | "comment" | "mistake" | "file";
  /** The line of the evaluation in which it begins. */
  readonly line: number;
  readonly text: string;
  /** The class that it belongs to: `Point3` or `Point3 class`. */
  readonly class?: string;
  readonly superclass?: string;
  /** Names of instance variables, separated by spaces; absent if the definition does not mention them. */
  readonly variables?: string;
  readonly category?: string;
  /** Names that become variables of the session, if they have no other meaning. */
  readonly assigned?: string;
  /** Names with a capital letter that it uses. */
  readonly globals?: string;
  /** Names of classes that it defines by messages such as `subclass:`. */
  readonly classes?: string;
  /** The names of arguments and temporaries: a line for each scope. */
  readonly scopes?: string;
  /** The name of a class variable. */
  readonly name?: string;
}

/** GNU Smalltalk crashes if code is nested very deeply. */
const MAX_NESTING = 1_000;

/** `firstLine` is the number of its first line. */
export function parseSource(source: string, firstLine = 1): readonly Piece[] {
  const tokens = tokenize(source);
  if (isTooDeep(tokens)) return [tooDeep(firstLine)];
  if (tokens.some((token) => isMark(token, "!"))) return parseChunks(source);
  const lines = new Lines(source, firstLine);
  const pieces: Piece[] = [];
  let begin = 0;
  for (let i = 0; i < tokens.length;) {
    const definition = readHeader(tokens, i);
    if (definition === undefined) {
      i = skip(tokens, i);
      continue;
    }
    const { start = 0 } = tokens[i] ?? {};
    const close = matching(tokens, definition.bracket);
    const end = tokens[close]?.end ?? source.length;
    pieces.push(...statementPieces(source, lines, begin, start));
    pieces.push(...definitionPieces(source, lines, tokens, i, close, definition));
    begin = end;
    i = close + 1;
    // A period after a definition is not a statement.
    if (isMark(tokens[i], ".")) begin = (tokens[i++] as Token).end;
  }
  return [...pieces, ...statementPieces(source, lines, begin, source.length)];
}

function isTooDeep(tokens: readonly Token[]): boolean {
  let depth = 0;
  return tokens.some(({ type, text }) => {
    if (type === "mark" && text in CLOSERS) depth += 1;
    else if (type === "mark" && /^[\])}]$/.test(text)) depth -= 1;
    return depth > MAX_NESTING;
  });
}

function tooDeep(line: number): Piece {
  return {
    kind: "mistake",
    line,
    text: `the code is nested more than ${MAX_NESTING.toLocaleString("en")} levels deep`,
  };
}

/** A method as the tool compile-method takes it: a message pattern and a body, with or without brackets. */
export function methodPiece(className: string, text: string, line: number, category?: string): Piece {
  const tokens = tokenize(text);
  if (isTooDeep(tokens)) return tooDeep(line);
  const { parameters, next } = readPattern(tokens, 0);
  const start = tokens[next]?.start ?? text.length;
  // A body may begin with a block; brackets around the whole body end with it.
  const isBracketed = isMark(tokens[next], "[") && matching(tokens, next) >= tokens.length - 1;
  // The scopes are counted from the first line of the text, so what stands before the body becomes empty lines.
  const before = text.slice(0, isBracketed ? start + 1 : start).replaceAll(/[^\n]/g, " ");
  const body = before + text.slice(before.length);
  const scopes = readVariables(isBracketed ? body.slice(0, body.lastIndexOf("]")) : body, parameters).scopes;
  const whole = isBracketed ? text : `${text.slice(0, start)}[ ${text.slice(start)} ]`;
  const common = { kind: "method", class: className, line, text: whole, scopes: scopeLines(scopes) } as const;
  return category === undefined ? common : { ...common, category };
}

interface Header {
  readonly kind: "subclass" | "extend" | "method" | "other";
  readonly class: string;
  readonly superclass?: string;
  /** The index of the opening bracket. */
  readonly bracket: number;
  /** The index of the first token of a method's pattern. */
  readonly pattern?: number;
}

/** Reads `A subclass: B [`, `A extend [`, `A class extend [`, `A >> pattern [`, `A class >> pattern [`, `Eval [`. */
function readHeader(tokens: readonly Token[], start: number): Header | undefined {
  const [first, second, third, fourth] = tokens.slice(start, start + 4);
  if (first?.type !== "name") return undefined;
  if (isMark(second, "[") && first.text === "Eval") return { kind: "other", class: "Eval", bracket: start + 1 };
  if (second?.text === "subclass:" && third?.type === "name" && isMark(fourth, "["))
    return { kind: "subclass", class: third.text, superclass: first.text, bracket: start + 3 };
  if (first.text === "Namespace" && second?.text === "current:" && isMark(fourth, "["))
    return { kind: "other", class: "", bracket: start + 3 };
  const isClassSide = second?.type === "name" && second.text === "class";
  const at = start + (isClassSide ? 2 : 1);
  const className = isClassSide ? `${first.text} class` : first.text;
  if (tokens[at]?.text === "extend" && isMark(tokens[at + 1], "["))
    return { kind: "extend", class: className, bracket: at + 1 };
  if (tokens[at]?.text !== ">>") return undefined;
  const { next } = readPattern(tokens, at + 1);
  return isMark(tokens[next], "[") ? { kind: "method", class: className, bracket: next, pattern: at + 1 } : undefined;
}

/** Reads a message pattern: the names of its arguments, and the index of the token after it. */
function readPattern(tokens: readonly Token[], start: number): { parameters: readonly string[]; next: number } {
  const first = tokens[start];
  if (first?.type === "name") return { parameters: [], next: start + 1 };
  if (first?.type === "binary") return { parameters: [tokens[start + 1]?.text ?? ""], next: start + 2 };
  const parameters: string[] = [];
  let next = start;
  for (; tokens[next]?.type === "keyword" && tokens[next + 1]?.type === "name"; next += 2)
    parameters.push((tokens[next + 1] as Token).text);
  return { parameters, next };
}

/** The index after the token at `i`, or after the bracket that closes it. */
function skip(tokens: readonly Token[], i: number): number {
  return ["[", "(", "{"].some((open) => isMark(tokens[i], open)) ? matching(tokens, i) + 1 : i + 1;
}

const CLOSERS: Readonly<Record<string, string>> = { "[": "]", "(": ")", "{": "}" };

/** The index of the bracket that closes the one at `open`, or after the last token if none does. */
function matching(tokens: readonly Token[], open: number): number {
  const opener = tokens[open]?.text ?? "";
  const closer = CLOSERS[opener];
  let depth = 0;
  for (let i = open; i < tokens.length; i++) {
    const token = tokens[i];
    if (token?.type !== "mark") continue;
    // Of other brackets, square ones are not counted: then a missing round one is a mistake of its method only.
    if (token.text === opener) depth += 1;
    else if (token.text === closer) depth -= 1;
    if (depth === 0) return i;
  }
  return tokens.length;
}

function statementPieces(source: string, lines: Lines, start: number, end: number): readonly Piece[] {
  const raw = source.slice(start, end);
  const { scopes, assigned, globals, statements, declarations } = readVariables(raw);
  const last = statements.at(-1);
  if (last === undefined) return [];
  let text = raw[last] === "^" ? raw : `${raw.slice(0, last)}^${raw.slice(last)}`;
  // GNU Smalltalk takes one declaration, at the front; its interactive reader takes more. Lines stay what they are.
  if (declarations.length > 1) {
    for (const { start: from, end: to } of declarations.toReversed()) {
      const shift = raw[last] !== "^" && from >= last ? 1 : 0;
      text = text.slice(0, from + shift) + " ".repeat(to - from) + text.slice(to + shift);
    }
    text = `| ${scopes[0]?.temporaries.join(" ")} | ${text}`;
  }
  const line = lines.at(start);
  const classes = definedClasses(raw);
  const names = { assigned: assigned.join(" "), globals: globals.join(" "), ...defined({ classes }) };
  return [{ kind: "statements", line, text, ...names, scopes: scopeLines(scopes) }];
}

/** The symbols after `subclass:` and `<<`. */
function definedClasses(source: string): string | undefined {
  const tokens = tokenize(source);
  const names = tokens.flatMap(({ type, text }, at) => {
    const { text: message = "" } = tokens[at - 1] ?? {};
    return type === "symbol" && /^(?:[a-zA-Z]*[sS]ubclass:|<<)$/.test(message) ? [text.slice(1)] : [];
  });
  return names.length === 0 ? undefined : names.join(" ");
}

/** `first line, last line, number of parameters, order, names` for each scope. */
function scopeLines(scopes: readonly Scope[]): string {
  return scopes
    .map(({ firstLine, lastLine, order, parameters, temporaries }) =>
      [firstLine, lastLine, parameters.length, order, ...parameters, ...temporaries].join(" "),
    )
    .join("\n");
}

function definitionPieces(
  source: string,
  lines: Lines,
  tokens: readonly Token[],
  first: number,
  close: number,
  header: Header,
): readonly Piece[] {
  const start = tokens[first]?.start ?? 0;
  const end = tokens[close]?.end ?? source.length;
  const file: Piece = { kind: "file", line: lines.at(start), text: source.slice(start, end) };
  if (close >= tokens.length)
    return [{ kind: "mistake", line: lines.at(source.length), text: "expected ] at the end of the definition" }];
  if (header.class === "Eval")
    return statementPieces(source, lines, tokens[header.bracket]?.end ?? 0, tokens[close]?.start ?? 0);
  if (header.kind === "other") return [file];
  if (header.kind === "method") {
    const from = tokens[header.pattern ?? first]?.start ?? start;
    return [methodPiece(header.class, source.slice(from, end), lines.at(from))];
  }
  const body = readBody(source, lines, tokens, header.bracket + 1, close, header.class);
  if (body === undefined) return [file];
  if (header.kind === "extend" && body.variables === undefined) return body.pieces;
  const variables = body.variables?.join(" ");
  const definition: Piece = {
    ...{ kind: "class", class: header.class, line: file.line, text: "" },
    ...(header.superclass !== undefined && { superclass: header.superclass }),
    ...(variables !== undefined && { variables }),
    ...(body.category !== undefined && { category: body.category }),
  };
  return [definition, ...body.pieces];
}

interface Body {
  /** Absent if none are declared. */
  variables?: string[];
  category?: string;
  readonly pieces: Piece[];
}

/** Reads the inside of a class. Returns undefined for what is left to GNU Smalltalk, such as `<shape: #byte>`. */
function readBody(
  source: string,
  lines: Lines,
  tokens: readonly Token[],
  start: number,
  close: number,
  className: string,
): Body | undefined {
  const body: Body = { pieces: [] };
  for (let i = start; i < close;) {
    const token = tokens[i] as Token;
    const line = lines.at(token.start);
    if (isMark(token, "|")) {
      const end = nextMark(tokens, i, "|");
      if (end === -1 || end > close) return undefined;
      body.variables ??= [];
      for (const { text } of tokens.slice(i + 1, end)) body.variables.push(text);
      i = end + 1;
    } else if (isMark(token, "<")) {
      const [key, value, end] = tokens.slice(i + 1, i + 4);
      if (value?.type !== "string" || !isMark(end, ">")) return undefined;
      const text = value.text.slice(1, -1).replaceAll("''", "'");
      if (key?.text === "comment:") body.pieces.push({ kind: "comment", class: className, line, text });
      else if (key?.text === "category:") body.category = text;
      else return undefined;
      i += 4;
    } else if (token.type === "name" && tokens[i + 1]?.type === "assign") {
      const end = nextMark(tokens, i, ".");
      if (end === -1 || end > close) return undefined;
      const text = `^${source.slice((tokens[i + 1] as Token).end, tokens[end]?.start)}`;
      body.pieces.push({ kind: "variable", class: className, name: token.text, line, text });
      i = end + 1;
    } else if (tokens[i + 1]?.text === "class" && isMark(tokens[i + 2], "[")) {
      const end = matching(tokens, i + 2);
      const inner = readBody(source, lines, tokens, i + 3, end, `${className} class`);
      if (inner === undefined) return undefined;
      const variables = inner.variables?.join(" ");
      if (variables !== undefined)
        body.pieces.push({ kind: "class", class: `${className} class`, line, text: "", variables });
      body.pieces.push(...inner.pieces);
      i = end + 1;
    } else {
      const header = readHeader(tokens, i);
      const isQualified = header?.kind === "method";
      const from = isQualified ? (header.pattern ?? i) : i;
      const { next } = readPattern(tokens, from);
      if (next === from || !isMark(tokens[next], "[")) return undefined;
      const end = matching(tokens, next);
      const first = tokens[from] as Token;
      const owner = isQualified && /\sclass$/.test(header.class) ? `${className} class` : className;
      const text = source.slice(first.start, tokens[end]?.end);
      body.pieces.push(methodPiece(owner, text, lines.at(first.start)));
      i = end + 1;
    }
  }
  return body;
}

/** Chunk format: chunks end with `!`; after `methodsFor:` come methods, up to an empty chunk. */
function parseChunks(source: string): readonly Piece[] {
  return splitChunks(source).flatMap(({ text, line, class: owner, category }) =>
    owner === undefined ? parseSource(text.replace(/\.\s*$/, ""), line) : [methodPiece(owner, text, line, category)],
  );
}

function splitChunks(source: string): readonly Chunk[] {
  const methodChunks: Chunk[] = [];
  const lines = new Lines(source);
  let methods: { readonly class: string; readonly category: string } | undefined;
  for (const { start, text } of chunks(source)) {
    const trimmed = text.trim();
    const line = lines.at(start + text.indexOf(trimmed));
    const [, owner, category = ""] = /^([\w.]+(?: class)?)\s+methodsFor:\s*'([^']*(?:''[^']*)*)'$/.exec(trimmed) ?? [];
    if (trimmed === "") methods = undefined;
    else if (methods !== undefined) methodChunks.push({ text: trimmed, line, ...methods });
    else if (owner !== undefined) methods = { class: owner, category };
    else methodChunks.push({ text: trimmed, line });
  }
  return methodChunks;
}

/** For an image, which has no bracket syntax: statements and methods as they are written. */
export function chunkPieces(source: string): readonly Piece[] {
  const statements = (text: string, line: number): Piece => ({
    ...{ kind: "statements", line, text },
    assigned: readVariables(text).assigned.join(" "),
  });
  if (!tokenize(source).some((token) => isMark(token, "!"))) return source.trim() === "" ? [] : [statements(source, 1)];
  return splitChunks(source).map(({ text, line, class: owner, category }) =>
    owner === undefined
      ? statements(text, line)
      : { kind: "method", line, text, class: owner, ...defined({ category }) },
  );
}

interface Chunk {
  readonly text: string;
  readonly line: number;
  /** Of a method. */
  readonly class?: string;
  readonly category?: string;
}

/** The chunks with doubled exclamation marks made single. Exclamation marks in strings end a chunk too. */
function chunks(source: string): readonly { readonly start: number; readonly text: string }[] {
  const chunks: { start: number; text: string }[] = [];
  let start = 0;
  for (const { index } of source.matchAll(/(?<!!)(?:!!)*!(?!!)/g)) {
    const end = source.indexOf("!", index) + (/^!+/.exec(source.slice(index))?.[0].length ?? 1) - 1;
    chunks.push({ start, text: source.slice(start, end).replaceAll("!!", "!") });
    start = end + 1;
  }
  if (source.slice(start).trim() !== "") chunks.push({ start, text: source.slice(start).replaceAll("!!", "!") });
  return chunks;
}
