// Where a file that was imported or required cannot be read. Node writes it above the stack of the error: at once where
// the file was required, and of an ES module only where the error leaves a script of `node:vm`, so it is thrown in one.
// It runs in the main thread, on errors of the user.

// Nothing of the user's runs in that script.
// oxlint-disable-next-line no-restricted-imports
import { runInNewContext } from "node:vm";
import { types } from "node:util";
import { apply, includes, slice, startsWith } from "./kept.ts";

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

const { isNativeError } = types;

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
