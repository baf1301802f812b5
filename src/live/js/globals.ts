// The global names of the user's session: those of Node, `require`, the built-in modules by their names, `_` and
// `_error`; and the names that the user's code declares. It runs in the main thread, before the user's code and beside
// it, so it keeps the functions it needs.

import { builtinModules, createRequire } from "node:module";
import { join } from "node:path";
import { GLOBAL, apply, includes, indexOf, slice, split, startsWith, toLowerCase } from "./primordials.ts";
import type { Declared } from "./rewrite.ts";
import { preview, typeName } from "./print.ts";

const { create, defineProperty, getOwnPropertyDescriptor, getOwnPropertyNames, getPrototypeOf } = Object;
const { deleteProperty } = Reflect;
const cwd = process.cwd.bind(process);

/** Modules that have other names, are gone, or would hide what is global already. */
const NO_GLOBALS = /^_|\/|^(?:sys|wasi|punycode|process|console|crypto|module|test)$/;

export interface Last {
  value: unknown;
  error: unknown;
}

export class Globals {
  readonly last: Last = { value: undefined, error: undefined };
  /** What was there before the user. */
  readonly #first: Readonly<Record<string, true>>;
  /** What the user has declared, and where. */
  readonly #declared = empty<{ readonly cell: string; readonly line: number }>();

  constructor() {
    lazy("require", () => createRequire(join(cwd(), "session.js")));
    const require = createRequire(import.meta.url);
    for (const name of builtinModules) {
      if (!NO_GLOBALS.test(name) && !(name in GLOBAL)) lazy(name, () => require(`node:${name}`) as unknown);
    }
    accessor("_", () => this.last.value);
    accessor("_error", () => this.last.error);
    const first = empty<true>();
    for (const name of getOwnPropertyNames(GLOBAL)) first[name] = true;
    this.#first = first;
  }

  /**
   * Makes room for what the code will declare: it must be there to be assigned to, and no accessor may be in the way.
   * Returns the names that are new.
   */
  declare(declared: readonly Declared[], cell: string): string[] {
    const made: string[] = [];
    for (let at = 0; at < declared.length; at += 1) {
      const { name, type, line } = declared[at] as Declared;
      this.#declared[name] = { cell, line };
      if (type === "function") continue;
      const known = getOwnPropertyDescriptor(GLOBAL, name);
      if (known?.writable === true || known?.configurable === false) continue;
      if (known === undefined) made[made.length] = name;
      data(name, known === undefined ? undefined : (GLOBAL as Record<string, unknown>)[name]);
    }
    return made;
  }

  /** The code has failed: what it had not come to yet is not there. Returns the names of it. */
  forget(made: readonly string[]): string[] {
    const gone: string[] = [];
    for (let at = 0; at < made.length; at += 1) {
      const name = made[at] as string;
      const known = getOwnPropertyDescriptor(GLOBAL, name);
      if (known?.configurable === true && known.value === undefined && deleteProperty(GLOBAL, name)) {
        delete this.#declared[name];
        gone[gone.length] = name;
      }
    }
    return gone;
  }

  whereIs(name: string): { readonly cell: string; readonly line: number } | undefined {
    return this.#declared[name];
  }

