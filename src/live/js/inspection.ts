// What the user's session holds: its variables, and the source of its functions and classes. Getters are not called.

import { createRequire } from "node:module";
import type { Globals } from "./globals.ts";
import { preview, typeName } from "./printing.ts";

const { getOwnPropertyDescriptor, getPrototypeOf } = Object;
// Kept as it is, to be applied to whatever the user made.
// oxlint-disable-next-line typescript/unbound-method
const toSource = Function.prototype.toString;
const { apply } = Reflect;
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
  const pattern = typeof params["pattern"] === "string" ? params["pattern"].toLowerCase() : "";
  const max = typeof params["max"] === "number" ? params["max"] : MOST_VARIABLES;
  const names = globals.names().filter((name) => name.toLowerCase().includes(pattern));
  const found = names.slice(0, max).map((name) => variable(globals, name));
  return { variables: found, total: names.length };
}

function variable(globals: Globals, name: string): Variable {
  const at = globals.whereIs(name);
  const place = at === undefined ? "" : `${at.cell}:${at.line}`;
  const known = getOwnPropertyDescriptor(globalThis, name);
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
  if (typeof value === "function") return text(value).startsWith("class") ? "class" : "function";
  return typeof value === "object" ? typeName(value) : typeof value;
}

function text(value: object): string {
  return apply(toSource, value, []);
}

function head(value: object): string {
  const [line = ""] = text(value).split("\n");
  return line.length > 80 ? `${line.slice(0, 77)}...` : line;
}

/** A string says why there is none. */
export function source(globals: Globals, path: string): Found | string {
  const [first = "", ...rest] = path.split(".");
  let value: unknown = look(globalThis, first);
  for (const name of rest) value = look(value, name);
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
    return holder === globalThis ? builtin(name) : undefined;
  }
  return undefined;
}

function builtin(name: string): unknown {
  try {
    return createRequire(import.meta.url)(`node:${name}`) as unknown;
  } catch {
    return (globalThis as Record<string, unknown>)[name];
  }
}
