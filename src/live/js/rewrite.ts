// Rewrites code so that every name can be declared again: top-level variables become properties of the global object,
// classes and imports become assignments to such properties, functions stay as they are. With a top-level `await`, the
// code becomes an async function that passes its value to the evaluator. Lines do not change; columns are mapped back.

import type {
  ClassDeclaration,
  ExportDefaultDeclaration,
  FunctionDeclaration,
  ImportDeclaration,
  Node,
  Program,
  VariableDeclaration,
} from "acorn";
import { children, isFunction, type Parsed } from "./parse.ts";
import { blank, editedColumn, positionAt, SourceEdits, type ColumnMap } from "./source-positions.ts";

export interface Declared {
  readonly name: string;
  readonly type: "variable" | "function" | "class" | "import";
  readonly line: number;
}

export interface Rewritten {
  readonly code: string;
  /**
   * A script with the function declarations, each at its original position. It runs before `code`. Undefined if `code`
   * still contains the declarations, or if there are none.
   */
  readonly hoisted?: string;
  /** Whether the code evaluates to a function, which is then called with an `EvaluationScope`. */
  readonly isAsync: boolean;
  /** The offset of line numbers: -1 if a line was added at the start. */
  readonly lineOffset: number;
  readonly declared: readonly Declared[];
  /** Whether the last statement has a value: a declaration has none. */
  readonly hasValue: boolean;
  readonly columns: ColumnMap;
}

/**
 * Where a declaration is: in a list of statements, alone as the body of another statement, or in the head of a loop, as
 * its `init` (`for (;;)`) or `left` part (`for in`, `for of`).
 */
type Context = "list" | "single" | "init" | "left";

export function rewrite(parsed: Parsed): Rewritten {
  return new Rewriter(parsed).rewrite();
}

class Rewriter {
  readonly #parsed: Parsed;
  readonly #source: string;
  readonly #edits: SourceEdits;
  readonly #isAsync: boolean;
  /** The parameter that holds the `EvaluationScope`; a name that the source does not contain. */
  readonly #scope: string;
  readonly #declared: Declared[] = [];
  readonly #hoisted: Node[] = [];
  readonly #last: Program["body"][number] | undefined;

  constructor(parsed: Parsed) {
    this.#parsed = parsed;
    this.#source = parsed.source;
    this.#edits = new SourceEdits(parsed.source);
    this.#isAsync = parsed.program.body.some(awaits);
    let scope = "$c";
    while (parsed.source.includes(scope)) scope += "$";
    this.#scope = scope;
    this.#last = parsed.program.body.findLast(({ type }) => type !== "EmptyStatement");
  }

