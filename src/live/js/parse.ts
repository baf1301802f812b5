// Parses code into a syntax tree, as JavaScript if possible, else as TypeScript. Types are removed without being checked
// by sucrase, which keeps every line and supports enums. It is loaded on first use. Also finds the names that the code
// imports.

import { createRequire, SourceMap, type SourceMapping } from "node:module";
import type { Expression, Node, Options, Pattern, Program } from "acorn";

/** Line and column, both counted from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface Parsed {
  /** The source without types. Line numbers are unchanged. */
  readonly source: string;
  readonly program: Program;
  /** Whether the code is an object literal, which needs parentheses so that it does not run as a block. */
  readonly isObject: boolean;
  /** For TypeScript: maps a column of `source` to the column that the user wrote; undefined if it is uncertain. */
  readonly typedColumn?: (line: number, column: number) => number | undefined;
}

/** A name of the session that gets a value of a module. */
export interface ImportedName {
  readonly name: string;
  readonly specifier: string;
  /** The properties that lead from the module to the value; empty for the module as a whole. */
  readonly path: readonly string[];
  readonly isRequire: boolean;
}

/** A syntax error in the user's code, with its position. */
export class CodeSyntaxError extends Error {
  readonly position: Position;

  constructor(message: string, { line, column }: Position) {
    super(message);
    this.position = { line, column };
  }
}

// A file of this package (build.js), since the package installs its code twice.
const { Parser } = createRequire(import.meta.url)("#acorn") as typeof import("acorn");

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
  try {
    return parseJavaScript(source);
  } catch (plain) {
    if (!(plain instanceof CodeSyntaxError)) throw plain;
    try {
      return parseTypeScript(source);
    } catch (typed) {
      throw typed instanceof CodeSyntaxError && !looksTyped(source, plain.position) ? plain : typed;
    }
  }
}

/**
 * Whether the JavaScript error is at something that may be TypeScript. If not, the JavaScript error is the better one.
 */
function looksTyped(source: string, { line, column }: Position): boolean {
  const lines = source.split("\n");
  const text = lines[line - 1] ?? "";
  const before = [...lines.slice(0, line - 1), text.slice(0, column - 1)].join("\n");
  const after = text.slice(column - 1);
  const words = "abstract|as|declare|enum|implements|interface|module|namespace|private|protected|public|readonly|type";
  return (
    /^[\w$]*\s*[:?!<]/.test(after) ||
    new RegExp(`\\b(?:${words}|satisfies)\\s*$`).test(before) ||
    new RegExp(`^(?:${words})\\b`).test(after)
  );
}

