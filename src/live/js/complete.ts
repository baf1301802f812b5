// Completes code from the living session: names of variables, and of properties along a path such as `shop.items.`. Also
// reads a variable as a resource. Getters are not called, but for built-in modules, which load on first use.

import type { GuestText } from "../runtime.ts";
import { preview, printValue, typeName } from "./print.ts";
import { getSource, GLOBAL, type Globals, lookUpPath } from "./globals.ts";

// Saved because the user's code may declare these names.
const { getOwnPropertyNames, getPrototypeOf } = Object;
const { prototype: objectPrototype } = Object;
const NativeSet = Set;

const MAX_VALUES = 100;
/** How much of the code before the position is read: the pattern would take long for more. */
const MAX_COMPLETED = 1_000;
const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;
/** The path before the last dot, and the name that is being typed. */
const PATH =
  /(?:([\p{ID_Start}$_][\p{ID_Continue}$]*(?:\??\.[\p{ID_Start}$_#][\p{ID_Continue}$]*)*)\??\.)?([\p{ID_Continue}$]*)$/u;

export interface Completion {
  /** Where the completed name begins. */
  readonly start: number;
  readonly values: readonly string[];
}

export function complete(globals: Globals, code: string, position: number): Completion {
  const before = code.slice(0, position);
  const [, path, typed = ""] = PATH.exec(before.slice(-MAX_COMPLETED)) ?? [];
  const start = before.length - typed.length;
  // A number, or a property of something that is not a name.
  if (/^\d/.test(typed) || (path === undefined && /\.\s*$/.test(before.slice(0, start)))) return { start, values: [] };
  if (path === undefined) {
    // Read once, since a session with thousands of globals takes milliseconds to list them.
    const globalNames = getOwnPropertyNames(GLOBAL);
    return { start, values: best(typed, globals.names(globalNames), namesOf(GLOBAL, globalNames)) };
  }
  const value = lookUpPath(path.replaceAll("?.", "."));
  if (value === undefined || value === null) return { start, values: [] };
  return { start, values: best(typed, namesOf(value)) };
}

/** The names that begin as typed; if there are none, those that do so if case is ignored. Names of the first list first. */
function best(typed: string, ...lists: readonly (readonly string[])[]): string[] {
  const lower = typed.toLowerCase();
  const match = (isMatch: (name: string) => boolean): string[] => [
    ...new NativeSet(
      lists.flatMap((names) => names.filter((name) => isMatch(name) && IDENTIFIER.test(name)).toSorted()),
    ),
  ];
  const exact = match((name) => name.startsWith(typed));
  return (exact.length > 0 ? exact : match((name) => name.toLowerCase().startsWith(lower))).slice(0, MAX_VALUES);
}

/** The names of own and inherited properties; those of Object.prototype only for an object that has no others. */
function namesOf(value: unknown, ownNames: readonly string[] = getOwnPropertyNames(value)): string[] {
  const names = [...ownNames];
  for (let at = getPrototypeOf(value) as unknown; at !== null && at !== undefined; at = getPrototypeOf(at) as unknown) {
    if (at !== objectPrototype || names.length === 0) names.push(...getOwnPropertyNames(at));
  }
  return names;
}

/** The variables that begin with the value. */
export function completeVariable(
  globals: Globals,
  value: string,
): { readonly values: string[]; readonly total: number } {
  const names = globals.names().filter((name) => name.startsWith(value));
  return { values: names.slice(0, MAX_VALUES), total: names.length };
}

/** The resource js://variable/{name}: the type of the variable, and its source or value. */
export function readVariable(path: string): GuestText {
  const value = lookUpPath(path);
  if (typeof value === "function") {
    const source = getSource(path);
    if (typeof source !== "string") return { text: `// ${source.type} ${path}, ${source.place}\n${source.source}` };
  }
  if (value === undefined) return { text: `There is no ${path} in this session`, isError: true };
  try {
    return {
      text: `${path}: ${typeName(value)}\n${printValue(value, { printLength: 100, printDepth: 4, outputChars: 0 })}`,
    };
  } catch {
    return { text: `${path}: ${preview(typeof value)}, which cannot be printed` };
  }
}