  rewrite(): Rewritten {
    const hasValue = this.#last !== undefined && !this.#last.type.endsWith("Declaration");
    const isDefault = this.#last?.type === "ExportDefaultDeclaration" && !isNamed(this.#last.declaration);
    for (const statement of this.#parsed.program.body) this.#topLevel(statement);
    const { text, columns } = this.#edits.apply();
    const common = { isAsync: this.#isAsync, declared: this.#declared, hasValue: hasValue || isDefault, columns };
    const [open, close] = this.#parsed.isObject ? ["(", ")"] : ["", ""];
    if (!this.#isAsync) {
      if (!this.#parsed.isObject) return { ...common, code: text, lineOffset: 0 };
      return { ...common, code: `${open}\n${text}\n${close}`, lineOffset: -1 };
    }
    const code = `(async(${this.#scope})=>{${open}\n${text}\n${close}})`;
    const hoisted = this.#hoisted.length > 0 ? { hoisted: this.#hoistedCode(columns) } : undefined;
    return { ...common, ...hoisted, code, lineOffset: -1 };
  }

  /** Places each function at its column in the edited code, so that the edited code's column map is valid here too. */
  #hoistedCode(columns: ColumnMap): string {
    let text = "";
    let from = 0;
    for (const { start, end } of this.#hoisted) {
      text += blank(this.#source.slice(from, start));
      const { line, column } = positionAt(this.#source, start);
      const missing = editedColumn(columns, line, column) - 1 - (text.length - text.lastIndexOf("\n") - 1);
      text += " ".repeat(Math.max(0, missing)) + this.#source.slice(start, end);
      from = end;
    }
    return text;
  }

  #topLevel(node: Node): void {
    switch (node.type) {
      case "ImportDeclaration":
      case "ExportAllDeclaration":
        return this.#import(node);
      case "ExportNamedDeclaration": {
        const { declaration, source } = node as Node & { declaration?: Node | null; source?: Node | null };
        if (source) return this.#import(node);
        if (!declaration) return this.#remove(node);
        this.#edits.blank(node.start, declaration.start);
        return this.#topLevel(declaration);
      }
      case "ExportDefaultDeclaration":
        return this.#default(node as ExportDefaultDeclaration);
      case "FunctionDeclaration":
        return this.#function(node as FunctionDeclaration);
      case "ClassDeclaration":
        return this.#class(node as ClassDeclaration);
      case "VariableDeclaration":
        return this.#variables(node as VariableDeclaration, "list");
      default:
        return this.#visit(node, "list", node === this.#last);
    }
  }

  #default(node: ExportDefaultDeclaration): void {
    const { declaration } = node;
    if (isNamed(declaration)) {
      this.#edits.blank(node.start, declaration.start);
      return this.#topLevel(declaration);
    }
    const begin = this.#isAsync && node === this.#last ? `;${this.#scope}.v=(` : ";(";
    this.#edits.replace(node.start, node.start + "export default".length, begin);
    this.#visit(declaration, "single", false);
    this.#edits.insert(this.#beforeSemicolon(node), ")");
  }

  #import(node: Node): void {
    for (const name of importedNames(node)) this.#declare(name, "import", node);
    this.#edits.replace(node.start, node.end, importStatements(node, this.#source, this.#scope));
  }

  #function(node: FunctionDeclaration): void {
    this.#declare(node.id.name, "function", node);
    if (!this.#isAsync) return;
    this.#hoisted.push(node);
    this.#remove(node);
  }

  /** Replaces the node with a semicolon, so that the statement before it is not joined with the one after it. */
  #remove({ start, end }: Node): void {
    this.#edits.replace(start, end, ";");
  }

  #class(node: ClassDeclaration): void {
    this.#declare(node.id.name, "class", node);
    this.#edits.insert(node.start, `;${node.id.name}=`);
    for (const child of children(node)) this.#visit(child, "single", false);
    this.#edits.insert(node.end, ";");
  }

  #variables(node: VariableDeclaration, context: Context): void {
    if (!this.#isAsync && node.kind === "var") {
      // Outside a function, `var` creates a property of the global object and may be repeated.
      for (const { id } of node.declarations) for (const name of boundNames(id)) this.#declare(name, "variable", id);
      return;
    }
    const isPattern = node.declarations.some(({ id }) => id.type !== "Identifier");
    const isStatement = context === "list" || context === "single";
    const isWrapped = isPattern && context !== "left";
    const begin = (context === "list" ? ";" : "") + (isWrapped ? "(" : "");
    this.#edits.replace(node.start, node.start + node.kind.length, begin);
    for (const { id, init, end } of node.declarations) {
      for (const name of boundNames(id)) this.#declare(name, "variable", id);
      this.#visit(id, "single", false);
      if (init) this.#visit(init, "single", false);
      else if (node.kind !== "var" && isStatement) this.#edits.insert(end, "=void 0");
    }
    if (isWrapped) this.#edits.insert(node.declarations.at(-1)?.end ?? node.end, ")");
    if (isStatement && this.#source[node.end - 1] !== ";") this.#edits.insert(node.end, ";");
  }

  #visit(node: Node, context: Context, isLast: boolean): void {
    if (isFunction(node)) return;
    if (node.type === "VariableDeclaration") {
      const declaration = node as VariableDeclaration;
      if (declaration.kind === "var") return this.#variables(declaration, context);
    }
    const isValue = this.#isAsync && isLast && node.type === "ExpressionStatement";
    if (isValue) this.#edits.insert(node.start, `${this.#scope}.v=(`);
    if (node.type === "AwaitExpression") this.#edits.insert(node.start + "await".length, ` ${this.#scope}.a(`);
    for (const child of children(node)) this.#visit(child, contextOf(node, child), isLast);
    if (node.type === "AwaitExpression") this.#edits.insert(node.end, ")");
    if (isValue) this.#edits.insert(this.#beforeSemicolon(node), ")");
  }

  #beforeSemicolon({ end }: Node): number {
    return this.#source[end - 1] === ";" ? end - 1 : end;
  }

  #declare(name: string, type: Declared["type"], { loc }: Node): void {
    this.#declared.push({ name, type, line: loc?.start.line ?? 1 });
  }
}

