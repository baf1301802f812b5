// After an error in Lisp, as a client does it: read a variable of a frame, inspect a value, take a restart; what closes
// the error; and that another session does not wait for it.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lisp } from "../../../src/live/index.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import { LiveFixture } from "./live-fixture.ts";

const LEDGER = `(defvar *closed* nil)
  (defun rate (table currency) (or (gethash currency table)
    (restart-case (error "No rate for ~a." currency)
      (use-rate (r) :report "Use a rate." r))))
  (defun total (entries) (let ((table (make-hash-table)) (sum 0))
    (setf (gethash :eur table) 2)
    (unwind-protect
      (dolist (entry entries sum) (incf sum (* (cdr entry) (rate table (car entry)))))
      (setf *closed* t))))`;

const FAIL = "(total '((:eur . 10) (:usd . 5)))";

describe.runIf(hasSbcl())("an open error in a Lisp session", () => {
  let fixture: LiveFixture;
  beforeAll(async () => {
    fixture = await LiveFixture.open(lisp(), "lisp");
    await fixture.evaluate(LEDGER);
  });
  afterAll(async () => fixture?.close());

  it("an open error in a Lisp session is inspected, a variable read, and a restart taken", async () => {
    const failed = await fixture.evaluate(FAIL);
    expect(failed).toMatchObject({
      status: "error",
      condition: { type: "SIMPLE-ERROR", restarts: ["USE-RATE"], open: true },
    });
    const [, frame = "", handle = ""] =
      /^(\d): \(TOTAL [^]*? {5}TABLE = #<HASH-TABLE .*> \[handle (\d+)\]$/m.exec(failed.text) ?? [];
    expect(failed.text).toContain("[Restarts]\n0: [USE-RATE] Use a rate. (takes a value)\n");
    expect(await fixture.call("inspect", { handle: Number(handle) })).toContain("0: :EUR => 2");
    expect(await fixture.call("evaluate-in-frame", { frame: Number(frame), code: "(list sum entry)" })).toBe(
      "=> (20 (:USD . 5))",
    );
    expect(await fixture.call("take-restart", { restart: "use-rate", value: "(* 2 3)" })).toBe("=> 50");
    expect((await fixture.evaluate("*closed*")).values).toEqual(["T"]);
  });

  it("an open error in a Lisp session is unwound by the next evaluation, a reset or an interrupt", async () => {
    await fixture.evaluate("(setf *closed* nil)");
    await fixture.evaluate(FAIL);
    expect(await fixture.call("evaluate-in-frame", { code: "*closed*" })).toBe("=> NIL");
    expect((await fixture.evaluate("*closed*")).values).toEqual(["T"]);
    expect(await fixture.call("list-restarts")).toContain("No error is open");
    await fixture.evaluate(FAIL);
    await fixture.call("interrupt-session");
    expect(await fixture.call("list-restarts")).toContain("No error is open");
    await fixture.evaluate(FAIL);
    await fixture.call("reset-session");
    expect(await fixture.call("list-restarts")).toContain("No error is open");
    await fixture.evaluate(LEDGER);
  });

  it("an open error in a Lisp session is stopped at the time limit after a restart, and the state is kept", async () => {
    await fixture.evaluate('(progn (with-simple-restart (on "Go on.") (error "x")) (loop))');
    const { content } = await fixture.client.callTool("take-restart", { restart: "on", timeout: 0.3 });
    expect(content).toMatchObject([{ text: expect.stringMatching(/^\[TIMEOUT\][^]*keeps its state/) as string }]);
    expect((await fixture.evaluate("(functionp #'total)")).values).toEqual(["T"]);
  });

  it("an open error in a Lisp session is closed after the time that the limits allow, or never opened", async () => {
    const args = { session: "brief" };
    await fixture.evaluate(LEDGER, args);
    await fixture.call("configure-limits", { ...args, "error-hold": 0 });
    expect(await fixture.evaluate(FAIL, args)).toMatchObject({ condition: { open: false } });
    await fixture.call("configure-limits", { ...args, "error-hold": 0.2 });
    expect(await fixture.evaluate(FAIL, args)).toMatchObject({ condition: { open: true } });
    await expect.poll(() => fixture.call("list-restarts", args)).toContain("No error is open");
    expect(await fixture.call("close-session", args)).toContain("Closed");
  });
});
