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
import type { Parsed } from "./parse.ts";

export interface Declared {
  readonly name: string;
  readonly type: "variable" | "function" | "class" | "import";
  readonly line: number;
}

export interface Rewritten {
  readonly code: string;
  /** A script with the function declarations, which runs before `code`. Undefined if `code` still contains them. */
  readonly hoisted?: string;
  /** Whether the code evaluates to a function, which is then called with an `EvaluationScope`. */
  readonly isAsync: boolean;
  /** The offset of line numbers: -1 if a line was added at the start. */
  readonly lineOffset: number;
  readonly declared: readonly Declared[];
  /** Whether the last statement has a value: a declaration has none. */
  readonly hasValue: boolean;
  readonly shifts: readonly Shift[];
}

/** Generated text that moves the rest of its line: it stands before `column` as the user wrote it. */
export interface Shift {
  readonly line: number;
  readonly column: number;
  readonly added: number;
}

/** Maps a column of the rewritten code to the column that the user wrote. */
export function writtenColumn(shifts: readonly Shift[], line: number, column: number): number {
  let written = column;
  for (const shift of shifts) {
    if (shift.line === line && shift.column < written) written = Math.max(shift.column, written - shift.added);
  }
  return written;
}

/**
 * Where a declaration is: in a list of statements, alone as the body of another statement, or in the head of a loop, as
 * its `init` (`for (;;)`) or `left` part (`for in`, `for of`).
 */
type Context = "list" | "single" | "init" | "left";

export function rewrite(parsed: Parsed): Rewritten {
  return new Rewriter(parsed).rewrite();
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** Whether the old text moves into the script `hoisted`. */
  readonly isHoisted: boolean;
}

/** Replaces everything except line breaks with spaces. */
function blank(text: string): string {
  return text.replaceAll(/[^\n\r\u2028\u2029]/g, " ");
}

class Rewriter {
  readonly #parsed: Parsed;
  readonly #source: string;
  readonly #edits: Edit[] = [];
  readonly #isAsync: boolean;
  /** The parameter that holds the `EvaluationScope`; a name that the source does not contain. */
  readonly #scope: string;
  readonly #declared: Declared[] = [];
  readonly #last: Program["body"][number] | undefined;

  constructor(parsed: Parsed) {
    this.#parsed = parsed;
    this.#source = parsed.source;
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
    const { text, hoisted, shifts } = this.#applyEdits();
    const common = { isAsync: this.#isAsync, declared: this.#declared, hasValue: hasValue || isDefault, shifts };
    const [open, close] = this.#parsed.isObject ? ["(", ")"] : ["", ""];
    if (this.#isAsync) {
      const code = `(async(${this.#scope})=>{${open}\n${text}\n${close}})`;
      return { ...common, ...(hoisted.trim() === "" ? undefined : { hoisted }), code, lineOffset: -1 };
    }
    if (!this.#parsed.isObject) return { ...common, code: text, lineOffset: 0 };
    return { ...common, code: `${open}\n${text}\n${close}`, lineOffset: -1 };
  }

  /** Every function in `hoisted` has the position that it would have in `text`, so the shifts are valid for both. */
  #applyEdits(): { readonly text: string; readonly hoisted: string; readonly shifts: readonly Shift[] } {
    // Edits at one position stay in the order in which they were made.
    const edits = this.#edits.toSorted((one, other) => one.start - other.start || one.end - other.end);
    const lineStarts = [0, ...Array.from(this.#source.matchAll(/\n/g), ({ index }) => index + 1)];
    const shifts: Shift[] = [];
    let text = "";
    let hoisted = "";
    let from = 0;
    let line = 1;
    for (const edit of edits) {
      const kept = this.#source.slice(from, edit.start);
      const old = this.#source.slice(edit.start, edit.end);
      from = edit.end;
      text += kept + edit.text;
      hoisted += blank(kept) + (edit.isHoisted ? old : blank(edit.text));
      while ((lineStarts[line] ?? Infinity) <= edit.start) line += 1;
      const added = edit.text.length - old.length;
      if (added > 0) shifts.push({ line, column: edit.start - (lineStarts[line - 1] ?? 0) + 1, added });
    }
    return { text: text + this.#source.slice(from), hoisted, shifts };
  }

  #insert(at: number, text: string): void {
    this.#edits.push({ start: at, end: at, text, isHoisted: false });
  }

  /** Always keeps the lines; also keeps the columns if the new text is not longer than the old. */
  #replace(start: number, end: number, text: string, isHoisted = false): void {
    const [first = "", ...more] = this.#source.slice(start, end).split("\n");
    this.#edits.push({ start, end, text: [text.padEnd(first.length), ...more.map(blank)].join("\n"), isHoisted });
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
        this.#replace(node.start, declaration.start, "");
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
      this.#replace(node.start, declaration.start, "");
      return this.#topLevel(declaration);
    }
    const begin = this.#isAsync && node === this.#last ? `;${this.#scope}.v=(` : ";(";
    this.#replace(node.start, node.start + "export default".length, begin);
    this.#visit(declaration, "single", false);
    this.#insert(this.#beforeSemicolon(node), ")");
  }

  #import(node: Node): void {
    for (const name of importedNames(node)) this.#declare(name, "import", node);
    this.#replace(node.start, node.end, importStatements(node, this.#source, this.#scope));
  }