function contextOf(node: Node, child: Node): Context {
  if (/^(?:Program|BlockStatement|SwitchCase)$/.test(node.type)) return "list";
  if (node.type === "ForStatement" && (node as Node & { init?: unknown }).init === child) return "init";
  if (/^For(?:In|Of)Statement$/.test(node.type) && (node as Node & { left?: unknown }).left === child) return "left";
  return "single";
}

/** Whether the node awaits outside any function. A static import counts, since it becomes `await import()`. */
function awaits(node: Node): boolean {
  if (/^(?:AwaitExpression|ImportDeclaration|ExportAllDeclaration)$/.test(node.type)) return true;
  if (node.type === "ForOfStatement" && (node as Node & { await?: boolean }).await === true) return true;
  if (node.type === "ExportNamedDeclaration" && (node as Node & { source?: unknown }).source) return true;
  if (node.type === "VariableDeclaration" && (node as VariableDeclaration).kind === "await using") return true;
  return !isFunction(node) && children(node).some(awaits);
}

function isNamed(node: Node): boolean {
  return /^(?:Function|Class)Declaration$/.test(node.type) && Boolean((node as Node & { id?: unknown }).id);
}

/** The names that a pattern binds. */
function boundNames(node: Node): string[] {
  switch (node.type) {
    case "Identifier":
      return [(node as Node & { name: string }).name];
    case "AssignmentPattern":
      return boundNames((node as Node & { left: Node }).left);
    case "Property":
      return boundNames((node as Node & { value: Node }).value);
    default:
      return children(node).flatMap(boundNames);
  }
}

interface ModuleRequest extends Node {
  readonly source: Node;
  readonly attributes?: readonly (Node & { readonly key: Node; readonly value: Node })[];
}

function importedNames(node: Node): string[] {
  return node.type === "ImportDeclaration" ? (node as ImportDeclaration).specifiers.map(({ local }) => local.name) : [];
}

/**
 * Turns a static import into `import()` and assignments. Unlike real imports, the assigned variables keep their values
 * when the module changes its exports later.
 */
function importStatements(node: Node, text: string, scope: string): string {
  const { source, attributes = [] } = node as ModuleRequest;
  const raw = (part: Node): string => text.slice(part.start, part.end);
  const pairs = attributes.map(({ key, value }) => `${raw(key)}:${raw(value)}`).join(",");
  const loaded = `await ${scope}.a(import(${raw(source)}${pairs === "" ? "" : `,{with:{${pairs}}}`}))`;
  const specifiers = node.type === "ImportDeclaration" ? (node as ImportDeclaration).specifiers : [];
  if (specifiers.length === 0) return `;${loaded};`;
  const all = specifiers.find(({ type }) => type === "ImportNamespaceSpecifier");
  const named: [key: string, local: string][] = [];
  for (const specifier of specifiers) {
    if (specifier.type === "ImportDefaultSpecifier") named.push(["default", specifier.local.name]);
    if (specifier.type !== "ImportSpecifier") continue;
    const { imported } = specifier;
    const key = imported.type === "Identifier" ? imported.name : String(imported.value);
    named.push([key, specifier.local.name]);
  }
  if (all !== undefined) {
    const others = named.map(([key, local]) => `${local}=${all.local.name}[${JSON.stringify(key)}];`).join("");
    return `;${all.local.name}=${loaded};${others}`;
  }
  const keys = JSON.stringify(named.map(([key]) => key));
  const pattern = named.map(([key, local]) => `${JSON.stringify(key)}:${local}`).join(",");
  return `;({${pattern}}=${scope}.i(${loaded},${raw(source)},${keys}));`;
}
