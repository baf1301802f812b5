// The profilers on real SBCL: rows of the user's own functions and of the evaluated code itself are not cut, however many
// functions of the guest are above them in the stack.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startLispGuest, type LispGuest } from "../../../test/support/live/lisp-guest.ts";
import { hasSbcl } from "../../../test/support/setup/sbcl.ts";

const DEEP = 24;

describe.skipIf(!hasSbcl())("allocation-profile (needs SBCL)", () => {
  let lisp: LispGuest;
  beforeAll(async () => {
    lisp = await startLispGuest();
  });
  afterAll(async () => lisp.close());

  it("allocation-profile has a row for each function in a deep stack, and for the evaluated code", async () => {
    const names = Array.from({ length: DEEP }, (_, at) => `level-${at}`);
    const functions = names.map((name, at) => `(defun ${name} (n) (cons n (${names[at + 1] ?? "make-list"} n)))`);
    await lisp.evaluate(functions.toReversed().join("\n"));
    const code = "(let ((kept nil)) (dotimes (i 300) (setf kept (level-0 2000))) (length kept))";
    const text = String((await lisp.ask("allocation-profile", { code }).answer)["text"]);
    const missing = names.filter((name) => !text.includes(` ${name.toUpperCase()}\n`));
    expect(missing).toEqual([]);
    expect(text).toContain(" (the evaluated code)\n");
  });
});
