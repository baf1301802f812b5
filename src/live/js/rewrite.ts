// Rewrites code so that every name can be declared again: top-level variables become properties of the global object,
// classes and imports become assignments to such properties, functions move to a script of their own. The rest becomes a
// function that stores its value, since errors then have the user's frames only. Lines do not change; columns are mapped
// back.

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

/**
 * What the code is: the body of a function, whose parameter is the scope; a script that evaluates to an async function
 * with that parameter; or a plain script, for code that means something else in a function.
 */
export type Form = "function" | "async" | "script";

export interface Rewritten {
  readonly form: Form;
  /** Empty if there is nothing to run but `hoisted`. */
  readonly code: string;
  /** A script with the function declarations, which runs before `code`. Undefined if `code` still contains them. */
  readonly hoisted?: string;
  /** The name of the parameter that holds the `EvaluationScope`. */
  readonly scope: string;
  /** Whether the user's code awaits at the top level. */
  readonly awaits: boolean;
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

/** With `inFrame`, declarations stay as they are, and the code becomes an async function. */
export function rewrite(parsed: Parsed, inFrame = false): Rewritten {
  return new Rewriter(parsed, inFrame).rewrite();
}

/** The global that `import.meta` becomes. It is as long, so that no column moves. */
export const IMPORT_META = "$importMeta";

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
  readonly #form: Form;
  readonly #traits: Traits;
  readonly #keepsDeclarations: boolean;
  /** The parameter that holds the `EvaluationScope`; a name that the source does not contain. */
  readonly #scope: string;
  readonly #declared: Declared[] = [];
  readonly #last: Program["body"][number] | undefined;

  constructor(parsed: Parsed, inFrame: boolean) {
    this.#parsed = parsed;
    const hasMeta = /\bimport\s*\.\s*meta\b/.test(parsed.source);
    const traits: Traits = { awaits: false, imports: false, isScript: false, metas: hasMeta ? [] : undefined };
    for (const node of parsed.program.body) survey(node, traits, true, true);
    this.#traits = traits;
    this.#source = withoutImportMeta(parsed.source, traits.metas ?? []);
    const isAsync = inFrame || traits.awaits || traits.imports;
    this.#form = isAsync ? "async" : traits.isScript ? "script" : "function";
    this.#keepsDeclarations = inFrame;
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
    // If the code is one expression, its value is stored by text on a line before it, so that no column moves.
    const store = `${this.#scope}.v=(`;
    const isExpression = text.startsWith(store);
    if (isExpression) shifts.splice(0, 1);
    return {
      form: this.#form,
      ...this.#wrap(isExpression ? text.slice(store.length) : text, isExpression ? store : ""),
      ...(hoisted.trim() === "" ? undefined : { hoisted }),
      scope: this.#scope,
      awaits: this.#traits.awaits,
      declared: this.#declared,
      hasValue: hasValue || isDefault,
      shifts,
    };
  }

  #wrap(text: string, store: string): Pick<Rewritten, "code" | "lineOffset"> {
    const [open, close] = this.#parsed.isObject ? [`(${store}`, ")"] : [store, ""];
    if (this.#form === "async") {
      // After the first `await`, no frame of the guest is on the stack. An error must not be caught here, or the
      // debugger would take it for an error that the user's code catches.
      const begin = `(async(${this.#scope})=>{await 0;try{${open}\n`;
      return { code: `${begin}${text}\n${close};${this.#scope}.k=1}finally{${this.#scope}.e()}})`, lineOffset: -1 };
    }
    if (this.#form === "function" && /^[\s;]*$/.test(text)) return { code: "", lineOffset: 0 };
    return open === "" ? { code: text, lineOffset: 0 } : { code: `${open}\n${text}\n${close}`, lineOffset: -1 };
  }

  /** Every function in `hoisted` has the position that it would have in `text`, so the shifts are valid for both. */
  #applyEdits(): { readonly text: string; readonly hoisted: string; readonly shifts: Shift[] } {
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
    const isKept = this.#keepsDeclarations && /^(?:Function|Class|Variable)Declaration$/.test(node.type);
    if (isKept) return children(node).forEach((child) => this.#visit(child, "single", false));
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
    const begin = this.#form !== "script" && node === this.#last ? `;${this.#scope}.v=(` : ";(";
    this.#replace(node.start, node.start + "export default".length, begin);
    this.#visit(declaration, "single", false);
    this.#insert(this.#beforeSemicolon(node), ")");
  }

