// What is evaluated in the place of what was written, so that every declaration may be made again: a variable at the
// top level becomes a property of the global object, a class and an import are assigned to one, and functions stay what
// they are. Where something is awaited at the top level, the text becomes an async function whose value is handed to the
// one who runs it. Lines stay where they are; columns are found again through the anchors.

import type {
  ClassDeclaration,
  ExportDefaultDeclaration,
  FunctionDeclaration,
  Node,
  Program,
  VariableDeclaration,
  ImportDeclaration,
} from "acorn";
import { blank, Edits, madeColumn, place, type Anchors } from "./source-positions.ts";
import { children, isFunction, type Parsed } from "./parse.ts";

export interface Declared {
  readonly name: string;
  readonly type: "variable" | "function" | "class" | "import";
  readonly line: number;
}

export interface Rewritten {
  readonly code: string;
  /** Its functions, each where it was, to be run before; undefined where there are none or they have stayed. */
  readonly hoisted?: string;
  /** The value of the code is a function, to be called with `a` (awaits), `i` (checks imports) and `v` (the value). */
  readonly isAsync: boolean;
  /** That of the first line. */
  readonly lineOffset: number;
  readonly declared: readonly Declared[];
  /** The last statement has one, and is no declaration. */
  readonly hasValue: boolean;
  readonly anchors: Anchors;
}

/** Where a declaration stands: among statements, alone as the body of another, or in the head of a loop. */
type Where = "list" | "single" | "init" | "left";

export function rewrite(parsed: Parsed): Rewritten {
  return new Rewriting(parsed).made();
}

class Rewriting {
  readonly #parsed: Parsed;
  readonly #source: string;
  readonly #edits: Edits;
  readonly #isAsync: boolean;
  /** A name that the text does not have. */
  readonly #box: string;
  readonly #declared: Declared[] = [];
  readonly #hoisted: Node[] = [];
  readonly #last: Program["body"][number] | undefined;

  constructor(parsed: Parsed) {
    this.#parsed = parsed;
    this.#source = parsed.source;
    this.#edits = new Edits(parsed.source);
    this.#isAsync = parsed.program.body.some(awaits);
    let box = "$c";
    while (parsed.source.includes(box)) box += "$";
    this.#box = box;
    this.#last = parsed.program.body.findLast(({ type }) => type !== "EmptyStatement");
  }