  /** Those that the user has made, the first first. */
  names(): string[] {
    const all = getOwnPropertyNames(GLOBAL);
    const found: string[] = [];
    for (let at = 0; at < all.length; at += 1) {
      const name = all[at] as string;
      if (!(name in this.#first) || name in this.#declared) found[found.length] = name;
    }
    return found;
  }
}

/** By name, without the methods of a map, which the user's code may take away. */
function empty<T>(): Record<string, T> {
  return create(null) as Record<string, T>;
}

function data(name: string, value: unknown): void {
  defineProperty(GLOBAL, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Whoever assigns to it has it for himself. */
function accessor(name: string, get: () => unknown): void {
  defineProperty(GLOBAL, name, {
    get,
    set: (value: unknown) => data(name, value),
    enumerable: false,
    configurable: true,
  });
}

function lazy(name: string, make: () => unknown): void {
  accessor(name, () => {
    const value = make();
    defineProperty(GLOBAL, name, { value, writable: true, enumerable: false, configurable: true });
    return value;
  });
}

// What the user's session holds: its variables, and the source of its functions and classes. Getters are not called.

// Kept as it is, to be applied to whatever the user made.
// oxlint-disable-next-line typescript/unbound-method
const toSource = Function.prototype.toString;
const MOST_VARIABLES = 200;

export interface Variable {
  readonly name: string;
  readonly type: string;
  readonly preview: string;
  readonly place: string;
}

export interface Found {
  readonly name: string;
  readonly type: string;
  readonly source: string;
  readonly place: string;
}

export function variables(
  globals: Globals,
  params: Readonly<Record<string, unknown>>,
): { readonly variables: Variable[]; readonly total: number } {
  const pattern = typeof params["pattern"] === "string" ? toLowerCase(params["pattern"]) : "";
  const max = typeof params["max"] === "number" ? params["max"] : MOST_VARIABLES;
  const names = globals.names();
  const found: Variable[] = [];
  let total = 0;
  for (let at = 0; at < names.length; at += 1) {
    const name = names[at] as string;
    if (!includes(toLowerCase(name), pattern)) continue;
    total += 1;
    if (total <= max) found[found.length] = variable(globals, name);
  }
  return { variables: found, total };
}

function variable(globals: Globals, name: string): Variable {
  const at = globals.whereIs(name);
  const place = at === undefined ? "" : `${at.cell}:${at.line}`;
  const known = getOwnPropertyDescriptor(GLOBAL, name);
  if (known === undefined || known.get !== undefined) return { name, type: "accessor", preview: "[Getter]", place };
  const value: unknown = known.value;
  try {
    return { name, type: kind(value), preview: typeof value === "function" ? head(value) : preview(value), place };
  } catch {
    return { name, type: typeof value, preview: "it cannot be printed", place };
  }
}

/** `function`, `class`, the type of a primitive, or the constructor of an object. */
function kind(value: unknown): string {
  if (typeof value === "function") return startsWith(text(value), "class") ? "class" : "function";
  return typeof value === "object" ? typeName(value) : typeof value;
}

function text(value: object): string {
  return apply(toSource, value, []);
}

function head(value: object): string {
  const whole = text(value);
  const end = indexOf(whole, "\n");
  const line = end === -1 ? whole : slice(whole, 0, end);
  return line.length > 80 ? `${slice(line, 0, 77)}...` : line;
}

/** A string says why there is none. */
export function source(globals: Globals, path: string): Found | string {
  const names = split(path, ".");
  const first = names[0] as string;
  let value: unknown = look(GLOBAL, first);
  for (let at = 1; at < names.length; at += 1) value = look(value, names[at] as string);
  if (typeof value !== "function") {
    if (value === undefined) return `There is nothing named ${path} in this session; list-variables says what there is`;
    return `${path} is no function or class but ${typeName(value)}: ${preview(value)}`;
  }
  const at = globals.whereIs(first);
  return { name: path, type: kind(value), source: text(value), place: at === undefined ? "" : `${at.cell}:${at.line}` };
}

/** Own, or inherited; the names of Node's modules and of `require` are made when they are first asked for. */
function look(holder: unknown, name: string): unknown {
  for (let at = holder; at !== null && at !== undefined; at = getPrototypeOf(at) as unknown) {
    const known = getOwnPropertyDescriptor(at, name);
    if (known === undefined) continue;
    if (known.get === undefined) return known.value;
    return holder === GLOBAL ? builtin(name) : undefined;
  }
  return undefined;
}

function builtin(name: string): unknown {
  try {
    return createRequire(import.meta.url)(`node:${name}`) as unknown;
  } catch {
    return (GLOBAL as Record<string, unknown>)[name];
  }
}
