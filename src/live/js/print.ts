// Prints values and errors of the user's code with Node's inspect. Runs in the main thread. Printing may call the
// user's getters and `inspect.custom` methods, so callers must expect it to throw.

import { inspect, types } from "node:util";
// Only `throw error` runs in the new context, none of the user's code.
// oxlint-disable-next-line no-restricted-imports
import { runInNewContext } from "node:vm";
import { firstChars } from "../../core/text.ts";
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
export function maxLength(value: unknown): number {
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