  made(): Rewritten {
    const hasValue = this.#last !== undefined && !this.#last.type.endsWith("Declaration");
    const isDefault = this.#last?.type === "ExportDefaultDeclaration" && !isNamed(this.#last.declaration);
    for (const statement of this.#parsed.program.body) this.#top(statement);
    const { text, anchors } = this.#edits.apply();
    const about = { isAsync: this.#isAsync, declared: this.#declared, hasValue: hasValue || isDefault, anchors };
    const [open, close] = this.#parsed.isObject ? ["(", ")"] : ["", ""];
    if (!this.#isAsync) {
      if (!this.#parsed.isObject) return { ...about, code: text, lineOffset: 0 };
      return { ...about, code: `${open}\n${text}\n${close}`, lineOffset: -1 };
    }
    const code = `(async(${this.#box})=>{${open}\n${text}\n${close}})`;
    const hoisted = this.#hoisted.length > 0 ? { hoisted: this.#onlyHoisted(anchors) } : undefined;
    return { ...about, ...hoisted, code, lineOffset: -1 };
  }

  /** In the columns of the rest, so that one way leads back from both. */
  #onlyHoisted(anchors: Anchors): string {
    let text = "";
    let from = 0;
    for (const { start, end } of this.#hoisted) {
      text += blank(this.#source.slice(from, start));
      const { line, column } = place(this.#source, start);
      const missing = madeColumn(anchors, line, column) - 1 - (text.length - text.lastIndexOf("\n") - 1);
      text += " ".repeat(Math.max(0, missing)) + this.#source.slice(start, end);
      from = end;
    }
    return text;
  }

  #top(node: Node): void {
    switch (node.type) {
      case "ImportDeclaration":
      case "ExportAllDeclaration":
        return this.#import(node);
      case "ExportNamedDeclaration": {
        const { declaration, source } = node as Node & { declaration?: Node | null; source?: Node | null };
        if (source) return this.#import(node);
        if (!declaration) return this.#takeOut(node);
        this.#edits.blank(node.start, declaration.start);
        return this.#top(declaration);
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
      return this.#top(declaration);
    }
    const begin = this.#isAsync && node === this.#last ? `;${this.#box}.v=(` : ";(";
    this.#edits.replace(node.start, node.start + "export default".length, begin);
    this.#visit(declaration, "single", false);
    this.#edits.insert(this.#beforeSemicolon(node), ")");
  }

  #import(node: Node): void {
    for (const name of importNames(node)) this.#declare(name, "import", node);
    this.#edits.replace(node.start, node.end, importText(node, this.#source, this.#box));
  }

  #function(node: FunctionDeclaration): void {
    this.#declare(node.id.name, "function", node);
    if (!this.#isAsync) return;
    this.#hoisted.push(node);
    this.#takeOut(node);
  }

  /** What stood before a statement that is gone must not run on into what stands behind it. */
  #takeOut({ start, end }: Node): void {
    this.#edits.replace(start, end, ";");
  }

  #class(node: ClassDeclaration): void {
    this.#declare(node.id.name, "class", node);
    this.#edits.insert(node.start, `;${node.id.name}=`);
    for (const child of children(node)) this.#visit(child, "single", false);
    this.#edits.insert(node.end, ";");
  }

  #variables(node: VariableDeclaration, where: Where): void {
    if (!this.#isAsync && node.kind === "var") {
      // Outside of a function it is a property of the global object already, and may be declared again.
      for (const { id } of node.declarations) for (const name of bound(id)) this.#declare(name, "variable", id);
      return;
    }
    const isPattern = node.declarations.some(({ id }) => id.type !== "Identifier");
    const isStatement = where === "list" || where === "single";
    const isWrapped = isPattern && where !== "left";
    const begin = (where === "list" ? ";" : "") + (isWrapped ? "(" : "");
    this.#edits.replace(node.start, node.start + node.kind.length, begin);
    for (const { id, init, end } of node.declarations) {
      for (const name of bound(id)) this.#declare(name, "variable", id);
      this.#visit(id, "single", false);
      if (init) this.#visit(init, "single", false);
      else if (node.kind !== "var" && isStatement) this.#edits.insert(end, "=void 0");
    }
    if (isWrapped) this.#edits.insert(node.declarations.at(-1)?.end ?? node.end, ")");
    if (isStatement && this.#source[node.end - 1] !== ";") this.#edits.insert(node.end, ";");
  }

  #visit(node: Node, where: Where, isLast: boolean): void {
    if (isFunction(node)) return;
    if (node.type === "VariableDeclaration") {
      const declaration = node as VariableDeclaration;
      if (declaration.kind === "var") return this.#variables(declaration, where);
    }
    const isValue = this.#isAsync && isLast && node.type === "ExpressionStatement";
    if (isValue) this.#edits.insert(node.start, `${this.#box}.v=(`);
    if (node.type === "AwaitExpression") this.#edits.insert(node.start + "await".length, ` ${this.#box}.a(`);
    for (const child of children(node)) this.#visit(child, whereIs(node, child), isLast);
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

function whereIs(node: Node, child: Node): Where {
  if (/^(?:Program|BlockStatement|SwitchCase)$/.test(node.type)) return "list";
  if (node.type === "ForStatement" && (node as Node & { init?: unknown }).init === child) return "init";
  if (/^For(?:In|Of)Statement$/.test(node.type) && (node as Node & { left?: unknown }).left === child) return "left";
  return "single";
}

/** Whether something is awaited outside of every function. */
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

/** The names that a pattern gives values to. */
function bound(node: Node): string[] {
  switch (node.type) {
    case "Identifier":
      return [(node as Node & { name: string }).name];
    case "AssignmentPattern":
      return bound((node as Node & { left: Node }).left);
    case "Property":
      return bound((node as Node & { value: Node }).value);
    default:
      return children(node).flatMap(bound);
  }
}

// Static imports, and exports from other modules, said with `import()`: the same names get the same values, but what
// the module changes later is not seen.

interface From extends Node {
  readonly source: Node;
  readonly attributes?: readonly (Node & { readonly key: Node; readonly value: Node })[];
}

/** The names that it declares. */
export function importNames(node: Node): string[] {
  return node.type === "ImportDeclaration" ? (node as ImportDeclaration).specifiers.map(({ local }) => local.name) : [];
}

/** The statements in its place; `box` is what has `a` (awaits) and `i` (checks that the names are there). */
export function importText(node: Node, text: string, box: string): string {
  const { source, attributes = [] } = node as From;
  const raw = (part: Node): string => text.slice(part.start, part.end);
  const pairs = attributes.map(({ key, value }) => `${raw(key)}:${raw(value)}`).join(",");
  const loaded = `await ${box}.a(import(${raw(source)}${pairs === "" ? "" : `,{with:{${pairs}}}`}))`;
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
  return `;({${pattern}}=${box}.i(${loaded},${raw(source)},${keys}));`;
}
