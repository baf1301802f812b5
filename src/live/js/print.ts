// Values and errors of the user's session as texts, by Node's own inspection. It runs in the main thread, where
// getters and `inspect.custom` of the user may be called: whoever calls it must be ready for what they throw.

import { inspect, types } from "node:util";
import { first } from "../output.ts";
import { AnyError, isArray, slice, toText, apply, includes, startsWith } from "./primordials.ts";
import type { Printing, Thrown } from "./messages.ts";
import { runInNewContext } from "node:vm";

const { isNativeError } = types;

/** Causes that are told of with an error, and errors of an aggregate. */
const MOST_CAUSES = 5;

/** Characters of an error's type, of its message with all causes, and of its stack. */
const MOST_TYPE = 200;
const MOST_MESSAGE = 20_000;
const MOST_STACK = 50_000;
/** For quotes, and for the words about what was cut, by Node or here. */
export const SPARE: number = 100;

export function printed(value: unknown, { printLength, printLevel, maxOutput }: Printing): string {
  const text = inspect(value, {
    depth: printLevel,
    maxArrayLength: printLength,
    maxStringLength: maxOutput,
    colors: false,
  });
  // Node has cut a long text itself, and says so behind it.
  return cut(text, typeof value === "string" ? maxOutput + SPARE : maxOutput);
}

/** The first so many characters, and that these are not all. */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : `${first(text, most)}... [cut at ${most.toLocaleString("en")} characters]`;
}

/** In one short line. */
export function preview(value: unknown): string {
  const text = inspect(value, { depth: 0, maxArrayLength: 5, maxStringLength: 60, breakLength: Infinity });
  return text.length > 80 ? `${slice(text, 0, 77)}...` : text;
}

/** One that was sent from another thread is no native one. */
function isError(value: unknown): value is Error {
  return isNativeError(value) || value instanceof AnyError;
}

/** Never throws: an error may be made so that it cannot be looked at. */
export function describe(error: unknown): Thrown {
  try {
    if (!isError(error)) {
      const message = cut(inspect(error, { depth: 2, maxStringLength: MOST_MESSAGE }), MOST_MESSAGE);
      return { type: cut(typeName(error), MOST_TYPE), message, stack: "" };
    }
    const type = cut(typeName(error), MOST_TYPE);
    const { stack } = (type === "SyntaxError" ? withPlace(error) : error) as { readonly stack?: unknown };
    const said: unknown = error.message;
    const message = cut(withCauses(error, cut(toText(said), MOST_MESSAGE), 0), MOST_MESSAGE);
    if (typeof stack !== "string") return { type, message, stack: "" };
    const place = type === "SyntaxError" ? placeAbove(stack) : undefined;
    return { type, message, stack: stackOf(stack), ...(place && { place }) };
  } catch {
    return { type: "Error", message: "Something was thrown that cannot be printed", stack: "" };
  }
}

/** The message stands at the head of a stack, and may be longer than all the rest. */
function stackOf(stack: string): string {
  if (stack.length <= MOST_STACK) return stack;
  const frames = stack.lastIndexOf("\n    at ", stack.indexOf("\n    at ") + MOST_STACK);
  return frames === -1 ? stack.slice(0, MOST_STACK) : stack.slice(-MOST_STACK);
}

/** Of its constructor, or what there is in the place of one. */
export function typeName(value: unknown): string {
  if (value === null || value === undefined) return value === null ? "null" : "undefined";
  const maker: unknown = (value as { readonly constructor?: unknown }).constructor;
  const name: unknown = typeof maker === "function" ? maker.name : undefined;
  return typeof name === "string" && name !== "" ? name : typeof value;
}

function withCauses(error: Error & { readonly errors?: unknown }, message: string, depth: number): string {
  let text = message;
  const { cause, errors } = error;
  if (depth === MOST_CAUSES) return text;
  if (cause !== undefined) text += causeText(cause, depth);
  const below: readonly unknown[] = isArray(errors) ? errors : [];
  for (let at = 0; at < below.length && at < MOST_CAUSES; at += 1) text += causeText(below[at], depth);
  return text;
}

function causeText(cause: unknown, depth: number): string {
  if (!isError(cause)) return `\n  [cause] ${inspect(cause)}`;
  return `\n  [cause] ${typeName(cause)}: ${withCauses(cause, cause.message, depth + 1)}`;
}

// Where a file that was imported or required cannot be read. Node writes it above the stack of the error: at once where
// the file was required, and of an ES module only where the error leaves a script of `node:vm`, so it is thrown in one.
// It runs in the main thread, on errors of the user.

// Nothing of the user's runs in that script.
// oxlint-disable-next-line no-restricted-imports

export interface SyntaxPlace {
  /** A path or an address, as Node has it. */
  readonly file: string;
  /** Both are counted from 1. */
  readonly line: number;
  /** Absent far to the right on a long line. */
  readonly column?: number;
  /** What stands around it on the line, and in which column of that it is. */
  readonly around?: { readonly text: string; readonly column: number };
}


const AGAIN = "catenary:thrown-again";
// Kept as it is, to be applied whatever has become of it.
// oxlint-disable-next-line typescript/unbound-method
const { exec } = RegExp.prototype;
const PLACE = /^(\S[^\n]*):(\d+)\n([^\n]*)\n([ \t]*)(\^?)/;
/** Characters of the line before the place, and in all. */
const BEFORE = 60;
const MOST_TEXT = 100;

/** With the place above its stack, if Node knows it and has not said it yet. */
export function withPlace<T>(error: T): T {
  if (!isNativeError(error)) return error;
  const stack: unknown = error.stack;
  if (typeof stack !== "string" || !startsWith(stack, "SyntaxError") || !includes(stack, "node:internal/modules/")) {
    return error;
  }
  try {
    runInNewContext("throw error", { error }, { filename: AGAIN });
  } catch {
    // Nobody knows of a place, so Node has taken ours.
    if (startsWith(error.stack ?? "", AGAIN)) error.stack = stack;
  }
  return error;
}

export function placeAbove(stack: string): SyntaxPlace | undefined {
  const found = apply(exec, PLACE, [stack]);
  if (found === null) return undefined;
  const file = found[1] as string;
  const line = +(found[2] as string);
  if (found[5] === "") return { file, line };
  const column = (found[4] as string).length + 1;
  const from = column > BEFORE ? column - BEFORE : 0;
  const text = slice(found[3] as string, from, from + MOST_TEXT);
  return { file, line, column, around: { text, column: column - from } };
}
