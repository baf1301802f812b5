// Prints values and errors of the user's code with Node's inspect. Runs in the main thread. Printing may call the
// user's getters and `inspect.custom` methods, so callers must expect it to throw. Also keeps values to be looked into.

import { inspect, types } from "node:util";
// Only `throw error` runs in the new context, none of the user's code.
// oxlint-disable-next-line no-restricted-imports
import { runInNewContext } from "node:vm";
import { firstChars } from "../../core/text.ts";
import type { GuestText } from "../runtime.ts";
import { HandleTable } from "./handles.ts";
import { HIDDEN, internalsOf, releaseInternals, valueOf } from "./inspector.ts";
import type { PrintLimits, Thrown } from "./messages.ts";

// Saved, because the user's code may declare these names.
const NativeError = Error;
const toText = String;
const { isArray } = Array;

/** The maximum depth of causes, and the maximum number of errors of an AggregateError, that are shown. */
const MAX_CAUSES = 5;

/** The maximum number of characters of an error's type, of its message with all causes, and of its stack. */
const MAX_TYPE_LENGTH = 200;
const MAX_MESSAGE_LENGTH = 20_000;
const MAX_STACK_LENGTH = 50_000;
const MAX_UNCAUGHT_LENGTH = 10_000;
const MAX_VALUE_LENGTH = 1_000_000;
/** Allowance for quotes and for the note about what was cut. */
const CUT_MARGIN = 100;

/** Prints a value whole, up to a length that only protects the process. The host cuts it to what its reader can use. */
export function printValue(value: unknown, { printLength, printDepth }: PrintLimits): string {
  const text = inspect(value, {
    depth: printDepth,
    maxArrayLength: printLength,
    maxStringLength: MAX_VALUE_LENGTH,
    colors: false,
  });
  return cut(text, maxLength(value));
}

/** Node has already cut a long string and added a note, which must be kept. */
function maxLength(value: unknown): number {
  return typeof value === "string" ? MAX_VALUE_LENGTH + CUT_MARGIN : MAX_VALUE_LENGTH;
}

/** Returns the first `max` characters, with a note if the text is longer. */
function cut(text: string, max: number): string {
  return text.length <= max ? text : `${firstChars(text, max)}... [cut at ${max.toLocaleString("en")} characters]`;
}

