// The global names of the user's session: those of Node, `require`, the built-in modules by name, `_` and `_error`, and
// the names that the user's code declares. Also lists variables and finds sources. The user's code may
// declare any name, so the built-in objects used here are saved before it runs. Code that breaks their methods gets an
// error.

import { builtinModules, createRequire } from "node:module";
import { isAbsolute, join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { locationOf } from "./inspector.ts";
import type { ImportedName } from "./parse.ts";
import { preview, typeName } from "./print.ts";
import { type Declared, IMPORT_META } from "./rewrite.ts";

const { defineProperty, entries, getOwnPropertyDescriptor, getOwnPropertyNames, getPrototypeOf, is } = Object;
const { defineProperty: redefineProperty, set: setProperty } = Reflect;
export const GLOBAL = globalThis as Record<string, unknown>;
// Unbound on purpose: it is called on functions of the user.
// oxlint-disable-next-line typescript/unbound-method
const functionToString = Function.prototype.toString;

/**
 * Modules that are not made global: deprecated ones, subpaths (fs/promises), names with another meaning, and those that
 * cannot be loaded where something else catches exceptions (domain, and repl, which needs it).
 */
const NOT_GLOBAL = /^_|\/|^(?:sys|wasi|punycode|process|console|crypto|module|test|domain|repl)$/;

/** Globals of Node that may be getters. */
const LAZY: ReadonlySet<string> = new Set([...getOwnPropertyNames(GLOBAL), ...builtinModules, "require"]);

/** Where the value of a name was imported from. */
export interface Import extends Omit<ImportedName, "name"> {
  /** The file to which a relative specifier refers. */
  readonly from: string;
  readonly value: unknown;
}

export class Globals {
  /** The names that were imported, until they are declared again. */
  readonly imports: Map<string, Import> = new Map();
  /** The values of `_` and `_error`. */
  readonly last: { value: unknown; error: unknown } = { value: undefined, error: undefined };
  /** The names that existed before the user's code. */
  readonly #initial: Set<string>;
  /** The names that the user has declared, and where, such as `<eval 3>:1`. */
  readonly #declared = new Map<string, string>();

  /** `wrapRequire` returns the session's own form of `require`. */
  constructor(wrapRequire: (require: NodeJS.Require) => NodeJS.Require) {
    // As in a module in the working directory.
    defineLazy("require", () => wrapRequire(createRequire(sessionFile())));
    defineAccessor("__dirname", () => process.cwd());
    defineAccessor("__filename", sessionFile);
    defineAccessor(IMPORT_META, importMeta);
    const require = createRequire(import.meta.url);
    for (const name of builtinModules) {
      if (!NOT_GLOBAL.test(name) && !(name in GLOBAL)) defineLazy(name, () => require(`node:${name}`) as unknown);
    }
    defineAccessor("_", () => this.last.value);
    defineAccessor("_error", () => this.last.error);
    this.#initial = new Set(getOwnPropertyNames(GLOBAL));
  }

  /** Defines names that the session has, or replaces their values. The user's code may declare them again. */
  provide(values: Readonly<Record<string, unknown>>): void {
    for (const [name, value] of entries(values)) {
      this.#initial.add(name);
      const property = { value, writable: true, enumerable: false, configurable: true };
      // A function that the user's code has declared can only be assigned to. Neither throws if the name is constant.
      if (!redefineProperty(GLOBAL, name, property)) setProperty(GLOBAL, name, value);
    }
  }

  /**
   * Creates the globals that the code will assign to, since code in strict mode cannot assign to an undeclared name.
   * Replaces accessors of these names by values. Returns the names that are new.
   */
  declare(declared: readonly Declared[], cell: string): string[] {
    const created: string[] = [];
    for (const { name, type, line } of declared) {
      this.#declared.set(name, `${cell}:${line}`);
      if (type === "function") continue;
      const known = getOwnPropertyDescriptor(GLOBAL, name);
      if (known?.writable === true || known?.configurable === false) continue;
      if (known === undefined) created.push(name);
      defineValue(name, known === undefined ? undefined : readGlobal(name));
    }
    return created;
  }

  /** Must be called after the code has run. */
  remember(declared: readonly Declared[], imported: readonly ImportedName[]): void {
    for (const { name } of declared) this.imports.delete(name);
    for (const { name, ...where } of imported) {
      const { value } = (getOwnPropertyDescriptor(GLOBAL, name) ?? {}) as { readonly value?: unknown };
      if (value !== undefined) this.imports.set(name, { ...where, from: sessionFile(), value });
    }
  }

  /** Gives a name the value that a new module has; false if the name no longer has the value that was imported. */
  reimport(name: string, value: unknown): boolean {
    const known = this.imports.get(name);
    if (known === undefined || !is(GLOBAL[name], known.value)) return false;
    this.imports.set(name, { ...known, value });
    GLOBAL[name] = value;
    return true;
  }

  /** Removes the names whose declarations did not run because the code failed, and returns them. */
  undeclare(created: readonly string[]): string[] {
    const removed = created.filter((name) => {
      const known = getOwnPropertyDescriptor(GLOBAL, name);
      return known?.configurable === true && known.value === undefined;
    });
    for (const name of removed) {
      delete GLOBAL[name];
      this.#declared.delete(name);
    }
    return removed;
  }

  /** Where the name was last declared; empty if the user's code did not declare it. */
  positionOf(name: string): string {
    return this.#declared.get(name) ?? "";
  }

  /** The names that the user has created, the oldest first. `globalNames` is what the global object has. */
  names(globalNames: readonly string[] = getOwnPropertyNames(GLOBAL)): string[] {
    return globalNames.filter((name) => !this.#initial.has(name) || this.#declared.has(name));
  }
}

/** The value of a global; undefined if its getter throws. */
function readGlobal(name: string): unknown {
  try {
    return GLOBAL[name];
  } catch {
    return undefined;
  }
}

function sessionFile(): string {
  return join(process.cwd(), "session.js");
}

/** The value of `import.meta`. */
function importMeta(): object {
  const filename = sessionFile();
  const { resolve } = createRequire(filename);
  return {
    dirname: process.cwd(),
    filename,
    url: pathToFileURL(filename).href,
    resolve(name: string): string {
      const resolved = resolve(name);
      return isAbsolute(resolved) ? pathToFileURL(resolved).href : resolved;
    },
  };
}

function defineValue(name: string, value: unknown): void {
  defineProperty(GLOBAL, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Assigning to the name replaces the accessor by the value. */
function defineAccessor(name: string, get: () => unknown): void {
  defineProperty(GLOBAL, name, {
    get,
    set: (value: unknown) => defineValue(name, value),
    enumerable: false,
    configurable: true,
  });
}

function defineLazy(name: string, make: () => unknown): void {
  defineAccessor(name, () => {
    const value = make();
    defineProperty(GLOBAL, name, { value, writable: true, enumerable: false, configurable: true });
    return value;
  });
}

const MAX_VARIABLES = 200;

export interface Variable {
  readonly name: string;
  readonly type: string;
  readonly preview: string;
  readonly place: string;
}

export interface VariableList {
  readonly variables: Variable[];
  readonly total: number;
}

export interface SourceInfo {
  readonly name: string;
  readonly type: string;
  readonly source: string;
  readonly place: string;
}

export function listVariables(globals: Globals, params: Readonly<Record<string, unknown>>): VariableList {
  const pattern = typeof params["pattern"] === "string" ? params["pattern"].toLowerCase() : "";
  const max = typeof params["max"] === "number" ? params["max"] : MAX_VARIABLES;
  const names = globals.names().filter((name) => name.toLowerCase().includes(pattern));
  return { variables: names.slice(0, max).map((name) => describeVariable(globals, name)), total: names.length };
}

function describeVariable(globals: Globals, name: string): Variable {
  const place = globals.positionOf(name);
  const known = getOwnPropertyDescriptor(GLOBAL, name);
  if (known === undefined || known.get !== undefined) return { name, type: "accessor", preview: "[Getter]", place };
  const value: unknown = known.value;
  try {
    const shortened = typeof value === "function" ? firstLine(sourceOf(value)) : preview(value);
    return { name, type: typeOf(value), preview: shortened, place };
  } catch {
    return { name, type: typeof value, preview: "[cannot be printed]", place };
  }
}

/** `function`, `class`, the type of a primitive, or the name of an object's constructor. */
function typeOf(value: unknown): string {
  if (typeof value === "function") return sourceOf(value).startsWith("class") ? "class" : "function";
  return typeof value === "object" ? typeName(value) : typeof value;
}

function sourceOf(value: object): string {
  return functionToString.call(value).replaceAll(IMPORT_META, "import.meta");
}

function firstLine(text: string): string {
  const [line = ""] = text.split("\n");
  return line.length > 80 ? `${line.slice(0, 77)}...` : line;
}

/** Finds the source of a function or class by its path. If there is none, returns the reason as a string. */
export function getSource(path: string): SourceInfo | string {
  const value = lookUpPath(path);
  if (typeof value !== "function") {
    if (value === undefined) return `There is no ${path} in this session; list-variables shows what there is`;
    return `${path} is not a function or class but ${typeName(value)}: ${preview(value)}`;
  }
  return { name: path, type: typeOf(value), source: sourceOf(value), place: locationOf(value) };
}

/** The value of a path such as `shop.items`. */
export function lookUpPath(path: string): unknown {
  const [first = "", ...rest] = path.split(".");
  let value = lookUp(GLOBAL, first);
  for (const name of rest) value = lookUp(value, name);
  return value;
}

/** Returns an own or inherited property. Of getters, calls only those of Node's globals and of built-in modules. */
function lookUp(holder: unknown, name: string): unknown {
  for (let at = holder; at !== null && at !== undefined; at = getPrototypeOf(at) as unknown) {
    const known = getOwnPropertyDescriptor(at, name);
    if (known === undefined) continue;
    if (known.get === undefined) return known.value;
    return holder === GLOBAL && LAZY.has(name) ? GLOBAL[name] : undefined;
  }
  return undefined;
}