function parseJavaScript(source: string): Parsed {
  const object = /^\s*\{/.test(source) ? parseObject(source) : undefined;
  if (object !== undefined) return { source, program: object, isObject: true };
  return { source, program: parseProgram(source), isObject: false };
}

/** Undefined if the source is a block or invalid. */
function parseObject(source: string): Program | undefined {
  try {
    const wrapped = parseProgram(`(${source}\n)`);
    if (wrapped.body.length !== 1 || wrapped.body[0]?.type !== "ExpressionStatement") return undefined;
    // Parsed again without the parentheses, for the right positions.
    const expression = Parser.parseExpressionAt(source, source.indexOf("{"), OPTIONS);
    const { start, end } = expression;
    return { ...wrapped, body: [{ type: "ExpressionStatement", expression, start, end }] };
  } catch (error) {
    if (error instanceof CodeSyntaxError) return undefined;
    throw error;
  }
}

function parseProgram(source: string): Program {
  try {
    return Parser.parse(source, OPTIONS);
  } catch (error) {
    const { message, pos, loc } = error as SyntaxError & { readonly pos: number; readonly loc?: Position };
    if (loc === undefined) throw error;
    const text = message.replace(/ \(\d+:\d+\)$/, "");
    const isCutOff = pos >= source.trimEnd().length && text === "Unexpected token";
    const position = { line: loc.line, column: loc.column + 1 };
    throw new CodeSyntaxError(isCutOff ? "Unexpected end of input" : text, position);
  }
}

function parseTypeScript(source: string): Parsed {
  try {
    const { code, typedColumn } = removeTypes(source);
    return { ...parseJavaScript(code), typedColumn };
  } catch (error) {
    if (!/^\s*\{/.test(source)) throw error;
    const wrapped = removeTypes(`(${source}\n)`);
    const code = wrapped.code.slice(0, wrapped.code.lastIndexOf(")")).replace("(", "");
    // The parenthesis has moved the first line.
    const typedColumn: Parsed["typedColumn"] = (line, column) =>
      line === 1 ? undefined : wrapped.typedColumn(line, column);
    return { ...parseJavaScript(code), typedColumn };
  }
}

/** Matches a namespace. Sucrase would drop it silently. */
const NAMESPACE = /(?:^|[;{}])[ \t]*((?:export\s+)?(?:namespace|module)\s+[A-Za-z_$][\w$.]*\s*\{)/dm;

/** Throws a CodeSyntaxError if the types cannot be removed. */
function removeTypes(source: string): Required<Pick<Parsed, "typedColumn">> & { readonly code: string } {
  const [at] = NAMESPACE.exec(source)?.indices?.[1] ?? [];
  if (at !== undefined) {
    const lines = source.slice(0, at).split("\n");
    const position = { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 };
    throw new CodeSyntaxError("TypeScript namespaces are not supported; use an object or a module", position);
  }
  const { transform } = createRequire(import.meta.url)("#sucrase") as typeof import("sucrase");
  try {
    const { code, sourceMap } = transform(source, {
      transforms: ["typescript"],
      disableESTransforms: true,
      preserveDynamicImport: true,
      // Later code may use an import that this code does not use.
      keepUnusedImports: true,
      filePath: "code.ts",
      sourceMapOptions: { compiledFilename: "code.js" },
    });
    const map = new SourceMap(sourceMap as ConstructorParameters<typeof SourceMap>[0]);
    const typedColumn = (line: number, column: number): number | undefined => {
      const { originalLine, originalColumn } = map.findEntry(line - 1, column - 1) as Partial<SourceMapping>;
      return originalLine === line - 1 && originalColumn !== undefined ? originalColumn + 1 : undefined;
    };
    return { code, typedColumn };
  } catch (error) {
    const { message: raw } = error as Error;
    const [, message, line, column] = /^(?:Error transforming \S+: )?(.*) \((\d+):(\d+)\)$/s.exec(raw) ?? [];
    if (message === undefined) throw error;
    throw new CodeSyntaxError(message, { line: Number(line), column: Number(column) });
  }
}

/** The names that get values of modules at the top level, by import declarations, `await import()` and `require`. */
export function findImports({ body }: Program): ImportedName[] {
  const names: ImportedName[] = [];
  for (const node of body) {
    const statement = node.type === "ExportNamedDeclaration" ? (node.declaration ?? node) : node;
    if (statement.type === "ImportDeclaration") {
      const specifier = String(statement.source.value);
      for (const imported of statement.specifiers) {
        const key = imported.type === "ImportSpecifier" ? keyText(imported.imported) : "default";
        const path = imported.type === "ImportNamespaceSpecifier" ? [] : [key];
        names.push({ name: imported.local.name, specifier, path, isRequire: false });
      }
    } else if (statement.type === "VariableDeclaration") {
      for (const { id, init } of statement.declarations) if (init) names.push(...namesIn(id, init));
    } else if (statement.type === "ExpressionStatement" && statement.expression.type === "AssignmentExpression") {
      names.push(...namesIn(statement.expression.left, statement.expression.right));
    }
  }
  return names;
}

/** What the pattern binds if the value is a module or a property of one. */
function namesIn(pattern: Pattern, value: Expression): ImportedName[] {
  const path: string[] = [];
  let module: Expression | { readonly type: "Super" } = value;
  while (module.type === "MemberExpression" && module.property.type === "Identifier" && !module.computed) {
    path.unshift(module.property.name);
    module = module.object;
  }
  const isRequire = module.type === "CallExpression";
  let source: Node | undefined;
  if (module.type === "CallExpression") {
    const { callee } = module;
    if (callee.type === "Identifier" && callee.name === "require") [source] = module.arguments;
  } else if (module.type === "AwaitExpression" && module.argument.type === "ImportExpression") {
    ({ source } = module.argument);
  }
  const { value: specifier } = (source ?? {}) as { readonly value?: unknown };
  if (typeof specifier !== "string") return [];
  return boundPaths(pattern, path).map(([name, ...keys]) => ({ name, specifier, path: keys, isRequire }));
}

/** The names that a pattern binds, each with the properties that lead to its value. */
function boundPaths(pattern: Pattern, path: readonly string[]): [name: string, ...path: string[]][] {
  if (pattern.type === "Identifier") return [[pattern.name, ...path]];
  if (pattern.type === "AssignmentPattern") return boundPaths(pattern.left, path);
  if (pattern.type !== "ObjectPattern") return [];
  return pattern.properties.flatMap((property) =>
    property.type === "Property" &&
    !property.computed &&
    (property.key.type === "Identifier" || property.key.type === "Literal")
      ? boundPaths(property.value, [...path, keyText(property.key)])
      : [],
  );
}

function keyText(key: { readonly type: string; readonly name?: string; readonly value?: unknown }): string {
  return key.type === "Identifier" ? String(key.name) : String(key.value);
}