/** The value in one short line. */
export function preview(value: unknown): string {
  const text = inspect(value, { depth: 0, maxArrayLength: 5, maxStringLength: 60, breakLength: Infinity });
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** An error that came from another thread may not be a native error, so its prototype is checked too. */
function isError(value: unknown): value is Error {
  return types.isNativeError(value) || value instanceof NativeError;
}

/** Never throws, even for values whose getters throw. */
export function describeThrown(error: unknown): Thrown {
  try {
    const type = cut(typeName(error), MAX_TYPE_LENGTH);
    if (!isError(error)) {
      const message = cut(inspect(error, { depth: 2, maxStringLength: MAX_MESSAGE_LENGTH }), MAX_MESSAGE_LENGTH);
      return { type, message, stack: "" };
    }
    const { stack } = (type === "SyntaxError" ? withSyntaxPosition(error) : error) as { readonly stack?: unknown };
    const raw: unknown = error.message;
    const message = cut(withCauses(error, cut(toText(raw), MAX_MESSAGE_LENGTH), 0), MAX_MESSAGE_LENGTH);
    return { type, message, stack: typeof stack === "string" ? cutStack(stack) : "" };
  } catch {
    return { type: "Error", message: "The thrown value cannot be printed", stack: "" };
  }
}

/** The text of an error that belongs to no evaluation. Never throws. */
export function errorText(error: unknown): string {
  try {
    return cut(inspect(withSyntaxPosition(error), { maxStringLength: MAX_UNCAUGHT_LENGTH }), MAX_UNCAUGHT_LENGTH);
  } catch {
    return "(a value that cannot be printed)";
  }
}

/** Keeps the frames rather than the message, which is at the start of the stack and may be very long. */
function cutStack(stack: string): string {
  return stack.length > MAX_STACK_LENGTH && stack.includes("\n    at ")
    ? stack.slice(-MAX_STACK_LENGTH)
    : stack.slice(0, MAX_STACK_LENGTH);
}

/** The name of the value's constructor, or its type. */
export function typeName(value: unknown): string {
  if (value === null || value === undefined) return value === null ? "null" : "undefined";
  const constructor: unknown = (value as { readonly constructor?: unknown }).constructor;
  const name: unknown = typeof constructor === "function" ? constructor.name : undefined;
  return typeof name === "string" && name !== "" ? name : typeof value;
}

function withCauses(error: Error & { readonly errors?: unknown }, message: string, depth: number): string {
  let text = message;
  const { cause, errors } = error;
  if (depth === MAX_CAUSES) return text;
  if (cause !== undefined) text += causeText(cause, depth);
  for (const inner of isArray(errors) ? errors.slice(0, MAX_CAUSES) : []) text += causeText(inner, depth);
  return text;
}

function causeText(cause: unknown, depth: number): string {
  if (!isError(cause)) return `\n  [cause] ${inspect(cause)}`;
  return `\n  [cause] ${typeName(cause)}: ${withCauses(cause, cause.message, depth + 1)}`;
}

const RETHROW_FILE = "catenary:rethrown";

/**
 * Makes Node write the position of the syntax error above the error's stack. For a required file, Node has already done
 * so. For an ES module, Node does so only when the error leaves a `node:vm` script, so such a script throws it again.
 */
function withSyntaxPosition<T>(error: T): T {
  if (!types.isNativeError(error)) return error;
  const { stack } = error as { readonly stack?: unknown };
  if (typeof stack !== "string" || !/^SyntaxError[^]*node:internal\/modules\//.test(stack)) return error;
  try {
    runInNewContext("throw error", { error }, { filename: RETHROW_FILE });
  } catch {
    // Node did not know the position and wrote the position in our own script instead.
    if (error.stack?.startsWith(RETHROW_FILE) === true) error.stack = stack;
  }
  return error;
}

// Values that the user may look into: a value that is not printed whole gets a number, under which `inspect` shows its
// parts, page by page. The parts are listed without calling getters or traps of proxies.

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
    const shown = short.length > MAX_LINE ? `${short.slice(0, MAX_LINE - 3)}...` : short;
    return shown.length === short.length && isWhole(value, shown)
      ? { text: shown }
      : { text: shown, ...this.#handleOf(value) };
  }

  inspect({ handle, start = 0, count = PAGE }: { handle?: unknown; start?: unknown; count?: unknown }): GuestText {
    const found = this.#table.get(toNumber(handle));
    if ("problem" in found) return { text: found.problem, isError: true };
    const { value } = found;
    const parts = partsOf(value);
    const from = max(0, toNumber(start));
    const page = parts.slice(from, from + max(1, min(toNumber(count), 1_000)));
    const lines = page.map(({ name, value: part, note }, at) => {
      const { text, handle: inner } = note === undefined ? this.line(part) : { text: note, handle: undefined };
      return `${from + at}: ${name} = ${text}${inner === undefined ? "" : ` [handle ${inner}]`}`;
    });
    const left = parts.length - from - page.length;
    if (left > 0) lines.push(`... ${left} more; pass start: ${from + page.length}`);
    const head = `${describe(value)}, ${parts.length} ${parts.length === 1 ? "part" : "parts"}`;
    return {
      text: [head, ...lines].join("\n"),
      data: { handle, type: describe(value), total: parts.length, start: from },
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
    return [...(apply(mapEntries, value, []) as Iterable<[unknown, unknown]>)].map(([key, one]) => ({
      name: `[${short(key)}]`,
      value: one,
    }));
  }
  if (types.isSet(value))
    return [...(apply(setValues, value, []) as Iterable<unknown>)].map((one: unknown, at) => ({
      name: `[${at}]`,
      value: one,
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
