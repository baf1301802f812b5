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

/** The key of a text block's `_meta` for the line of its text that names tools, which a command line does not have. */
export const HINT = "catenary/hint";
