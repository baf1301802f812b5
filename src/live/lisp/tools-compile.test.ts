// compile-form on real SBCL: correct code gives no messages, and the session is unchanged afterwards: no new names, and
// earlier definitions stay as they were. The texts are tested by the transcripts in test/contract/live/lisp-golden.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startLispGuest, type LispGuest } from "../../../test/support/live/lisp-guest.ts";
import { hasSbcl } from "../../../test/support/setup/sbcl.ts";

const NO_MESSAGES = "Compilation successful.\nNo warnings or notes.";

const CORRECT = [
  "(declaim (inline q)) (defun q (x) x) (defun qq () (q 1))",
  "(defstruct p x) (defun f (p) (setf (p-x p) (make-p :x (p-x p))))",
  "(defclass k1 () ((s :accessor s-of))) (defun u (o) (setf (s-of o) 1))",
  "(deftype t1 () 'fixnum) (defun g (x) (declare (type t1 x)) x)",
  "(defclass cc () ()) (defmethod ar ((x cc)) 1)",
  "(define-condition cd (error) ()) (defconstant +c+ 3) (defvar *v* +c+) (defmacro m (x) x) (defun w () (m *v*))",
  "(defpackage :shed (:use :cl)) (in-package :shed) (defun shed::spade () 'shed::dig)",
  '(defun half () "\ud800")',
];

describe.skipIf(!hasSbcl())("compile-form (needs SBCL)", () => {
  let lisp: LispGuest;

  beforeAll(async () => {
    lisp = await startLispGuest();
  });
  afterAll(async () => lisp.close());

  async function compiled(code: string): Promise<unknown> {
    return (await lisp.ask("compile-form", { code }).answer)["text"];
  }

  async function value(code: string): Promise<unknown> {
    return (await lisp.evaluate(code)).values[0];
  }

  it("compile-form reports nothing for correct code, and leaves no name, package or file", async () => {
    const count = `(list (length (list-all-packages)) (let ((n 0)) (do-symbols (s :cl-user n) (incf n)))
                         (directory (format nil "~Acatenary-~D-*/" (uiop:temporary-directory) (sb-unix:unix-getpid))))`;
    await value(count);
    const before = await value(count);
    for (const code of CORRECT) expect([code, await compiled(code)]).toEqual([code, NO_MESSAGES]);
    expect(await value(count)).toBe(before);
    expect(before).toMatch(/ NIL\)$/);
  });

  it("compile-form leaves existing names as they were", async () => {
    const names = "'(p p-x k1 s-of t1 cd +c+ *v* m q)";
    await value(names);
    for (const code of CORRECT) await compiled(code);
    const known = `(loop for n in ${names} thereis (or (boundp n) (fboundp n) (find-class n nil)
      (sb-int:info :type :kind n) (eq (sb-int:info :variable :kind n) :special) (sb-int:info :function :inlinep n)))`;
    expect(await value(known)).toBe("NIL");
    expect(await compiled("(defun z (o) (p-x (q o)))")).toMatch(
      /undefined function: \S+P-X\n.*undefined function: \S+Q/,
    );
  });

  it("compile-form leaves existing definitions as they were", async () => {
    await value(`(defstruct st a) (defvar *st* (make-st :a 1)) (defmacro mac (x) \`(list ,x)) (defun fun (x) (* 2 x))
                 (define-condition co (error) ((q :initarg :q :reader co-q))) (deftype ty () 'integer)`);
    await compiled("(defstruct st a b) (defun use (s) (st-b s))");
    await compiled(`(defmacro mac (x y) \`(vector ,x ,y)) (defmacro fun (z) z) (deftype ty () 'string)
                    (define-condition co (error) ((r :reader co-r)))`);
    const now =
      "(list (st-a *st*) (st-a (make-st :a 4)) (mac 1) (fun 4) (co-q (make-condition 'co :q 3)) (typep 3 'ty))";
    expect(await value(now)).toBe("(1 4 (1) 8 3 T)");
  });

  it("compile-form reports read errors with their position, and errors at compile time", async () => {
    expect(await compiled("(list 1)\n  (list (foo)")).toMatch(
      /^Read error: .* opened at line 2, column 2 is not closed/,
    );
    expect(await compiled("(list 1)\n(cl:nothing)")).toMatch(/^Read error: Symbol "NOTHING" not found[^]*Line: 2,/);
    expect(await compiled('(eval-when (:compile-toplevel) (error "not today"))')).toMatch(/FAILED[^]*not today/);
  });
});
