// The global names of the user's session: those of Node, `require`, the built-in modules by their names, `_` and
// `_error`; and the names that the user's code declares. It runs in the main thread, before the user's code and beside
// it, so it keeps the functions it needs.

import { builtinModules, createRequire } from "node:module";
import { join } from "node:path";
import { GLOBAL } from "./kept.ts";
import type { Declared } from "./rewriting.ts";

const { create, defineProperty, getOwnPropertyDescriptor, getOwnPropertyNames } = Object;
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
