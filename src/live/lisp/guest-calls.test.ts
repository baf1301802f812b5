// Common Lisp code that calls tools: the values it gets and sends, errors as conditions, and what happens to calls when
// their run is stopped.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startCode, type RunningCode } from "../../../test/support/live/code-run.ts";
import { hasSbcl } from "../../../test/support/setup/sbcl.ts";
import { lispLanguage } from "./index.ts";

describe.skipIf(!hasSbcl())("Lisp code that calls tools (needs SBCL)", () => {
  let code: RunningCode;

  beforeAll(async () => {
    code = await startCode(lispLanguage(), { maxCalls: 30, maxResultBytes: 3_000_000 });
  });
  afterAll(async () => code.close());

  it("Lisp code that calls tools gets structured content as a value, text as a string, and other content in a table", async () => {
    expect(await code.text('(call-tool "notes.add" :a 1 :b 2)')).toMatch(/^=> \{"sum": 3\}/);
    expect(await code.text('(gethash "sum" (call-tool "add" :a 1 :b 2))')).toBe("=> 3\n=> T");
    expect(await code.text('(call-tool "notes.echo" :text "hi")')).toBe('=> "hi"');
    expect(await code.text('(call-tool "notes.everything")')).toMatch(
      /^=> \{"list": #\(1 -2\.5d0 1\.0d21 #\(\) \{\}\),\s+"yes": T,\s+"no": NIL,\s+"nothing": :NULL,\s+"text": "naïve 𝒳 \\"q\\" \\\\ \n"\}/,
    );
    const { content, structuredContent } = await code.run(`(let ((picture (call-tool "notes.picture")))
      (show picture)
      (show (aref (gethash "content" picture) 1))
      (show (list (aref (tool-content picture) 1)))
      (values (gethash "text" picture) (length (tool-content (call-tool "notes.add" :a 1 :b 2)))))`);
    const image = { type: "image", data: "AAAA", mimeType: "image/png" };
    expect(content).toMatchObject([
      { text: '=> "A dot"\n=> 1' },
      { type: "text", text: "A dot" },
      image,
      image,
      image,
      { text: expect.stringMatching(/^calls: notes\.picture .*, notes\.add /) as string },
    ]);
    expect(structuredContent.calls.map(({ tool }) => tool)).toEqual(["notes.picture", "notes.add"]);
    expect(await code.text('(length (call-tool "notes.large" :size 1500000))')).toBe("=> 1500000");
    expect(await code.text('(values (gethash "text" (call-tool "notes.said")))')).toBe('=> "=> 2"');
  });

  it.each([
    ["", {}],
    ["nil", {}],
    [":a 1 :b 2.5 :c 0.1d0 :d 1/4 :e 1d21", { a: 1, b: 2.5, c: 0.1, d: 0.25, e: 1e21 }],
    [":a t :b nil :c :null :d :true :e :false", { a: true, b: false, c: null, d: true, e: false }],
    [':a "x" :b #\\y :c :word :d #p"/tmp/a"', { a: "x", b: "y", c: "word", d: "/tmp/a" }],
    [
      ":max-results 1 :page-size 2 :dry-run t :other-name 3 :|asIs| 4",
      { maxResults: 1, page_size: 2, "dry-run": true, "other-name": 3, asIs: 4 },
    ],
    ['"maxResults" 1 "with space" 2', { maxResults: 1, "with space": 2 }],
    ["'(:max-results 1 :deep (:page-size 2))", { maxResults: 1, deep: { page_size: 2 } }],
    [`'(("a" . 1) ("b" . #(1 2)))`, { a: 1, b: [1, 2] }],
    [
      `:a '((:b . 1) (:c 2 3)) :d '(1 2) :e '("x" "y") :f '(("x" "y") ("z"))`,
      { a: { b: 1, c: [2, 3] }, d: [1, 2], e: ["x", "y"], f: [["x", "y"], ["z"]] },
    ],
    [
      ":rows (list (list :name 1) (list :name 2)) :page-size '((:max-results 3))",
      { rows: [{ name: 1 }, { name: 2 }], page_size: [{ maxResults: 3 }] },
    ],
    ['(let ((table (make-hash-table :test (quote equal)))) (setf (gethash "k" table) (vector)) table)', { k: [] }],
  ])("Lisp code that calls tools sends the arguments %s", async (args, sent) => {
    const { content } = await code.run(`(progn (write-string (call-tool "notes.given" ${args})) (values))`);
    expect(JSON.parse(content[0]?.text.split("\n")[0] ?? "")).toEqual(sent);
  });

  it.each([
    ['"x"', "The arguments of notes.given must be names and values, or one table: notes.given(...)"],
    [":a", "The arguments of notes.given must be names and values, or one table"],
    [":a 1 :b", "The arguments of notes.given must be names and values, or one table"],
    [":a #'car", "cannot be sent to a tool; JSON has strings"],
    [":a '(1 . 2)", "A list that is circular or ends with a dot cannot be sent to a tool."],
    [":a (let ((v (vector 1))) (setf (aref v 0) v))", "A value that is circular, or nested in more than 100 levels"],
    [":a (make-string 1100000 :initial-element #\\a)", "can have 1,000,000 octets of JSON; these have more"],
  ])("Lisp code that calls tools refuses the arguments %s", async (args, problem) => {
    const { isError, content, structuredContent } = await code.run(`(call-tool "notes.given" ${args})`);
    expect(content[0]?.text).toContain(problem);
    expect(isError).toBe(true);
    expect(structuredContent.calls).toEqual([]);
  });

  it("Lisp code that calls tools signals TOOL-ERROR with the text of the tool, and an error for a tool that does not exist", async () => {
    const handled = await code.run(`(handler-case (call-tool "notes.fail")
      (tool-error (e) (list (tool-error-tool e) (tool-error-text e) (length (tool-error-content e)) (princ-to-string e))))`);
    expect(handled.content[0]?.text).toBe('=> ("notes.fail" "It is locked" 1 "It is locked")');
    expect(handled.structuredContent.calls).toMatchObject([{ tool: "notes.fail", isError: true }]);
    const open = await code.text('(defun work (x) (list x (call-tool "notes.fail"))) (work 7)');
    expect(open).toMatch(/^\[ERROR\] TOOL-ERROR\nIt is locked[^]*0: \(WORK 7\)/);
    expect(open).not.toContain("CATENARY");
    const unknown = await code.text('(call-tool "notes.ehco" :text 1)');
    expect(unknown).toContain(
      'There is no tool notes.ehco; did you mean notes.echo? If not, find it with (search-tools "words")',
    );
  });

  it("Lisp code that calls tools lists and finds tools", async () => {
    expect(await code.text("(values (length (tools)) (first (tools)))")).toMatch(
      /^=> 9\n=> \(:PATH "notes.echo" :SIGNATURE "notes.echo\(...\)"\s+:SUMMARY "The tool echo"\)/,
    );
    expect(await code.text('(mapcar #\'second (search-tools "e" :limit 2))')).toBe('=> ("notes.echo" "notes.given")');
  });

  it("Lisp code that calls tools calls side by side from threads, and answers them in any order", async () => {
    const running = code.run(`
      (mapcar #'sb-thread:join-thread
              (loop for i below 6
                    collect (let ((i i)) (sb-thread:make-thread (lambda () (call-tool "notes.wait" :what i))))))`);
    await code.begun(6);
    code.release();
    const { content, structuredContent } = await running;
    expect(content[0]?.text.match(/waited for \d/g)).toHaveLength(6);
    expect(code.waits.most).toBe(6);
    expect(structuredContent.calls).toHaveLength(6);
  });

  it("Lisp code that calls tools keeps the state if a call is interrupted, and cancels the calls of all threads", async () => {
    const begun = code.waits.begun;
    const controller = new AbortController();
    const running = code.client.callTool(
      "run-code",
      {
        code: `(defvar *kept* 1) (defvar *other* nil) (defvar *cleaned* nil)
          (setf *other* (sb-thread:make-thread
                          (lambda () (handler-case (call-tool "notes.wait") (error (e) (princ-to-string e))))))
          (unwind-protect (call-tool "notes.wait") (setf *cleaned* t))`,
      },
      { signal: controller.signal },
    );
    running.catch(() => undefined);
    await code.begun(begun + 2);
    controller.abort();
    await expect(running).rejects.toThrow();
    expect(await code.text("(values *kept* *cleaned* (sb-thread:join-thread *other*))")).toBe(
      '=> 1\n=> T\n=> "The call was cancelled, since its run has ended."',
    );
    expect(code.waits.cancelled).toBe(2);
  });

  it("Lisp code that calls tools names the calls of threads that it did not wait for", async () => {
    const { begun } = code.waits;
    const folder = mkdtempSync(join(tmpdir(), "catenary-begun-"));
    const running = code.run(`(sb-thread:make-thread (lambda () (ignore-errors (call-tool "notes.wait"))))
      (loop while (probe-file ${JSON.stringify(folder)}) do (sleep 0.01)) 1`);
    await code.begun(begun + 1);
    rmSync(folder, { recursive: true });
    const { content } = await running;
    expect(content[0]?.text).toBe("=> 1");
    expect(content[1]?.text).toBe(
      "[Notice] The code ended while calls were still running, so they were cancelled: notes.wait. Wait for the threads that call tools, with sb-thread:join-thread.",
    );
    expect(content[2]?.text).toMatch(/notes\.wait \d+ ms 0\.0 kB failed/);
  });

  it("Lisp code that calls tools interrupts a call when the time of the run is over", async () => {
    const { content, structuredContent } = await code.run('(call-tool "notes.wait")', { timeout: 0.3 });
    expect(content[0]?.text).toContain("[TIMEOUT]");
    expect(structuredContent.state).toBe("kept");
    expect(await code.text("*kept*")).toBe("=> 1");
  });

  it("Lisp code that calls tools has an error for calls over the budget, and keeps the state", async () => {
    const { content } = await code.run(`(defvar *done* 0)
      (handler-case (loop (call-tool "notes.echo" :text 1) (incf *done*)) (error (e) (list *done* (princ-to-string e))))`);
    expect(content[0]?.text).toContain("(30");
    expect(content[0]?.text).toContain("maxCalls");
    expect(
      await code.text('(handler-case (call-tool "notes.large" :size 4000000) (error (e) (princ-to-string e)))'),
    ).toContain("maxResultBytes");
    expect(await code.text("*done*")).toBe("=> 30");
  });

  it("Lisp code that calls tools lets the user define the same names, and use packages that export them", async () => {
    const own = await startCode(lispLanguage());
    try {
      expect(
        await own.text(`(defpackage "OWN" (:use "CL") (:export "SHOW" "TOOLS")) (use-package "OWN")
          (defun show (x) (* 2 x)) (defvar tools 4)
          (define-condition tool-error (error) ((mine :initarg :mine :reader mine)))
          (list (show tools) (handler-case (error 'tool-error :mine 5) (tool-error (e) (mine e))))`),
      ).toMatch(/\n=> \(8 5\)$/);
      expect(await own.text('(handler-case (call-tool "notes.fail") (error (e) (princ-to-string e)))')).toBe(
        '=> "It is locked"',
      );
    } finally {
      await own.close();
    }
  });
});