  #import(node: Node): void {
    for (const name of importedNames(node)) this.#declare(name, "import", node);
    const [before, after] = this.#awaiting();
    this.#replace(node.start, node.end, importStatements(node, this.#source, this.#scope, [`${before}await `, after]));
  }

  /**
   * The text before and after an `await` at the top level, so that code that was abandoned does not go on after it. It
   * begins with a name, as `await` does, so that it is not joined with the line before.
   */
  #awaiting(): readonly [before: string, after: string] {
    const stop = `${this.#scope}.o&&await ${this.#scope}.n`;
    return [`${this.#scope}.u(${stop},`, `,${stop})`];
  }

  #function(node: FunctionDeclaration): void {
    this.#declare(node.id.name, "function", node);
    if (this.#form !== "script") this.#remove(node, true);
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
    if (this.#form === "script" && node.kind === "var") {
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
      if (declaration.kind === "var" && !this.#keepsDeclarations) return this.#variables(declaration, context);
    }
    const isValue = this.#form !== "script" && isLast && node.type === "ExpressionStatement";
    const [before, after] = node.type === "AwaitExpression" ? this.#awaiting() : [];
    if (isValue) this.#insert(node.start, `${this.#scope}.v=(`);
    if (before !== undefined) this.#insert(node.start, before);
    const { finalizer } = node as Node & { finalizer?: Node };
    for (const child of children(node)) {
      // What a `finally` block does has no influence on the value.
      this.#visit(child, contextOf(node, child), isLast && child !== finalizer);
    }
    if (after !== undefined) this.#insert(node.end, after);
    if (isValue) this.#insert(this.#beforeSemicolon(node), ")");
  }

  #beforeSemicolon({ end }: Node): number {
    return this.#source[end - 1] === ";" ? end - 1 : end;
  }

  #declare(name: string, type: Declared["type"], { loc }: Node): void {
    this.#declared.push({ name, type, line: loc?.start.line ?? 1 });
  }
}

/** The child nodes of a node. A plain loop, since this takes most of the time of rewriting. */
function children(node: Node): Node[] {
  const children: Node[] = [];
  for (const key in node) {
    const value: unknown = node[key as keyof Node];
    if (typeof value !== "object" || value === null) continue;
    if (!Array.isArray(value)) {
      if (isNode(value)) children.push(value);
      continue;
    }
    for (const item of value as unknown[])
      if (typeof item === "object" && item !== null && isNode(item)) children.push(item);
  }
  return children;
}

function isNode(value: object): value is Node {
  return "type" in value && "start" in value;
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

/** What decides about the form of the code. */
interface Traits {
  awaits: boolean;
  /** Whether it has static imports, which become `await import()`. */
  imports: boolean;
  /** Whether it must run as a script: it has a directive, a function in a block, or calls `eval`. */
  isScript: boolean;
  /** The places of `import.meta`; undefined if there is none, so that functions need not be searched. */
  readonly metas: Node[] | undefined;
}

/** `isOutside`: outside all functions. */
function survey(node: Node, traits: Traits, isTop: boolean, isOutside: boolean): void {
  const {
    await: isAwaiting,
    source,
    kind,
    callee,
    directive,
  } = node as Node & {
    readonly await?: boolean;
    readonly source?: unknown;
    readonly kind?: string;
    readonly callee?: Node & { readonly name?: string };
    readonly directive?: string;
  };
  const { type } = node;
  if (type === "MetaProperty" && (node as Node & { meta: { name: string } }).meta.name === "import") {
    traits.metas?.push(node);
  }
  if (isOutside) {
    if (type === "AwaitExpression" || (type === "ForOfStatement" && isAwaiting === true) || kind === "await using") {
      traits.awaits = true;
    } else if (/^(?:Import|ExportAll)Declaration$/.test(type) || (type === "ExportNamedDeclaration" && source)) {
      traits.imports = true;
    } else if (
      (directive !== undefined && isTop) ||
      (type === "FunctionDeclaration" && !isTop) ||
      (type === "CallExpression" && callee?.name === "eval")
    ) {
      traits.isScript = true;
    }
  }
  const isOuter = isOutside && !isFunction(node);
  if (!isOuter && traits.metas === undefined) return;
  const isExported = isTop && type.startsWith("Export");
  for (const child of children(node)) survey(child, traits, isExported, isOuter);
}

function withoutImportMeta(source: string, metas: readonly Node[]): string {
  let text = source;
  for (const { start, end } of metas) text = text.slice(0, start) + IMPORT_META.padEnd(end - start) + text.slice(end);
  return text;
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
function importStatements(
  node: Node,
  text: string,
  scope: string,
  [before, after]: readonly [before: string, after: string],
): string {
  const { source, attributes = [] } = node as ModuleRequest;
  const raw = (part: Node): string => text.slice(part.start, part.end);
  const pairs = attributes.map(({ key, value }) => `${raw(key)}:${raw(value)}`).join(",");
  const loaded = `${before}import(${raw(source)}${pairs === "" ? "" : `,{with:{${pairs}}}`})${after}`;
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