  #function(node: FunctionDeclaration): void {
    this.#declare(node.id.name, "function", node);
    if (!this.#isAsync) return;
    this.#remove(node, true);
  }

  /** Replaces the node with a semicolon, so that the statement before it is not joined with the one after it. */
  #remove({ start, end }: Node, isHoisted = false): void {
    this.#replace(start, end, ";", isHoisted);
  }

  #class(node: ClassDeclaration): void {
    this.#declare(node.id.name, "class", node);
    this.#insert(node.start, `;${node.id.name}=`);
    for (const child of children(node)) this.#visit(child, "single", false);
    this.#insert(node.end, ";");
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
    this.#replace(node.start, node.start + node.kind.length, begin);
    for (const { id, init, end } of node.declarations) {
      for (const name of boundNames(id)) this.#declare(name, "variable", id);
      this.#visit(id, "single", false);
      if (init) this.#visit(init, "single", false);
      else if (node.kind !== "var" && isStatement) this.#insert(end, "=void 0");
    }
    if (isWrapped) this.#insert(node.declarations.at(-1)?.end ?? node.end, ")");
    if (isStatement && this.#source[node.end - 1] !== ";") this.#insert(node.end, ";");
  }

  #visit(node: Node, context: Context, isLast: boolean): void {
    if (isFunction(node)) return;
    if (node.type === "VariableDeclaration") {
      const declaration = node as VariableDeclaration;
      if (declaration.kind === "var") return this.#variables(declaration, context);
    }
    const isValue = this.#isAsync && isLast && node.type === "ExpressionStatement";
    if (isValue) this.#insert(node.start, `${this.#scope}.v=(`);
    if (node.type === "AwaitExpression") this.#insert(node.start + "await".length, ` ${this.#scope}.a(`);
    for (const child of children(node)) this.#visit(child, contextOf(node, child), isLast);
    if (node.type === "AwaitExpression") this.#insert(node.end, ")");
    if (isValue) this.#insert(this.#beforeSemicolon(node), ")");
  }

  #beforeSemicolon({ end }: Node): number {
    return this.#source[end - 1] === ";" ? end - 1 : end;
  }

  #declare(name: string, type: Declared["type"], { loc }: Node): void {
    this.#declared.push({ name, type, line: loc?.start.line ?? 1 });
  }
}

/** The child nodes of a node. */
function children(node: Node): Node[] {
  return Object.values(node)
    .flat()
    .filter((one: unknown): one is Node => typeof one === "object" && one !== null && "type" in one && "start" in one);
}

/** Whether the node begins a new scope for variables and for `await`. */
function isFunction(node: Node): boolean {
  return /^(?:ArrowFunctionExpression|FunctionExpression|FunctionDeclaration|PropertyDefinition|StaticBlock)$/.test(
    node.type,
  );
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
