// Errors that stay open: restarts, code in frames, what closes them, and what happens to code that misbehaves there.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../../test/support/waiting.ts";
import { startLispGuest, type LispGuest, type LispReply } from "../../../test/support/live/lisp-guest.ts";
import { hasSbcl } from "../../../test/support/setup/sbcl.ts";
import { IS_LONG } from "../../../test/support/thoroughness.ts";

const DEFINITIONS = `(defvar *log* '()) (defvar *kept* 42)
  (defun convert (amount) (let ((rate (count :rate *log*))) (restart-case (/ amount rate)
    (use-rate (r) :report "Convert with a rate." :interactive (lambda () (list (read))) (* amount r))
    (skip () :report "Leave it out." :skipped))))
  (defun total (amount) (unwind-protect (list :total (convert (* 2 amount))) (push amount *log*)))`;

describe.skipIf(!hasSbcl())("an open error in a Lisp guest (needs SBCL)", () => {
  let lisp: LispGuest;

  beforeAll(async () => {
    lisp = await startLispGuest({ memoryMb: 256 });
    await run(DEFINITIONS);
  });
  afterAll(async () => lisp.close());
  // Also closes the error of the test before.
  beforeEach(async () => void (await run("(setf *log* '())")));

  const run = (code: string): Promise<LispReply> => lisp.evaluate(code, { holdErrors: true });
  const ask = (op: string, params: Readonly<Record<string, unknown>> = {}): Promise<LispReply> =>
    lisp.ask(op, { holdErrors: true, ...params }).answer;
  const inFrame = (code: string, frame = 0): Promise<LispReply> => ask("evaluate-in-frame", { frame, code });
  const isOpen = async (): Promise<boolean> => (await ask("list-restarts"))["isError"] !== true;
  const kept = async (): Promise<readonly string[]> => (await run("(list *kept* *log*)")).values;

  /** Sends a request and interrupts it as soon as it prints. */
  async function interrupted(
    op: string,
    params: Record<string, unknown>,
  ): Promise<{ id: number; reply: Promise<unknown> }> {
    let hasBegun: (() => void) | undefined;
    const begun = new Promise<void>((resolve) => (hasBegun = resolve));
    const request = lisp.guest.request(op, { outputChars: 1000, holdErrors: true, ...params }, () => hasBegun?.());
    await begun;
    expect(await lisp.guest.control("interrupt", { target: request.id })).toEqual({ busy: true });
    return request;
  }

  it("an open error in a Lisp guest is reported with its restarts, and nothing is unwound", async () => {
    const { status, condition } = await run("(total 3)");
    expect({ status, condition }).toMatchObject({
      status: "error",
      condition: {
        type: "DIVISION-BY-ZERO",
        open: true,
        restarts: [
          { name: "USE-RATE", description: "Convert with a rate.", takesValue: true },
          { name: "SKIP", description: "Leave it out." },
        ],
      },
    });
    expect((await ask("list-restarts"))["text"]).toContain(
      "[Restarts]\n0: [USE-RATE] Convert with a rate. (takes a value)\n1: [SKIP] Leave it out.",
    );
    expect((await inFrame("*log*")).values).toEqual(["NIL"]);
    expect((await ask("describe-last-error"))["text"]).toContain("0: (CONVERT 6)\n     AMOUNT = 6");
    expect(await isOpen()).toBe(true);
  });

  it("an open error in a Lisp guest has restarts whose own functions fail", async () => {
    const { condition } = await run(`(restart-case (error "stuck")
      (good () :report "Go on." :went-on)
      (untested () :report "Untested." :test (lambda (c) (declare (ignore c)) (error "no")) :tested)
      (unreported () :report (lambda (s) (write-string "half" s) (/ 1 0)) :reported)
      (refused () :test (lambda (c) (declare (ignore c)) nil) :refused)
      (better () :report "Better." :got-better))`);
    expect(condition?.restarts).toMatchObject([
      { name: "GOOD", description: "Go on." },
      { name: "UNTESTED", description: "Untested. (its test function failed: SIMPLE-ERROR)" },
      { name: "UNREPORTED", description: "(its report function failed: DIVISION-BY-ZERO)" },
      { name: "BETTER", description: "Better." },
    ]);
    expect((await ask("list-restarts"))["text"]).toContain(
      "1: [UNTESTED] Untested. (its test function failed: SIMPLE-ERROR)\n2: [UNREPORTED] (its report function failed",
    );
    expect(await ask("take-restart", { restart: "BETTER" })).toMatchObject({ values: [":GOT-BETTER"] });
  });

  it("an open error in a Lisp guest is not kept open unless the request asks for it", async () => {
    expect((await lisp.evaluate("(total 3)")).condition).not.toHaveProperty("open");
    const { text, isError } = await ask("take-restart", { restart: "skip" });
    expect({ text, isError }).toEqual({ text: expect.stringContaining("No error is open") as string, isError: true });
    expect(await inFrame("1")).toMatchObject({ isError: true });
  });

  it.each([
    [{ restart: "use-rate", value: "(+ amount 4)" }, "(:TOTAL 60)"],
    [{ restart: "0", value: "2" }, "(:TOTAL 12)"],
    [{ restart: 1 }, "(:TOTAL :SKIPPED)"],
    [{ restart: ":skip" }, "(:TOTAL :SKIPPED)"],
  ])("an open error in a Lisp guest goes on with the restart %j", async (params, value) => {
    await run("(total 3)");
    expect(await ask("take-restart", params)).toMatchObject({ status: "ok", values: [value] });
    expect(await isOpen()).toBe(false);
    expect(await kept()).toEqual(["(42 (3))"]);
  });

  it("an open error in a Lisp guest answers the restart with the rest of the evaluation: output, values, the next error", async () => {
    const code = '(dotimes (i 2) (with-simple-restart (next "Next.") (error "no ~d" i))) (princ "rest") (values 1 2)';
    expect((await run(code)).condition?.message).toContain("no 0");
    expect(await ask("take-restart", { restart: "next" })).toMatchObject({
      status: "error",
      condition: { open: true, message: expect.stringContaining("no 1") as string },
    });
    expect(await ask("take-restart", { restart: "next" })).toMatchObject({ stdout: "rest", values: ["1", "2"] });
  });

  it("an open error in a Lisp guest takes restarts of SBCL: store a value, call another function, continue after a break", async () => {
    await run("(list later)");
    expect((await ask("take-restart", { restart: "store-value", value: "(list 1)" })).values).toEqual(["((1))"]);
    await run("(missing 3)");
    expect((await ask("take-restart", { restart: "use-value", value: "#'1+" })).values).toEqual(["4"]);
    expect((await run('(list (break "here") :end)')).condition).toMatchObject({ message: "here", open: true });
    expect((await ask("take-restart", { restart: "continue" })).values).toEqual(["(NIL :END)"]);
    await run('(restart-bind ((note (lambda () :noted))) (error "x"))');
    expect((await ask("take-restart", { restart: "note" })).values).toEqual([":NOTED"]);
    expect(await isOpen()).toBe(true);
  });

  it("an open error in a Lisp guest refuses a restart that does not exist or lacks its value, and stays open", async () => {
    await run("(total 3)");
    const unknown = await ask("take-restart", { restart: "retry" });
    expect(unknown).toMatchObject({ isError: true, text: expect.stringContaining("0: [USE-RATE]") as string });
    expect((await ask("take-restart", { restart: "use-rate" }))["text"]).toContain("takes a value");
    expect(await ask("take-restart", { restart: "use-rate", value: "(car 1)" })).toMatchObject({
      status: "error",
      condition: { type: expect.stringMatching(/TYPE-ERROR$/) as string },
    });
    expect(await isOpen()).toBe(true);
  });

  it("an open error in a Lisp guest evaluates in a frame, with its variables, which can be set", async () => {
    await run("(total 3)");
    expect((await inFrame("(list amount rate)")).values).toEqual(["(6 0)"]);
    expect((await inFrame('(princ "seen") amount', 1)).values).toEqual(["3"]);
    await inFrame("(setf amount 100)");
    const failed = await inFrame('(error "nested ~d" amount)');
    expect(failed).toMatchObject({ status: "error", condition: { message: "nested 100", frames: [], restarts: [] } });
    expect(failed.condition).not.toHaveProperty("open");
    expect((await inFrame("1", 9))["text"]).toContain("no frame 9");
    expect((await ask("take-restart", { restart: "use-rate", value: "2" })).values).toEqual(["(:TOTAL 200)"]);
  });

  it("an open error in a Lisp guest names variables as the package of the function does", async () => {
    await run('(defpackage :shop (:use :cl)) (in-package :shop) (defun price (item) (list (error "~a" item)))');
    await run("(in-package :cl-user)");
    await run("(shop::price :tea)");
    expect((await inFrame("item")).values).toEqual([":TEA"]);
  });

  it("an open error in a Lisp guest goes on if the code in a frame takes a restart itself", async () => {
    await run("(total 3)");
    expect((await inFrame("(invoke-restart 'skip)")).values).toEqual(["(:TOTAL :SKIPPED)"]);
    await run("(total 3)");
    expect(await inFrame("(abort)")).toMatchObject({ status: "error", condition: { type: "ABORTED" } });
    expect(await isOpen()).toBe(false);
    expect(await kept()).toEqual(["(42 (3 3))"]);
  });

  it("an open error in a Lisp guest does not run the handlers of the failed code for other code", async () => {
    await run('(handler-case (break "b") (error () :handled))');
    expect(await inFrame('(error "own")')).toMatchObject({ status: "error", condition: { message: "own" } });
    expect((await ask("take-restart", { restart: "continue" })).values).toEqual(["NIL"]);
  });

  it.each([
    ["the next evaluation", () => run("1")],
    ["a tool that runs code", () => ask("time-execution", { code: "1" })],
    ["close-error", () => lisp.guest.control("close-error", {})],
    ["an interrupt without a target", () => lisp.guest.control("interrupt", { target: 0 })],
  ])("an open error in a Lisp guest is closed by %s, and cleanup forms run", async (_name, close) => {
    await run("(total 3)");
    await close();
    expect(await isOpen()).toBe(false);
    expect(await kept()).toEqual(["(42 (3))"]);
  });

  it("an open error in a Lisp guest stays open while tools look things up", async () => {
    await run("(total 3)");
    for (const [op, params] of [
      ["describe-symbol", { name: "total" }],
      ["get-backtrace", {}],
      ["get-stack", {}],
      ["macroexpand-form", { form: "(when 1 2)" }],
      ["compile-form", { code: "(+ 1 2)" }],
    ] as const)
      expect(await ask(op, params), op).not.toMatchObject({ isError: true });
    expect(await isOpen()).toBe(true);
  });

  it.runIf(IS_LONG)(
    "an open error in a Lisp guest survives code in a frame that loops, overflows the stack or fills the heap",
    async () => {
      await run("(defun deep (n) (+ 1 (deep (1+ n))))");
      await run("(total 3)");
      const { reply } = await interrupted("evaluate-in-frame", { code: '(princ "go") (loop)' });
      expect(await reply).toMatchObject({ status: "interrupted" });
      expect((await inFrame("(deep 0)")).condition?.type).toBe("CONTROL-STACK-EXHAUSTED");
      expect((await inFrame("(let ((l nil)) (loop (push (make-list 10) l)))")).condition?.type).toBe(
        "HEAP-EXHAUSTED-ERROR",
      );
      expect(
        (await inFrame('(sb-thread:join-thread (sb-thread:make-thread (lambda () (error "t"))) :default 1)')).values[0],
      ).toBe("1");
      expect((await inFrame("amount")).values).toEqual(["6"]);
      expect((await ask("take-restart", { restart: "skip" })).values).toEqual(["(:TOTAL :SKIPPED)"]);
    },
  );

  it("an open error in a Lisp guest is interrupted after a restart like any evaluation", async () => {
    await run('(progn (with-simple-restart (go-on "Go on.") (error "x")) (princ "go") (loop))');
    const { reply } = await interrupted("take-restart", { restart: "go-on" });
    expect(await reply).toMatchObject({ status: "interrupted" });
    expect(await isOpen()).toBe(false);
    expect(await kept()).toEqual(["(42 NIL)"]);
  });

  it("an open error in a Lisp guest gets a new evaluator if its cleanup forms do not end", async () => {
    await run('(unwind-protect (error "x") (princ "go") (loop))');
    const { id, reply } = lisp.guest.request("eval", { code: "*kept*", outputChars: 1000 });
    await eventually(() => expect(lisp.raw()).toContain("go"));
    await lisp.guest.control("interrupt", { target: id });
    expect(await lisp.guest.control("renew", { target: id })).toEqual({});
    expect(await reply).toMatchObject({ status: "interrupted" });
    expect(await kept()).toEqual(["(42 NIL)"]);
    expect((await run("(total 3)")).condition).toMatchObject({ open: true });
  });

  it.each([
    ["a stack overflow", "(labels ((deep (n) (+ 1 (deep (1+ n))))) (deep 0))"],
    ["code that cannot be read", "(list 1"],
    ["an error while collection is disabled", '(sb-sys:without-gcing (error "x"))'],
  ])("an open error in a Lisp guest does not stay open: %s", async (_name, code) => {
    expect((await run(code)).condition).not.toHaveProperty("open");
    expect(await isOpen()).toBe(false);
  });

  it.each([
    ["an error in a handler", '(handler-bind ((error (lambda (c) (declare (ignore c)) (error "again")))) (error "x"))'],
    ["an error in a cleanup form", '(unwind-protect (error "x") (error "again"))'],
    ["a condition given to the debugger", '(invoke-debugger (make-condition \'simple-error :format-control "x"))'],
    [
      "a report that fails",
      `(define-condition mute (error) () (:report (lambda (c s) (declare (ignore c s)) (error "y"))))
      (error 'mute)`,
    ],
    [
      "a value that cannot be printed",
      `(defclass bad () ()) (defmethod print-object ((b bad) s) (error "z")) (make-instance 'bad)`,
    ],
    ["an error without interrupts", '(sb-sys:without-interrupts (error "x"))'],
    ["an error deep in the stack", '(labels ((dive (n) (if (= n 0) (error "x") (+ 1 (dive (1- n)))))) (dive 50000))'],
  ])("an open error in a Lisp guest stays open and closes: %s", async (_name, code) => {
    expect((await run(code)).condition).toMatchObject({ open: true });
    expect((await inFrame("(+ 1 2)")).values).toEqual(["3"]);
    expect(await kept()).toEqual(["(42 NIL)"]);
    expect(await isOpen()).toBe(false);
  });
});
