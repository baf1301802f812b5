// Values and errors of the user's session as texts, by Node's own inspection. It runs in the main thread, where
// getters and `inspect.custom` of the user may be called: whoever calls it must be ready for what they throw.

import { inspect, types } from "node:util";
import type { Printing, Thrown } from "./messages.ts";

const { isNativeError } = types;

/** Causes that are told of with an error, and errors of an aggregate. */
const MOST_CAUSES = 5;

/** Characters of an error's type, of its message with all causes, and of its stack. */
const MOST_TYPE = 200;
const MOST_MESSAGE = 20_000;
const MOST_STACK = 50_000;
/** For quotes, and for what Node says of a text that it has cut. */
const SPARE = 100;

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

/** The first so many characters, and how many there were. */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}... [cut at ${most.toLocaleString("en")} characters]`;
}

/** In one short line. */
export function preview(value: unknown): string {
  const text = inspect(value, { depth: 0, maxArrayLength: 5, maxStringLength: 60, breakLength: Infinity });
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** Never throws: an error may be made so that it cannot be looked at. */
export function describe(error: unknown): Thrown {
  try {
    if (!isNativeError(error) && !(error instanceof Error)) {
      const message = cut(inspect(error, { depth: 2, maxStringLength: MOST_MESSAGE }), MOST_MESSAGE);
      return { type: cut(typeName(error), MOST_TYPE), message, stack: "" };
    }
    const stack: unknown = error.stack;
    const said: unknown = error.message;
    const message = cut(withCauses(error, advised(cut(String(said), MOST_MESSAGE)), 0), MOST_MESSAGE);
    return { type: cut(typeName(error), MOST_TYPE), message, stack: typeof stack === "string" ? stackOf(stack) : "" };
  } catch {
    return { type: "Error", message: "Something was thrown that cannot be printed", stack: "" };
  }
}

/** What Node says of modules speaks of files that nobody here has; and not of what helps. */
function advised(message: string): string {
  const [, wanted, from] =
    /^Cannot find package '([^']+)' imported from (\S+)$/.exec(message) ??
    /^Cannot find module '([^'./][^']*)'\nRequire stack:\n- (\S+\/)session\.js$/.exec(message) ??
    [];
  if (wanted !== undefined && from !== undefined) {
    const how = `install it there (npm install ${wanted}), or give the session another folder (cwd)`;
    return `Cannot find package '${wanted}' from ${from}: ${how}`;
  }
  if (message === "Cannot use 'import.meta' outside a module") {
    return `${message}: what is evaluated is none; import() a file that is one, or use process.cwd()`;
  }
  return message.replace(/\nRequire stack:\n- \S+\/session\.js$/, "");
}

/** The message stands at the head of a stack, and may be longer than all the rest. */
function stackOf(stack: string): string {
  if (stack.length <= MOST_STACK) return stack;
  const frames = stack.lastIndexOf("\n    at ", stack.indexOf("\n    at ") + MOST_STACK);
  return frames === -1 ? stack.slice(0, MOST_STACK) : stack.slice(-MOST_STACK);
}

/** Of its constructor, or what there is in the place of one. */
export function typeName(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  const maker: unknown = (value as { readonly constructor?: unknown }).constructor;
  const name: unknown = typeof maker === "function" ? maker.name : undefined;
  return typeof name === "string" && name !== "" ? name : typeof value;
}

function withCauses(error: Error & { readonly errors?: unknown }, message: string, depth: number): string {
  let text = message;
  const { cause, errors } = error;
  const below = Array.isArray(errors) ? (errors as unknown[]).slice(0, MOST_CAUSES) : [];
  if (cause !== undefined) below.unshift(cause);
  for (const one of depth < MOST_CAUSES ? below : []) {
    const what = isNativeError(one) ? `${typeName(one)}: ${withCauses(one, one.message, depth + 1)}` : inspect(one);
    text += `\n  [cause] ${what}`;
  }
  return text;
}
