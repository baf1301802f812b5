// A failed evaluation as a field of the text block that tells of it, for documents that write errors in another way. The
// name of the field is a symbol, so that it is never sent.

/** A registered symbol, so that all copies of this package in a process share it. */
export const FAILED_EVALUATION: unique symbol = Symbol.for("catenary.failedEvaluation");

export interface FailedEvaluation {
  /** The text of the block. If the block has another one, middleware has changed it, and this field is out of date. */
  readonly text: string;
  /** The error of the code, without advice. Absent if the evaluation was stopped. */
  readonly error?: {
    readonly type: string;
    readonly message: string;
    readonly frames: readonly { readonly number: number; readonly text: string }[];
  };
  /** The text without the error and without advice. */
  readonly rest: () => string;
}

/** The key of a text block's `_meta` for the part of its text that says what to do, often with tools of ours. */
export const HINT = "catenary/hint";

/** For a reader that says it in another way. What goes over a connection has the hint in its text, for all others. */
export function withoutHint(text: string, hint: string): string {
  return text.replace(`\n${hint}`, "").replace(`; ${hint}`, "");
}
