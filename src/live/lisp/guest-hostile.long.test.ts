// Code that does not end, fills the stack or the heap, or attacks the guest itself: a step stops it and definitions are
// kept, or the guest reports that it is damaged, or it exits.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startLispGuest, type LispReply, type LispGuest } from "../../../test/support/live/lisp-guest.ts";
import { hasSbcl } from "../../../test/support/setup/sbcl.ts";
import { lispRuntime } from "./index.ts";
import { IS_LONG, sampleOf } from "../../../test/support/thoroughness.ts";

const STEP_MS = 400;
const LATE = Symbol("late");

function orLate(answer: Promise<LispReply>, ms: number): Promise<LispReply | typeof LATE> {
  return Promise.race([answer, new Promise<typeof LATE>((resolve) => setTimeout(resolve, ms, LATE))]);
}

describe.skipIf(!hasSbcl())("a Lisp guest with hostile code (needs SBCL)", () => {
  const runtime = lispRuntime();
  let lisp: LispGuest;

  beforeAll(async () => {
    // With a saved core, each guest starts fast.
    await (await startLispGuest({}, runtime)).guest.close(0);
    expect(await runtime.saved()).toBeUndefined();
  });
  afterAll(async () => runtime.close?.());
  beforeEach(async () => {
    lisp = await startLispGuest({}, runtime);
    await lisp.evaluate("(defvar *kept* 42)");
  });
  afterEach(async () => lisp.guest.close(0));

  const isKept = async (): Promise<boolean> => (await lisp.evaluate("*kept*")).values[0] === "42";

  /** Starts the code, waits until it has printed something, and interrupts it. */
  async function interrupted(code: string): Promise<{ id: number; answer: Promise<LispReply> }> {
    let hasBegun: (() => void) | undefined;
    const begun = new Promise<void>((resolve) => (hasBegun = resolve));
    // Code that prints "go" itself is not interrupted before that.
    const announcing = code.includes('(princ "go")') ? code : `(princ "go") ${code}`;
    const { id, reply } = lisp.guest.request("eval", { code: announcing, outputChars: 1000 }, () => hasBegun?.());
    await begun;
    expect(await lisp.guest.control("interrupt", { target: id })).toEqual({ busy: true });
    return { id, answer: reply as unknown as Promise<LispReply> };
  }

  it("a Lisp guest with hostile code is interrupted in loops, sleeps, waits and system calls", async () => {
    const codes = [
      "(loop)",
      "(funcall (compile nil '(lambda (i) (declare (optimize speed (safety 0)) (bit i)) (loop (setf i (- 1 i))))) 0)",
      "(sleep 100)",
      "(expt 7 (expt 7 10))",
      "(loop (ignore-errors (loop)))",
      "(loop (handler-case (loop) (t () nil)))",
      '(sb-alien:alien-funcall (sb-alien:extern-alien "sleep" (function sb-alien:int sb-alien:int)) 50)',
      `(sb-ext:run-program "sleep" '("50") :search t)`,
      "(let ((m (sb-thread:make-mutex))) (sb-thread:make-thread (lambda () (sb-thread:grab-mutex m) (sleep 9))) (sleep 0.05) (sb-thread:grab-mutex m))",
      "(loop (print 1))",
      "(defstruct endless) (defmethod print-object ((x endless) s) (loop)) (make-endless)",
    ];
    for (const code of codes) {
      const { answer } = await interrupted(code);
      expect(await answer, code).toMatchObject({ status: "interrupted", values: [] });
      expect(await isKept(), code).toBe(true);
    }
  });

  it("a Lisp guest with hostile code reports where it was interrupted", async () => {
    const { answer } = await interrupted("(defun tired (n) (list (sleep n))) (tired 50)");
    const frames = (await answer).condition?.frames.map(({ text }) => text);
    expect(frames?.slice(0, 2)).toEqual(["(SLEEP 50)", "(TIRED 50)"]);
  });

  it("a Lisp guest with hostile code ignores an interrupt that comes too late", async () => {
    const { id, answer } = lisp.ask("eval", { code: "1" });
    await answer;
    expect(await lisp.guest.control("interrupt", { target: id })).toEqual({ busy: false });
    expect(await isKept()).toBe(true);
  });

  it("a Lisp guest with hostile code answers each request once, whenever an interrupt or a ping comes", async () => {
    const codes = ["1", "(sleep 0.0005)", "(sleep 0.001)", "(sleep 0.002)", '(error "x")', "(abort)", "(princ 1)"];
    for (let round = 0; round < 140; round += 1) {
      const { id, answer } = lisp.ask("eval", { code: codes[round % codes.length] });
      // Later in each round: before the code runs, while it runs, and after it.
      for (let turn = 0; turn < Math.floor(round / codes.length); turn += 1) await new Promise(setImmediate);
      const [interrupt, pong, { status }] = await Promise.all([
        lisp.guest.control("interrupt", { target: id }),
        lisp.guest.control("ping", {}),
        answer,
      ]);
      expect([interrupt, pong]).toEqual([{ busy: expect.any(Boolean) }, {}]);
      expect(status).toMatch(/^(ok|error|interrupted)$/);
    }
    expect(await isKept()).toBe(true);
  });

  it.each(
    sampleOf(1, [
      '(unwind-protect (progn (princ "go") (loop)) (unwind-protect (loop) (unwind-protect (loop) (loop))))',
      '(unwind-protect (progn (princ "go") (loop)) (loop))',
      '(sb-sys:without-interrupts (princ "go") (loop))',
    ]),
  )("a Lisp guest with hostile code gets a new evaluator after %s", async (code) => {
    const { id, answer } = await interrupted(code);
    expect(await orLate(answer, STEP_MS)).toBe(LATE);
    expect(await lisp.guest.control("renew", { target: id })).toEqual({});
    expect(await answer).toMatchObject({ status: "interrupted" });
    expect(await isKept()).toBe(true);
    // A collection stops the old evaluator too, if it still runs.
    expect((await lisp.evaluate("(sb-ext:gc :full t) (length (make-list 1000000))")).values).toEqual(["1000000"]);
  });

  it("a Lisp guest with hostile code survives stack overflows, repeatedly and in a handler", async () => {
    await lisp.evaluate(
      "(defun deep (n) (+ 1 (deep (1+ n)))) (defvar *b*) (defun bind (n) (let ((*b* n)) (list (bind n))))",
    );
    for (const code of ["(deep 0)", "(deep 0)", "(handler-case (deep 0) (storage-condition () (deep 1)))"]) {
      const answer = await lisp.evaluate(code);
      expect(answer.condition?.type, code).toBe("CONTROL-STACK-EXHAUSTED");
      expect(answer.condition?.frames[0]?.text).toBe("(DEEP)");
      expect(answer.stderr).toBe("");
    }
    const bound = await lisp.evaluate("(bind 0)");
    expect(bound.condition?.type).toMatch(/^(BINDING|CONTROL)-STACK-EXHAUSTED$/);
    expect(await isKept()).toBe(true);
    expect(bound.stderr + lisp.raw()).toBe("");
  });

  it.runIf(IS_LONG)(
    "a Lisp guest with hostile code survives a full heap, even if what fills it stays referenced",
    async () => {
      await lisp.guest.close(0);
      lisp = await startLispGuest({ memoryMb: 128 }, runtime);
      await lisp.evaluate("(defvar *kept* 42) (defvar *l* nil)");
      const codes = [
        "(make-array (expt 10 9))",
        '(let ((s "ab")) (loop (setf s (concatenate (quote string) s s))))',
        "(let ((l nil)) (loop (push (make-list 10) l)))",
        "(let ((h (make-hash-table))) (loop for i from 0 do (setf (gethash i h) (list i))))",
        "(loop (push (make-list 10) *l*))",
        "(loop (push (make-list 10) *l*))",
      ];
      for (const code of codes) {
        expect((await lisp.evaluate(code)).condition?.type, code).toBe("HEAP-EXHAUSTED-ERROR");
        expect(await isKept(), code).toBe(true);
      }
      // Promoted garbage does not count as live data.
      expect((await lisp.evaluate("(setf *l* nil) (dotimes (i 400) (make-list 100000)) :fine")).values).toEqual([
        ":FINE",
      ]);
    },
  );

  it("a Lisp guest with hostile code ends a thread that fills the heap, and only that", async () => {
    await lisp.guest.close(0);
    lisp = await startLispGuest({ memoryMb: 128 }, runtime);
    await lisp.evaluate("(defvar *kept* 42)");
    const code =
      "(sb-thread:join-thread (sb-thread:make-thread (lambda () (let ((l nil)) (loop (push 1 l))))) :default :ended)";
    expect((await lisp.evaluate(code)).values[0]).toBe(":ENDED");
    expect(lisp.raw()).toContain("Heap nearly exhausted");
    expect(await isKept()).toBe(true);
  });

  it("a Lisp guest with hostile code reports that it is damaged after a memory fault", async () => {
    const answer = await lisp.evaluate("(setf (sb-sys:sap-ref-64 (sb-sys:int-sap 0) 0) 1)");
    expect(answer).toMatchObject({ status: "error", damaged: true, condition: { type: "MEMORY-FAULT-ERROR" } });
  });

  it("a Lisp guest with hostile code survives a deadlock, and an error in an error handler", async () => {
    const deadlock = `(let ((a (sb-thread:make-mutex)) (b (sb-thread:make-mutex)) (gate (sb-thread:make-semaphore)))
      (sb-thread:with-mutex (b)
        (sb-thread:make-thread (lambda () (sb-thread:with-mutex (a) (sb-thread:signal-semaphore gate)
          (sb-thread:with-mutex (b) 1))))
        (sb-thread:wait-on-semaphore gate) (sleep 0.05) (sb-thread:with-mutex (a) 1)))`;
    expect((await lisp.evaluate(deadlock)).condition?.type).toBe("THREAD-DEADLOCK");
    const nested = '(handler-bind ((error (lambda (c) (declare (ignore c)) (error "again")))) (error "first"))';
    expect((await lisp.evaluate(nested)).status).toBe("error");
    expect(await isKept()).toBe(true);
  });

  it.each([
    ["(sb-ext:exit :code 3)", "exit code 3"],
    ["(sb-ext:exit :code 4 :abort t)", "exit code 4"],
    ["(sb-thread:make-thread (lambda () (sb-ext:exit :code 5))) (loop)", "exit code 5"],
    [
      `(let ((ready (sb-thread:make-semaphore)))
         (sb-thread:make-thread (lambda ()
           (sb-sys:without-interrupts (sb-thread:signal-semaphore ready) (sleep 100))))
         (sb-thread:wait-on-semaphore ready))
       (sb-ext:exit :code 6)`,
      "exit code 6",
    ],
  ])("a Lisp guest with hostile code exits with the code of %s", async (code, how) => {
    await expect(lisp.evaluate(code)).rejects.toThrow(how);
  });

  it("a Lisp guest with hostile code exits at once when its channel ends, whatever runs", async () => {
    const { answer } = await interrupted("(sb-sys:without-interrupts (loop))");
    lisp.guest.child.channel?.end();
    await expect(answer).rejects.toThrow("exit code 0");
  });
});
