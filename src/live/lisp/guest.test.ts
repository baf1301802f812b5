// The Lisp guest on real SBCL: results of evaluations, definitions that are kept, and output.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../../test/support/waiting.ts";
import { startLispGuest, type LispGuest } from "../../../test/support/live/lisp-guest.ts";
import { hasSbcl } from "../../../test/support/setup/sbcl.ts";
import { IS_LONG } from "../../../test/support/thoroughness.ts";

describe.skipIf(!hasSbcl())("a Lisp guest (needs SBCL)", () => {
  let lisp: LispGuest;

  beforeAll(async () => {
    lisp = await startLispGuest();
  });
  afterAll(async () => lisp.close());

  it.each([
    ["(+ 1 2 3)", ["6"]],
    ["(floor 17 5)", ["3", "2"]],
    ["(values)", []],
    ["", []],
    ["; only a comment", []],
    ["(let ((x (list 1 2))) (setf (cddr x) x) x)", ["#1=(1 2 . #1#)"]],
    ['(format nil "~a" (code-char 0))', ['"\u0000"']],
    ['"naïve 𝒳 \\"q\\" \\\\"', ['"naïve 𝒳 \\"q\\" \\\\"']],
    ["(string (code-char #xD800))", ['"\ufffd"']],
    ["(signal (make-condition 'simple-error))", ["NIL"]],
  ])("a Lisp guest: %j returns %j", async (code, values) => {
    expect(await lisp.evaluate(code)).toMatchObject({ status: "ok", values, warnings: [], stdout: "", stderr: "" });
  });

  it.each([
    ["(/ 1 0)", "DIVISION-BY-ZERO", expect.stringMatching(/DIVISION-BY-ZERO[^]*\(\/ 1 0\)/)],
    ['(error "custom boom")', "SIMPLE-ERROR", "custom boom"],
    ["(car 42)", "TYPE-ERROR", expect.stringMatching(/^The value\s+42\s+is not of type\s+LIST\b/)],
    ["nope", "UNBOUND-VARIABLE", expect.stringMatching(/NOPE is unbound/)],
    ["(+ 1 2", "END-OF-FILE", expect.stringContaining("the parenthesis opened at line 1, column 0 is not closed")],
    [")", "SIMPLE-READER-ERROR", expect.stringMatching(/^unmatched close parenthesis/)],
    ["#.(+ 1 2)", "SIMPLE-READER-ERROR", expect.stringMatching(/^can't read #\. while \*READ-EVAL\* is NIL/)],
    ['(break "here ~a" 1)', "SIMPLE-CONDITION", "here 1"],
    [
      "(read-line)",
      "END-OF-FILE",
      expect.stringMatching(/^There is no more input: a session has none\. Put the value/),
    ],
    ["(read *terminal-io*)", "END-OF-FILE", expect.stringMatching(/^There is no more input/)],
    ['(y-or-n-p "Go?")', "END-OF-FILE", expect.stringMatching(/^There is no more input/)],
    ['(read-from-string "(")', "END-OF-FILE", expect.stringMatching(/^end of file on #<SB-/)],
    ["(defun cl:car (x) x)", "SYMBOL-PACKAGE-LOCKED-ERROR", expect.any(String)],
    ["(abort)", "ABORTED", "The evaluation ended its own thread."],
    ["(sb-ext:disable-debugger) (error 'program-error)", "PROGRAM-ERROR", expect.any(String)],
  ])("a Lisp guest: %j fails with %s", async (code, type, message) => {
    const answer = await lisp.evaluate(code);
    expect(answer).toMatchObject({ status: "error", values: [], condition: { type, message } });
    expect(answer).not.toHaveProperty("damaged");
  });

  it("a Lisp guest reports warnings and muffles them", async () => {
    const answer = await lisp.evaluate('(warn "careful ~a" 1) :ok');
    expect(answer).toMatchObject({
      status: "ok",
      values: [":OK"],
      warnings: [{ type: "SIMPLE-WARNING", message: "careful 1" }],
      stderr: "",
    });
    const undefinedFunction = await lisp.evaluate("(nope-fn 1)");
    expect(undefinedFunction.warnings).toEqual([
      {
        type: expect.stringMatching(/STYLE-WARNING$/) as string,
        message: expect.stringMatching(/^undefined function: .*NOPE-FN$/) as string,
      },
    ]);
    expect(undefinedFunction.condition?.type).toBe("UNDEFINED-FUNCTION");
    const many = await lisp.evaluate('(dotimes (i 150) (warn "w"))');
    expect(many.warnings).toHaveLength(101);
    expect(many.warnings.at(-1)?.message).toBe("50 more warnings were not kept.");
  });

  it("a Lisp guest shows the user's frames and restarts, and not its own", async () => {
    await lisp.evaluate('(defun inner (x) (+ 1 (error "at ~a" x))) (defun outer (x) (list (inner x)))');
    const { condition } = await lisp.evaluate('(restart-case (outer (make-list 50)) (mine () :report "use mine" 1))');
    expect(condition?.restarts).toEqual([{ name: "MINE", description: "use mine" }]);
    const texts = condition?.frames.map(({ text }) => text) ?? [];
    const list = "(NIL NIL NIL NIL NIL NIL NIL NIL NIL NIL ...)";
    expect(texts.slice(0, 2)).toEqual([`(INNER ${list})`, `(OUTER ${list})`]);
    expect(texts.join("\n")).not.toMatch(/CATENARY|SB-KERNEL|INVOKE-DEBUGGER/);
  });

  it("a Lisp guest shows the frames of tail calls, with their variables", async () => {
    await lisp.evaluate(`(defun outer (x) (let ((y (* x 2))) (inner y)))
      (defun inner (z) (let ((w (+ z 1)) (table (make-hash-table))) (+ (hash-table-count table) (/ w 0))))`);
    const { condition } = await lisp.evaluate("(outer 3)");
    const handle = expect.any(Number) as number;
    const table = { name: "TABLE", value: expect.stringMatching(/^#<HASH-TABLE /) as string, handle };
    expect(condition?.frames).toEqual([
      {
        number: 0,
        text: "(INNER 6)",
        locals: [table, { name: "W", value: "7" }, { name: "Z", value: "6" }],
      },
      {
        number: 1,
        text: "(OUTER 3)",
        locals: [
          { name: "X", value: "3" },
          { name: "Y", value: "6" },
        ],
      },
    ]);
    await lisp.evaluate('(defun long-text (text) (list (error "too long: ~d" (length text))))');
    const long = await lisp.evaluate("(long-text (make-string 500 :initial-element #\\a))");
    const value = `"${"a".repeat(199)}...`;
    expect(long.condition?.frames).toMatchObject([{ locals: [{ name: "TEXT", value, handle }] }]);
    const { condition: own } = await lisp.evaluate('(let ((k (list 1))) (error "boom ~a" k))');
    expect(own?.frames).toEqual([{ number: 0, text: "(top-level form)", locals: [{ name: "K", value: "(1)" }] }]);
  });

  it.runIf(IS_LONG)(
    "a Lisp guest compiles only the code of the session for debugging, and not if the user declaims otherwise",
    async () => {
      const folder = mkdtempSync(join(tmpdir(), "catenary-lisp-"));
      const path = join(folder, "tail.lisp");
      writeFileSync(path, "(defun loaded-down (n) (if (= n 0) :done (loaded-down (1- n))))");
      const down = (name: string): string => `(defun ${name} (n) (if (= n 0) :done (${name} (1- n))))`;
      const other = await startLispGuest({}, lisp.runtime);
      try {
        await other.ask("load-file", { path }).answer;
        expect((await other.evaluate("(loaded-down 3000000)")).values).toEqual([":DONE"]);
        expect((await other.evaluate(`(load ${JSON.stringify(path)}) (loaded-down 3000000)`)).values).toEqual([
          ":DONE",
        ]);
        expect((await other.evaluate(`${down("own")} (own 100000)`)).values).toEqual([":DONE"]);
        expect((await other.evaluate("(own 3000000)")).condition?.message).toContain("(declaim (optimize (debug 2)))");
        const declaimed = `(declaim (optimize (debug 2))) ${down("own")} (own 3000000)`;
        expect((await other.evaluate(declaimed)).values).toEqual([":DONE"]);
      } finally {
        await other.guest.close(0);
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );

  it("a Lisp guest keeps definitions and the current package, even one created in the same code", async () => {
    const first = await lisp.evaluate("(defpackage :kept (:use :cl)) (in-package :kept) (defun twice (x) (* 2 x))");
    expect(first).toMatchObject({ package: "KEPT", defined: [{ type: "function", name: "twice" }] });
    expect(await lisp.evaluate("(list *package* (twice 4))")).toMatchObject({
      values: ['(#<PACKAGE "KEPT"> 8)'],
      package: "KEPT",
    });
    expect(await lisp.evaluate('(progn (in-package :cl-user) (error "x"))')).toMatchObject({
      package: "COMMON-LISP-USER",
    });
    await expect(lisp.evaluate("1", { package: "no-such" })).rejects.toThrow("Package no-such not found");
    expect((await lisp.evaluate("(twice 5)", { package: "kept" })).values).toEqual(["10"]);
    await lisp.evaluate("(in-package :cl-user)");
  });

  it("a Lisp guest reports what each top-level form defined, up to the one that failed", async () => {
    const code = `(defvar *v* 1) (defmacro m () 1) (defstruct (st (:conc-name s-)) a) (defclass c () ())
      (defgeneric g (x)) (defmethod g ((x c)) 1) (defun (setf sq) (a b) a b) (error "stop") (defun never ())`;
    expect((await lisp.evaluate(code)).defined).toEqual([
      { type: "variable", name: "*v*" },
      { type: "macro", name: "m" },
      { type: "struct", name: "st" },
      { type: "class", name: "c" },
      { type: "function", name: "g" },
      { type: "method", name: "g" },
      { type: "function", name: "(setf sq)" },
    ]);
  });

  it("a Lisp guest reports definitions anywhere in a form, and expands nothing twice", async () => {
    const code = `(defvar *expanded* 0) (defmacro made (name) (incf *expanded*) \`(progn (defun ,name () 1)))
      (progn (defun in-progn () 1)) (let ((n 0)) (defun in-let () n)) (eval-when (:execute) (defvar *unbound*))
      (made by-macro) (define-condition late (error) (by)) (deftype small () '(mod 8)) (defsetf at (x) (v) (list x v))
      (defmethod shown ((x integer)) 1) (defmethod print-object ((x late) s) (princ 1 s)) (defun maker () (defun not-yet () 1)) (macroexpand '(defun car () 1))
      (progn (defun before () 1) (error "after ~a" *expanded*))`;
    const { condition, defined } = await lisp.evaluate(code);
    expect(condition?.message).toMatch(/^after 1\b/);
    expect(defined.map(({ name }) => name).join(" ")).toBe(
      "*expanded* made in-progn in-let *unbound* by-macro late small at shown print-object maker before",
    );
    const { text } = await lisp.ask("list-definitions").answer;
    const lines = ["variable: *unbound* (unbound)", "method: shown (INTEGER)", "condition: late (BY)", "type: small"];
    for (const line of [...lines, "setf: at"]) expect(`${String(text)}\n`).toContain(`  ${line}\n`);
    expect(text).not.toMatch(/not-yet|: car|asdf/i);
    await lisp.evaluate("(maker)");
    expect((await lisp.ask("list-definitions").answer)["text"]).toContain("  function: not-yet ()\n");
  });

  it("a Lisp guest remembers a repeated definition once", async () => {
    for (const code of ["(defun again () 1)", "(defun (setf again) (a) a)", "(defun again () 2)", "(defvar again 3)"])
      expect((await lisp.evaluate(code)).defined).toHaveLength(1);
    const code = `(remove-if-not (lambda (name) (search "AGAIN" (princ-to-string name)))
      (mapcar (function second) catenary-guest::*definitions*))`;
    expect((await lisp.evaluate(code)).values).toEqual(["(AGAIN AGAIN (SETF AGAIN))"]);
  });

  it("a Lisp guest separates the streams, even before an error", async () => {
    const answer = await lisp.evaluate('(format t "hello") (format *error-output* "err") (error "x")');
    expect(answer).toMatchObject({ status: "error", stdout: "hello", stderr: "err" });
    expect((await lisp.evaluate('(y-or-n-p "sure")')).stdout).toBe("sure (y or n) ");
  });

  it("a Lisp guest answers after output that another thread is just sending", async () => {
    const slow = `(defvar *sending* nil)
      (sb-int:encapsulate 'catenary-guest::send-message 'slow
        (lambda (send message &rest more)
          (when (and (not *sending*) (member "slow" message :test 'equal)) (setf *sending* t) (sleep 1/5))
          (apply send message more)))`;
    expect(await lisp.evaluate(slow)).toMatchObject({ status: "ok" });
    const answer = await lisp.evaluate('(princ "slow") (loop until *sending* do (sleep 1/1000)) (values)');
    await lisp.evaluate("(sb-int:unencapsulate 'catenary-guest::send-message 'slow)");
    expect(answer).toMatchObject({ values: [], stdout: "slow" });
  });

  it("a Lisp guest sends output while it runs", async () => {
    const heard: string[] = [];
    const code = '(princ "early") (sleep 60)';
    const { id, reply } = lisp.guest.request("eval", { code }, (text) => void heard.push(text));
    await eventually(() => expect(heard).toEqual(["early"]));
    expect(await lisp.guest.control("interrupt", { target: id })).toEqual({ busy: true });
    expect(await reply).toMatchObject({ status: "interrupted" });
  });

  it("a Lisp guest keeps output up to the limit and counts the rest", async () => {
    const answer = await lisp.evaluate('(dotimes (i 300) (princ "0123456789"))', { outputChars: 1000 });
    expect(answer).toMatchObject({ status: "ok", dropped: { stdout: 2000 } });
    expect(answer.stdout).toBe("0123456789".repeat(100));
  });

  it("a Lisp guest respects the print limits", async () => {
    expect((await lisp.evaluate("(loop for i below 9 collect i)", { printLength: 3 })).values).toEqual(["(0 1 2 ...)"]);
    expect((await lisp.evaluate("'(1 (2 (3)))", { printDepth: 2 })).values).toEqual(["(1 (2 #))"]);
    const [text] = (await lisp.evaluate("(make-string 5000 :initial-element #\\a)", { outputChars: 100 })).values;
    expect(text).toBe(`"${"a".repeat(99)}... [cut at 100 characters]`);
  });

  it("a Lisp guest reports the timing on request", async () => {
    expect(Object.keys((await lisp.evaluate("1")).timing)).toEqual(["realMs"]);
    const { timing } = await lisp.evaluate("(make-array 1000000 :element-type '(unsigned-byte 64)) 1", {
      captureTime: true,
    });
    expect(Object.keys(timing)).toEqual(["realMs", "runMs", "gcMs", "bytes"]);
    expect(timing.bytes).toBeGreaterThanOrEqual(8_000_000);
  });

  it("a Lisp guest shows where a running evaluation is", async () => {
    expect((await lisp.ask("get-stack").answer)["text"]).toBe("Nothing runs in this session.");
    const heard: string[] = [];
    const code = '(defun tired (n) (list (sleep n))) (princ "go") (tired 50)';
    const { id, reply } = lisp.guest.request("eval", { code }, (text) => void heard.push(text));
    await eventually(() => expect(heard).toEqual(["go"]));
    const { text } = await lisp.guest.control("get-stack", { target: id });
    expect(text).toMatch(/^eval has run for .* seconds. Its stack:\n(.*\n)?\d: \(TIRED 50\)\n {5}N = 50$/);
    await lisp.guest.control("interrupt", { target: id });
    expect(await reply).toMatchObject({ status: "interrupted" });
  });

  it("a Lisp guest gives a handle to each value that is not printed whole, and keeps the newest", async () => {
    const handles = async (code: string): Promise<unknown> => (await lisp.evaluate(code))["handles"];
    expect(
      await handles('(list 1 "#<x> ..." #\\# (quote |a ...|) (quote |#|) 1/2 #(1) (cons 1 2) (quote #1=(1 . #1#)))'),
    ).toBeUndefined();
    const [table, none, same] = (await handles(
      "(let ((table (make-hash-table))) (values table 1 (vector table) table))",
    )) as number[];
    expect([table, none, same]).toEqual([expect.any(Number), null, expect.any(Number)]);
    for (const code of ["(make-list 101)", "'(1 (2 (3 (4 (5 (6 (7 (8 (9 (10 (11)))))))))))", "#'car", "*package*"])
      expect(await handles(code), code).toEqual([expect.any(Number)]);
    const parts = await lisp.ask("inspect", { handle: same }).answer;
    expect(parts["text"]).toMatch(new RegExp(`^0: #<HASH-TABLE .*> \\[handle ${table}\\]$`, "m"));
    await lisp.evaluate("(values-list (loop repeat 200 collect (make-hash-table)))");
    const { text, isError } = await lisp.ask("inspect", { handle: table }).answer;
    expect({ text, isError }).toEqual({
      text: expect.stringContaining("the last 200 are kept") as string,
      isError: true,
    });
  });

  it.each([
    ["(let ((h (make-hash-table :test 'equal))) (setf (gethash \"a\" h) '(1 2)) h)", ['0: "a" => (1 2)']],
    ["(defclass point () ((x :initarg :x) y)) (make-instance 'point :x 1)", ["0: X = 1", "1: Y = unbound"]],
    ["(defstruct pair (left #'car) right) (make-pair)", ["1: RIGHT = NIL"]],
    ["(let ((l (list 1 #'car))) (setf (cddr l) l))", ["(circular list of 2 elements)", "0: 1"]],
    ["(list* #'car 2 3)", ["(dotted list of 2 elements)", "2: tail = 3"]],
    ["(make-array '(2 2) :initial-element #'car)", ["2: (1 0) = #<FUNCTION CAR>"]],
    ["(let ((n (list 4))) (lambda (x) (+ x (first n))))", ["1: lambda list = (X)", "2: closed over = (4)"]],
    ['(make-condition \'simple-error :format-control "x")', ['FORMAT-CONTROL = "x"']],
    ["(find-package :sb-gray)", ["nicknames = NIL", "[Parts 0 to 2 of "]],
    ["(loop for i below 120 collect i)", ["2: 2", "[Parts 0 to 2 of 120; the next ones: start 3]"]],
  ])("a Lisp guest inspects %s", async (code, lines) => {
    const [handle] = (await lisp.evaluate(code))["handles"] as number[];
    const { text } = await lisp.ask("inspect", { handle, count: 3 }).answer;
    for (const line of lines) expect(text).toContain(line);
  });

  it("a Lisp guest inspects and steps without a prompt", async () => {
    const { stdout, status } = await lisp.evaluate("(inspect '(1 2))");
    expect({ stdout, status }).toMatchObject({ status: "ok", stdout: expect.stringMatching(/^\(1 2\)\n[^]*1: 2\n/) });
    const stepped = await lisp.evaluate("(defun twice-of (x) (* 2 x)) (step (list (twice-of 3)))");
    expect(stepped).toMatchObject({
      values: ["(6)"],
      stdout: expect.stringContaining("; (TWICE-OF 3) => 6\n") as string,
    });
    expect((await lisp.evaluate("(describe 'car)")).stdout).toContain("CAR names a compiled function");
  });

  it("a Lisp guest sends output of other threads to the background, by its stream", async () => {
    const streams: string[] = [];
    const collect = lisp.guest.onRawOutput;
    lisp.guest.onRawOutput = (text, stream) => {
      streams.push(`${stream} ${text}`);
      collect(text, stream);
    };
    await lisp.evaluate(`(sb-thread:join-thread (sb-thread:make-thread
      (lambda () (princ "from a thread") (princ "its errors" *error-output*))))`);
    expect(streams.toSorted()).toEqual(["stderr its errors", "stdout from a thread"]);
    await lisp.evaluate(
      '(sb-thread:join-thread (sb-thread:make-thread (lambda () (error "alone")) :name "t") :default 1)',
    );
    await eventually(() => expect(lisp.raw()).toContain("from a thread"));
    expect(lisp.raw()).toContain("Unhandled SIMPLE-ERROR in thread t: alone\n");
  });

  it("a Lisp guest finds the text of a definition, in the session and in files", async () => {
    const folder = mkdtempSync(join(tmpdir(), "catenary-lisp-"));
    const path = join(folder, "garden.lisp");
    writeFileSync(path, "; beds\n(defgeneric water (bed))\n\n(defun plant (x)\n  (list x)) ; done\n");
    const source = async (name: string): Promise<string> =>
      String((await lisp.ask("get-source", { name }).answer)["text"]).trimEnd();
    try {
      await lisp.ask("load-file", { path }).answer;
      expect(await source("plant")).toBe(
        `;; function COMMON-LISP-USER::PLANT, ${path}:4\n(defun plant (x)\n  (list x))`,
      );
      expect(await source("water")).toContain(`${path}:2\n(defgeneric water (bed))`);
      await lisp.evaluate(
        "(defun plant (x) ; new\n  x) (defmethod water ((x list)) 1) (defmethod water ((x symbol)) 2)",
      );
      const own = ";; function COMMON-LISP-USER::PLANT, evaluated in this session\n(defun plant (x) ; new\n  x)";
      expect(await source("plant")).toBe(own);
      expect(await source("water")).toMatch(/\(\(x list\)\) 1\)[^]*\(\(x symbol\)\) 2\)[^]*\(defgeneric/);
      expect(await lisp.ask("get-source", { name: "kept" }).answer).toMatchObject({ isError: true });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it.runIf(IS_LONG)(
    "a Lisp guest compiles a file under a name that no other session uses at the same time",
    async () => {
      const folder = mkdtempSync(join(tmpdir(), "catenary-lisp-"));
      const path = join(folder, "named.lisp");
      writeFileSync(path, '(format t "~&loaded from ~a~%" (file-namestring *load-truename*))');
      const other = await startLispGuest({}, lisp.runtime);
      try {
        const loaded = [lisp, other].map((one) => one.ask("load-file", { path, compile: true }).answer);
        const names = (await Promise.all(loaded)).map(({ text }) => /^loaded from .*$/m.exec(String(text))?.[0]);
        expect(names).toEqual([expect.stringMatching(/^loaded from catenary-.*\.fasl$/), expect.any(String)]);
        expect(names[0]).not.toBe(names[1]);
      } finally {
        await other.guest.close(0);
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );

  it("a Lisp guest refuses an unknown tool and continues", async () => {
    await expect(lisp.ask("no-such-tool").answer).rejects.toThrow("no-such-tool");
    expect(await lisp.guest.control("ping", {})).toEqual({});
  });
});
