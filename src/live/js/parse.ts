// Parses code into a syntax tree, as JavaScript if possible, else as TypeScript. Types are removed without being
// checked: by Node if it can, which keeps every column, else by sucrase, which keeps every line and supports enums.
// Node's function and sucrase are loaded on first use.

import { createRequire } from "node:module";
import { Parser, type Node, type Options, type Program } from "acorn";
import { positionAt, type Position } from "./source-positions.ts";

export interface Parsed {
  /** The source without types. Line numbers are unchanged. */
  readonly source: string;
  readonly program: Program;
  /** Whether the code is an object literal, which needs parentheses so that it does not run as a block. */
  readonly isObject: boolean;
  readonly isTypeScript: boolean;
}

/** A syntax error in the user's code, with its position. */
export class CodeSyntaxError extends Error {
  readonly position: Position;
  readonly at: number;

  constructor(message: string, source: string, at: number) {
    super(message);
    this.at = Math.min(at, source.length);
    this.position = positionAt(source, this.at);
  }
}

const OPTIONS: Options = {
  ecmaVersion: "latest",
  // Sloppy mode, as in Node's own REPL. The options below still allow imports and `import.meta`.
  sourceType: "script",
  allowAwaitOutsideFunction: true,
  allowImportExportEverywhere: true,
  locations: true,
};

/** Throws a CodeSyntaxError if the source is neither valid JavaScript nor valid TypeScript. */
export function parse(source: string): Parsed {
  const plain = parseJavaScript(source);
  if (!(plain instanceof CodeSyntaxError)) return { ...plain, isTypeScript: false };
  const typed = parseTypeScript(source);
  if (!(typed instanceof CodeSyntaxError)) return { ...typed, isTypeScript: true };
  throw looksTyped(source, plain.at) ? typed : plain;
}

/**
 * Whether the JavaScript error is at something that may be TypeScript. If not, the JavaScript error is the better one.
 */
function looksTyped(source: string, at: number): boolean {
  const words = "abstract|as|declare|enum|implements|interface|module|namespace|private|protected|public|readonly|type";
  if (/^[\w$]*\s*[:?!<]/.test(source.slice(at))) return true;
  return (
    new RegExp(`\\b(?:${words}|satisfies)\\s*$`).test(source.slice(0, at)) ||
    new RegExp(`^(?:${words})\\b`).test(source.slice(at))
  );
}

type Attempt = Omit<Parsed, "isTypeScript"> | CodeSyntaxError;

function parseJavaScript(source: string): Attempt {
  const object = /^\s*\{/.test(source) ? parseObject(source) : undefined;
  if (object !== undefined) return { source, program: object, isObject: true };
  const program = parseProgram(source);
  return program instanceof CodeSyntaxError ? program : { source, program, isObject: false };
}

/** Undefined if the source is a block or invalid. */
function parseObject(source: string): Program | undefined {
  const wrapped = parseProgram(`(${source}\n)`);
  if (wrapped instanceof CodeSyntaxError || wrapped.body.length !== 1) return undefined;
  if (wrapped.body[0]?.type !== "ExpressionStatement") return undefined;
  // Parsed again without the parentheses, for the right positions.
  const expression = Parser.parseExpressionAt(source, source.indexOf("{"), OPTIONS);
  const { start, end } = expression;
  return { ...wrapped, body: [{ type: "ExpressionStatement", expression, start, end }] };
}

function parseTypeScript(source: string): Attempt {
  const stripped = removeTypes(source);
  if (typeof stripped === "string") return parseJavaScript(stripped);
  const error = new CodeSyntaxError(stripped.message, source, offsetOf(source, stripped));
  if (!/^\s*\{/.test(source)) return error;
  const wrapped = removeTypes(`(${source}\n)`);
  return typeof wrapped === "string" ? parseJavaScript(wrapped.replace("(", "").replace(/\)\s*;?\s*$/, "")) : error;
}

function parseProgram(source: string): Program | CodeSyntaxError {
  try {
    return Parser.parse(source, OPTIONS);
  } catch (error) {
    const { message, pos } = error as SyntaxError & { readonly pos?: number };
    if (pos === undefined) throw error;
    const text = message.replace(/ \(\d+:\d+\)$/, "");
    const isCutOff = pos >= source.trimEnd().length && text === "Unexpected token";
    return new CodeSyntaxError(isCutOff ? "Unexpected end of input" : text, source, pos);
  }
}

function offsetOf(source: string, { line, column }: Position): number {
  const before = source.split("\n").slice(0, line - 1);
  return before.reduce((sum, { length }) => sum + length + 1, 0) + column - 1;
}

interface TypeScriptError extends Position {
  readonly message: string;
}

type StripTypes = (code: string, options: { readonly mode: "strip" }) => string;

const require = createRequire(import.meta.url);

/** Returns the source as JavaScript, or an error if its types cannot be removed. */
function removeTypes(source: string): string | TypeScriptError {
  return removeTypesWithNode(source) ?? removeTypesWithSucrase(source);
}

/** Undefined if this version of Node cannot do it, or if removing types is not enough. */
function removeTypesWithNode(source: string): string | undefined {
  const { stripTypeScriptTypes } = require("node:module") as { readonly stripTypeScriptTypes?: StripTypes };
  if (stripTypeScriptTypes === undefined) return undefined;
  const emitWarning = process.emitWarning.bind(process);
  // The user need not know that this function of Node is experimental.
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(source, { mode: "strip" });
  } catch {
    return undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Matches a namespace. Sucrase would drop it silently. */
const NAMESPACE = /(?:^|[;{}])[ \t]*(?:export\s+)?(?:namespace|module)\s+[A-Za-z_$][\w$.]*\s*\{/m;

function removeTypesWithSucrase(source: string): string | TypeScriptError {
  const namespace = NAMESPACE.exec(source);
  if (namespace !== null) {
    const at = namespace.index + namespace[0].search(/(?:export\s+)?(?:namespace|module)\s/);
    const message = "TypeScript namespaces are not supported; use an object or a module";
    return { message, ...positionAt(source, at) };
  }
  const { transform } = require("sucrase") as typeof import("sucrase");
  try {
    const options = { transforms: ["typescript" as const], disableESTransforms: true, preserveDynamicImport: true };
    // Later code may use an import that this code does not use.
    return transform(source, { ...options, keepUnusedImports: true }).code;
  } catch (error) {
    const { message: raw } = error as Error;
    const [, message, line, column] = /^(?:Error transforming \S+: )?(.*) \((\d+):(\d+)\)$/s.exec(raw) ?? [];
    if (message === undefined) throw error;
    return { message, line: Number(line), column: Number(column) };
  }
}

/** The child nodes of a node. */
export function children(node: Node): Node[] {
  const found: Node[] = [];
  for (const value of Object.values(node)) {
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value as unknown]) {
      if (typeof one === "object" && one !== null && "type" in one && "start" in one) found.push(one as Node);
    }
  }
  return found;
}

/** Whether the node begins a new scope for variables and for `await`. */
export function isFunction(node: Node): boolean {
  return /^(?:ArrowFunctionExpression|FunctionExpression|FunctionDeclaration|PropertyDefinition|StaticBlock)$/.test(
    node.type,
  );
}
