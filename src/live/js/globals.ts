// The global names of the user's session: those of Node, `require`, the built-in modules by name, `_` and `_error`, and
// the names that the user's code declares. Also lists variables and finds sources. It runs in the main thread, beside
// the user's code, so it saves the built-in functions that it needs before that code can replace them.

import { builtinModules, createRequire } from "node:module";
import { join } from "node:path";
import { apply, GLOBAL, includes, indexOf, slice, split, startsWith, toLowerCase } from "./primordials.ts";
import { preview, typeName } from "./print.ts";
import type { Declared } from "./rewrite.ts";

const { create, defineProperty, getOwnPropertyDescriptor, getOwnPropertyNames, getPrototypeOf } = Object;
const { deleteProperty } = Reflect;
const cwd = process.cwd.bind(process);
// Unbound on purpose: `apply` calls it on functions of the user.
// oxlint-disable-next-line typescript/unbound-method
const functionToString = Function.prototype.toString;

/** Modules that are not made global: deprecated ones, subpaths (fs/promises), and names with another meaning. */
const NOT_GLOBAL = /^_|\/|^(?:sys|wasi|punycode|process|console|crypto|module|test)$/;

export class Globals {
  /** The values of `_` and `_error`. */
  readonly last: { value: unknown; error: unknown } = { value: undefined, error: undefined };
  /** The names that existed before the user's code. */
  readonly #initial: Readonly<Record<string, true>>;
  /** The names that the user has declared, and where. */
  readonly #declared = dictionary<{ readonly cell: string; readonly line: number }>();

  constructor() {
    defineLazy("require", () => createRequire(join(cwd(), "session.js")));
    const require = createRequire(import.meta.url);
    for (const name of builtinModules) {
      if (!NOT_GLOBAL.test(name) && !(name in GLOBAL)) defineLazy(name, () => require(`node:${name}`) as unknown);
    }
    defineAccessor("_", () => this.last.value);
    defineAccessor("_error", () => this.last.error);
    const initial = dictionary<true>();
    for (const name of getOwnPropertyNames(GLOBAL)) initial[name] = true;
    this.#initial = initial;
  }

  /**
   * Creates the globals that the code will assign to, since code in strict mode cannot assign to an undeclared name.
   * Replaces accessors of these names by values. Returns the names that are new.
   */
  declare(declared: readonly Declared[], cell: string): string[] {
    const created: string[] = [];
    for (let at = 0; at < declared.length; at += 1) {
      const { name, type, line } = declared[at] as Declared;
      this.#declared[name] = { cell, line };
      if (type === "function") continue;
      const known = getOwnPropertyDescriptor(GLOBAL, name);
      if (known?.writable === true || known?.configurable === false) continue;
      if (known === undefined) created[created.length] = name;
      defineValue(name, known === undefined ? undefined : (GLOBAL as Record<string, unknown>)[name]);
    }
    return created;
  }

  /** Removes the names whose declarations did not run because the code failed, and returns them. */
  undeclare(created: readonly string[]): string[] {
    const removed: string[] = [];
    for (let at = 0; at < created.length; at += 1) {
      const name = created[at] as string;
      const known = getOwnPropertyDescriptor(GLOBAL, name);
      if (known?.configurable === true && known.value === undefined && deleteProperty(GLOBAL, name)) {
        delete this.#declared[name];
        removed[removed.length] = name;
      }
    }
    return removed;
  }

  /** Where the name was last declared, such as `<eval 3>:1`; empty if the user's code did not declare it. */
  positionOf(name: string): string {
    const at = this.#declared[name];
    return at === undefined ? "" : `${at.cell}:${at.line}`;
  }

  /** The names that the user has created, the oldest first. */
  names(): string[] {
    const all = getOwnPropertyNames(GLOBAL);
    const found: string[] = [];
    for (let at = 0; at < all.length; at += 1) {
      const name = all[at] as string;
      if (!(name in this.#initial) || name in this.#declared) found[found.length] = name;
    }
    return found;
  }
}

/** An object without a prototype. It is not a Map, since the user's code could replace the methods of Map. */
function dictionary<T>(): Record<string, T> {
  return create(null) as Record<string, T>;
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
  const pattern = typeof params["pattern"] === "string" ? toLowerCase(params["pattern"]) : "";
  const max = typeof params["max"] === "number" ? params["max"] : MAX_VARIABLES;
  const names = globals.names();
  const found: Variable[] = [];
  let total = 0;
  for (let at = 0; at < names.length; at += 1) {
    const name = names[at] as string;
    if (!includes(toLowerCase(name), pattern)) continue;
    total += 1;
    if (total <= max) found[found.length] = describeVariable(globals, name);
  }
  return { variables: found, total };
}

function describeVariable(globals: Globals, name: string): Variable {
  const place = globals.positionOf(name);
  const known = getOwnPropertyDescriptor(GLOBAL, name);
  if (known === undefined || known.get !== undefined) return { name, type: "accessor", preview: "[Getter]", place };
  const value: unknown = known.value;
  try {
    const shown = typeof value === "function" ? firstLine(sourceOf(value)) : preview(value);
    return { name, type: typeOf(value), preview: shown, place };
  } catch {
    return { name, type: typeof value, preview: "[cannot be printed]", place };
  }
}

/** `function`, `class`, the type of a primitive, or the name of an object's constructor. */
function typeOf(value: unknown): string {
  if (typeof value === "function") return startsWith(sourceOf(value), "class") ? "class" : "function";
  return typeof value === "object" ? typeName(value) : typeof value;
}

function sourceOf(value: object): string {
  return apply(functionToString, value, []);
}

function firstLine(text: string): string {
  const end = indexOf(text, "\n");
  const line = end === -1 ? text : slice(text, 0, end);
  return line.length > 80 ? `${slice(line, 0, 77)}...` : line;
}

/** Finds the source of a function or class by its path. If there is none, returns the reason as a string. */
export function getSource(globals: Globals, path: string): SourceInfo | string {
  const names = split(path, ".");
  const first = names[0] as string;
  let value: unknown = lookUp(GLOBAL, first);
  for (let at = 1; at < names.length; at += 1) value = lookUp(value, names[at] as string);
  if (typeof value !== "function") {
    if (value === undefined) return `There is no ${path} in this session; list-variables shows what there is`;
    return `${path} is not a function or class but ${typeName(value)}: ${preview(value)}`;
  }
  return { name: path, type: typeOf(value), source: sourceOf(value), place: globals.positionOf(first) };
}

/** Returns an own or inherited property. Calls only getters of globals: an unloaded built-in module is a getter. */
function lookUp(holder: unknown, name: string): unknown {
  for (let at = holder; at !== null && at !== undefined; at = getPrototypeOf(at) as unknown) {
    const known = getOwnPropertyDescriptor(at, name);
    if (known === undefined) continue;
    if (known.get === undefined) return known.value;
    return holder === GLOBAL ? loadBuiltin(name) : undefined;
  }
  return undefined;
}

function loadBuiltin(name: string): unknown {
  try {
    return createRequire(import.meta.url)(`node:${name}`) as unknown;
  } catch {
    return (GLOBAL as Record<string, unknown>)[name];
  }
}
