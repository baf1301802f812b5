// What the user's session holds: its variables, and the source of its functions and classes. Getters are not called.

import { createRequire } from "node:module";
import type { Globals } from "./globals.ts";
import { apply, GLOBAL, includes, indexOf, slice, split, startsWith, toLowerCase } from "./kept.ts";
import { preview, typeName } from "./printing.ts";

const { getOwnPropertyDescriptor, getPrototypeOf } = Object;
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
