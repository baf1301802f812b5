// Values that the user may look into: a value that is not printed whole gets a number, under which `inspect` shows its
// parts, page by page. The parts are listed without calling getters or traps of proxies.

import { inspect, types } from "node:util";
import type { GuestText } from "../runtime.ts";
import { HandleTable } from "./handles.ts";
import { internalsOf, releaseInternals, valueOf } from "./inspector.ts";
import { HIDDEN } from "./thrown-variables.ts";
import { maxLength, typeName } from "./print.ts";

const PAGE = 50;
const MAX_LINE = 200;

// Saved because the user's code may declare these names.
const { getOwnPropertyDescriptor, getPrototypeOf, keys } = Object;
const { apply, ownKeys } = Reflect;
const { from: toArray } = Array;
const { max, min } = Math;
const NativeMap = Map;
const toNumber = Number;
const quote = JSON.stringify;
// oxlint-disable-next-line typescript/unbound-method
const { entries: mapEntries } = Map.prototype;
// oxlint-disable-next-line typescript/unbound-method
const { values: setValues } = Set.prototype;
// Unbound on purpose: it is called on functions of the user.
// oxlint-disable-next-line typescript/unbound-method
const toSource = Function.prototype.toString;

/** Matches what Node prints for a value, or a part of it, that it does not show. */
const NOT_WHOLE =
  /\[(?:[\w$]*Function|class)\b|\[[A-Z][\w$.]*\]|\[(?:Getter|Setter)|\.\.\. \d+ more |<(?:items unknown|pending|rejected)>/;

function isWhole(value: unknown, text: string): boolean {
  if (text.length > maxLength(value)) return false;
  if (typeof value === "string") return !/'\.\.\. \d+ more character/.test(text);
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return true;
  return !types.isProxy(value) && !types.isPromise(value) && !NOT_WHOLE.test(text);
}

export interface Printed {
  readonly text: string;
  /** Undefined if the text shows everything. */
  readonly handle?: number;
}

interface InspectParams {
  readonly handle?: unknown;
  readonly start?: unknown;
  readonly count?: unknown;
  /** Whether the parts are wanted as data too. */
  readonly parts?: unknown;
}

export class Handles {
  readonly #table = new HandleTable();

  turnOff(): void {
    this.#table.turnOff();
  }

  /** The handle of a value that was printed as this text; nothing if the text shows everything. */
  of(value: unknown, text: string): { readonly handle?: number } {
    return isWhole(value, text) ? {} : this.#handleOf(value);
  }

  #handleOf(value: unknown): { readonly handle?: number } {
    const handle = this.#table.add(value);
    return handle === undefined ? {} : { handle };
  }

  /** The value in one line of at most 200 characters. Never throws. */
  line(value: unknown): Printed {
    let text: string;
    try {
      text = inspect(value, { depth: 1, breakLength: Infinity, maxArrayLength: 10, maxStringLength: 150 });
    } catch {
      text = "[cannot be printed]";
    }
    const short = text.replaceAll(/\n\s*/g, " ");
    const line = short.length > MAX_LINE ? `${short.slice(0, MAX_LINE - 3)}...` : short;
    return line.length === short.length && isWhole(value, line)
      ? { text: line }
      : { text: line, ...this.#handleOf(value) };
  }

  inspect({ handle, start = 0, count = PAGE, parts: wantsParts }: InspectParams): GuestText {
    const entry = this.#table.get(toNumber(handle));
    if ("problem" in entry) return { text: entry.problem, isError: true };
    const { value } = entry;
    const parts = partsOf(value);
    const from = max(0, toNumber(start));
    const page = parts.slice(from, from + max(1, min(toNumber(count), 1_000)));
    const shown = page.map(({ name, value: part, note }) => ({
      name,
      ...(note === undefined ? this.line(part) : { text: note }),
    }));
    const lines = shown.map(({ name, text, handle: inner }: Printed & { readonly name: string }, at) => {
      return `${from + at}: ${name} = ${text}${inner === undefined ? "" : ` [handle ${inner}]`}`;
    });
    const left = parts.length - from - page.length;
    if (left > 0) lines.push(`... ${left} more; pass start: ${from + page.length}`);
    const head = `${describe(value)}, ${parts.length} ${parts.length === 1 ? "part" : "parts"}`;
    return {
      text: wantsParts === true ? head : [head, ...lines].join("\n"),
      data: { handle, type: describe(value), total: parts.length, start: from },
      ...(wantsParts === true && { parts: shown, total: parts.length }),
    };
  }
}

interface Part {
  readonly name: string;
  readonly value?: unknown;
  /** Shown instead of a value. */
  readonly note?: string;
}

function describe(value: unknown): string {
  if (typeof value === "string") return `string of ${value.length} characters`;
  if (types.isProxy(value)) return "Proxy";
  if (typeof value === "function") return /^class\b/.test(toSource.call(value)) ? "class" : "function";
  try {
    return typeName(value);
  } catch {
    return typeof value;
  }
}

const STRING_PART = 1_000;

/** The parts of a value: what it contains, its properties, then what only the engine knows. */
function partsOf(value: unknown): Part[] {
  if (typeof value === "string") {
    const parts: Part[] = [];
    for (let at = 0; at < value.length; at += STRING_PART) {
      const end = min(at + STRING_PART, value.length);
      parts.push({ name: `${at}-${end - 1}`, note: quote(value.slice(at, end)) });
    }
    return parts;
  }
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return [{ name: "value", value }];
  if (types.isProxy(value)) return internalParts(value);
  return [...entries(value), ...properties(value), ...internalParts(value)];
}

function entries(value: object): Part[] {
  if (types.isMap(value)) {
    return [...(apply(mapEntries, value, []) as Iterable<[unknown, unknown]>)].map(([key, item]) => ({
      name: `[${short(key)}]`,
      value: item,
    }));
  }
  if (types.isSet(value))
    return [...(apply(setValues, value, []) as Iterable<unknown>)].map((item: unknown, at) => ({
      name: `[${at}]`,
      value: item,
    }));
  return [];
}

function short(value: unknown): string {
  try {
    return inspect(value, { depth: 0, breakLength: Infinity, maxStringLength: 60 }).slice(0, 80);
  } catch {
    return "?";
  }
}

function properties(value: object): Part[] {
  return ownKeys(value).map((key) => {
    const name = typeof key === "symbol" ? `[${key.toString()}]` : key;
    const known = getOwnPropertyDescriptor(value, key);
    if (known?.get !== undefined || known?.set !== undefined) {
      return { name, note: known.get === undefined ? "[Setter]" : "[Getter, not called]" };
    }
    return { name, value: known?.value as unknown };
  });
}

/** Shown for every value, since nothing else tells them. */
const INTERNAL =
  /^\[\[(?:Target|Handler|PromiseState|PromiseResult|WeakRefTarget|BoundThis|BoundArgs|TargetFunction|Entries|GeneratorState|ArrayBufferByteLength|PrimitiveValue)\]\]$/;

function internalParts(value: object): Part[] {
  const parts: Part[] = [];
  const isMapOrSet = types.isMap(value) || types.isSet(value);
  for (const [name, remote] of internalsOf(value)) {
    if (name === "[[Scopes]]") parts.push(...closureParts(valueOf(remote)));
    else if (INTERNAL.test(name) && !(isMapOrSet && name === "[[Entries]]"))
      parts.push({ name, value: valueOf(remote) });
  }
  releaseInternals();
  const prototype: unknown = types.isProxy(value) ? undefined : getPrototypeOf(value);
  if (typeof prototype === "object" && prototype !== null && !isBuiltIn(prototype)) {
    parts.push({ name: "[[Prototype]]", value: prototype });
  }
  return parts;
}

function isBuiltIn(prototype: object): boolean {
  const maker: unknown = getOwnPropertyDescriptor(prototype, "constructor")?.value;
  return typeof maker === "function" && toSource.call(maker).endsWith("{ [native code] }");
}

/** The variables that a function closes over, without globals, the innermost first. */
function closureParts(scopes: unknown): Part[] {
  const parts = new NativeMap<string, Part>();
  // The array has no prototype, so it cannot be iterated.
  const list = toArray(scopes as ArrayLike<{ description: string; object: Record<string, unknown> }>);
  for (const { description, object } of list) {
    if (!/^(?:Block|Catch|Closure|Local|Module|Script)/.test(description)) continue;
    for (const name of keys(object)) {
      if (parts.has(name) || HIDDEN.test(name)) continue;
      try {
        parts.set(name, { name: `closure ${name}`, value: object[name] });
      } catch {
        // It has no value yet.
      }
    }
  }
  return [...parts.values()];
}
