// The syntax of what is to be evaluated: a tree, made from JavaScript, or from TypeScript whose types have been taken
// out. What reads as JavaScript is taken as JavaScript, and types are looked for only where it does not. Nothing is
// rewritten here.

import { Parser, type Node, type Options, type Program } from "acorn";
import { place, type Place } from "./source-positions.ts";
import { createRequire } from "node:module";

export interface Parsed {
  /** Without types; every line is where it was. */
  readonly source: string;
  readonly program: Program;
  /** An object in braces, which would be read as a block: it is to be put in parentheses. */
  readonly isObject: boolean;
  readonly isTypeScript: boolean;
}

/** Where the text cannot be read, and why. */
export class SyntaxFault extends Error {
  readonly place: Place;
  readonly at: number;

  constructor(what: string, source: string, at: number) {
    super(what);
    this.at = Math.min(at, source.length);
    this.place = place(source, this.at);
  }
}

const OPTIONS: Options = {
  ecmaVersion: "latest",
  // Not strict, as in the sessions of Node itself; imports and `import.meta` are allowed all the same.
  sourceType: "script",
  allowAwaitOutsideFunction: true,
  allowImportExportEverywhere: true,
  locations: true,
};

/** Throws a SyntaxFault. */
export function parse(source: string): Parsed {
  const plain = attempt(source);
  if (!(plain instanceof SyntaxFault)) return { ...plain, isTypeScript: false };
  const typed = attemptTyped(source);
  if (!(typed instanceof SyntaxFault)) return { ...typed, isTypeScript: true };
  throw looksTyped(source, plain.at) ? typed : plain;
}

/** Whether what JavaScript stumbles over may be TypeScript. Otherwise only JavaScript says what is wrong. */
function looksTyped(source: string, at: number): boolean {
  const words = "abstract|as|declare|enum|implements|interface|module|namespace|private|protected|public|readonly|type";
  if (/^[\w$]*\s*[:?!<]/.test(source.slice(at))) return true;
  return (
    new RegExp(`\\b(?:${words}|satisfies)\\s*$`).test(source.slice(0, at)) ||
    new RegExp(`^(?:${words})\\b`).test(source.slice(at))
  );
}

type Attempt = Omit<Parsed, "isTypeScript"> | SyntaxFault;

function attempt(source: string): Attempt {
  const object = /^\s*\{/.test(source) ? objectIn(source) : undefined;
  if (object !== undefined) return { source, program: object, isObject: true };
  const program = tree(source);
  return program instanceof SyntaxFault ? program : { source, program, isObject: false };
}

/** Undefined where it is a block, or nothing at all. */
function objectIn(source: string): Program | undefined {
  const wrapped = tree(`(${source}\n)`);
  if (wrapped instanceof SyntaxFault || wrapped.body.length !== 1) return undefined;
  if (wrapped.body[0]?.type !== "ExpressionStatement") return undefined;
  // Once more, for its places are those of the text without parentheses.
  const expression = Parser.parseExpressionAt(source, source.indexOf("{"), OPTIONS);
  const { start, end } = expression;
  return { ...wrapped, body: [{ type: "ExpressionStatement", expression, start, end }] };
}

function attemptTyped(source: string): Attempt {
  const bare = withoutTypes(source);
  if (typeof bare === "string") return attempt(bare);
  const fault = new SyntaxFault(bare.what, source, offset(source, bare.line, bare.column));
  if (!/^\s*\{/.test(source)) return fault;
  const wrapped = withoutTypes(`(${source}\n)`);
  return typeof wrapped === "string" ? attempt(wrapped.replace("(", "").replace(/\)\s*;?\s*$/, "")) : fault;
}

function tree(source: string): Program | SyntaxFault {
  try {
    return Parser.parse(source, OPTIONS);
  } catch (error) {
    const { message, pos } = error as SyntaxError & { readonly pos?: number };
    if (pos === undefined) throw error;
    const what = message.replace(/ \(\d+:\d+\)$/, "");
    const isCut = pos >= source.trimEnd().length && what === "Unexpected token";
    return new SyntaxFault(isCut ? "Unexpected end of input" : what, source, pos);
  }
}

function offset(source: string, line: number, column: number): number {
  const before = source.split("\n").slice(0, line - 1);
  return before.reduce((sum, { length }) => sum + length + 1, 0) + column - 1;
}

/** What stands directly inside a node. */
export function children(node: Node): Node[] {
  const found: Node[] = [];
  for (const value of Object.values(node)) {
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value as unknown]) {
      if (typeof one === "object" && one !== null && "type" in one && "start" in one) found.push(one as Node);
    }
  }
  return found;
}

/** What begins a new room for variables and for `await`. */
export function isFunction(node: Node): boolean {
  return /^(?:ArrowFunctionExpression|FunctionExpression|FunctionDeclaration|PropertyDefinition|StaticBlock)$/.test(
    node.type,
  );
}

// Types, taken out of TypeScript without a look at whether they are right: by Node itself where it can, which keeps
// every column, and otherwise by sucrase, which keeps every line and knows enums too. Both are loaded with the first
// text that needs them.

export interface TypeFault {
  readonly what: string;
  readonly line: number;
  readonly column: number;
}

type Strip = (code: string, options: { readonly mode: "strip" }) => string;

const require = createRequire(import.meta.url);

/** The same text in JavaScript, or what stands in the way. */
export function withoutTypes(source: string): string | TypeFault {
  return stripped(source) ?? transformed(source);
}

/** Undefined where Node cannot do it, or not without more than taking out. */
function stripped(source: string): string | undefined {
  const { stripTypeScriptTypes } = require("node:module") as { readonly stripTypeScriptTypes?: Strip };
  if (stripTypeScriptTypes === undefined) return undefined;
  const emitWarning = process.emitWarning.bind(process);
  // That this is an experiment of Node is no news for whoever evaluates.
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(source, { mode: "strip" });
  } catch {
    return undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Sucrase leaves them out without a word. */
const NAMESPACE = /(?:^|[;{}])[ \t]*(?:export\s+)?(?:namespace|module)\s+[A-Za-z_$][\w$.]*\s*\{/m;

function transformed(source: string): string | TypeFault {
  const namespace = NAMESPACE.exec(source);
  if (namespace !== null) {
    const before = source
      .slice(0, namespace.index + namespace[0].search(/(?:export\s+)?(?:namespace|module)\s/))
      .split("\n");
    const what = "Namespaces of TypeScript cannot be evaluated here; use an object or a module";
    return { what, line: before.length, column: (before.at(-1) ?? "").length + 1 };
  }
  const { transform } = require("sucrase") as typeof import("sucrase");
  try {
    const options = { transforms: ["typescript" as const], disableESTransforms: true, preserveDynamicImport: true };
    // What is imported is used by the next text, if not by this one.
    return transform(source, { ...options, keepUnusedImports: true }).code;
  } catch (error) {
    const { message } = error as Error;
    const [, what, line, column] = /^(?:Error transforming \S+: )?(.*) \((\d+):(\d+)\)$/s.exec(message) ?? [];
    if (what === undefined) throw error;
    return { what, line: Number(line), column: Number(column) };
  }
}
