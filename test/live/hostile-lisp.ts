// Hostile Common Lisp: endless loops and those that will not be stopped, stacks and heaps that overflow, processes that
// end, streams and channels that are closed. Each row says how its evaluation ends and what is left of the session.

import { expect } from "vitest";
import type { Row } from "./hostile.ts";

const STOPPED = { status: "timeout", step: "interrupt" } as const;
const RENEWED = { status: "timeout", step: "renew" } as const;
const GONE = { status: "lost", step: "restart" } as const;
const DEFINED = { notice: expect.stringContaining("defined were: *earlier*") as string };

const failed = (type: string): Pick<Row, "status" | "shows"> => ({ status: "error", shows: { condition: { type } } });
const answered = (...values: string[]): Pick<Row, "status" | "shows"> => ({ status: "ok", shows: { values } });
const ended = (how: string): Pick<Row, "status" | "step" | "shows"> => ({
  ...GONE,
  shows: { notice: expect.stringContaining(`(${how}); defined were: *earlier*`) as string },
});
/** It needs no time limit, and has one that no machine reaches. */
const SLOW = 10;

const posix = (call: string): string => `(eval (read-from-string "(sb-posix:${call})"))`;
const STACK = "(defun deeper (x) (1+ (deeper x)))";
const HOARD = "(let ((all nil)) (loop (push (make-array 100) all)))";

export const LISP_ROWS: readonly Row[] = [
  { name: "an endless loop", code: "(loop)", ...STOPPED },
  {
    name: "a compiled loop without safety",
    code: "(funcall (compile nil '(lambda () (declare (optimize (speed 3) (safety 0))) (loop))))",
    ...STOPPED,
  },
  { name: "a long sleep", code: "(sleep 100)", ...STOPPED },
  { name: "a number that is too large", code: "(integer-length (expt 7 (expt 7 10)))", ...STOPPED },
  { name: "a loop that ignores errors", code: "(loop (ignore-errors (loop)))", ...STOPPED },
  { name: "a loop that handles everything", code: "(loop (handler-case (loop) (t () nil)))", ...STOPPED },
  {
    name: "a foreign call that blocks",
    code: '(sb-alien:alien-funcall (sb-alien:extern-alien "sleep" (function sb-alien:unsigned sb-alien:unsigned)) 50)',
    ...STOPPED,
  },
  { name: "a program that is waited for", code: '(sb-ext:run-program "/bin/sleep" (list "100"))', ...STOPPED },
  {
    name: "a mutex that nobody gives back",
    code: `(let ((mutex (sb-thread:make-mutex)) (taken (sb-thread:make-semaphore)))
      (sb-thread:make-thread
        (lambda () (sb-thread:with-mutex (mutex) (sb-thread:signal-semaphore taken) (sleep 100))))
      (sb-thread:wait-on-semaphore taken)
      (sb-thread:grab-mutex mutex))`,
    ...STOPPED,
  },
  {
    name: "two threads that wait for each other",
    code: `(let* ((a (sb-thread:make-mutex)) (b (sb-thread:make-mutex))
           (mine (sb-thread:make-semaphore)) (theirs (sb-thread:make-semaphore))
           (other (sb-thread:make-thread (lambda ()
             (sb-thread:with-mutex (a)
               (sb-thread:signal-semaphore theirs) (sb-thread:wait-on-semaphore mine)
               (sb-thread:with-mutex (b) :other))))))
      (list (handler-case
              (sb-thread:with-mutex (b)
                (sb-thread:signal-semaphore mine) (sb-thread:wait-on-semaphore theirs)
                (sb-thread:with-mutex (a) :one))
              (sb-thread:thread-deadlock () :deadlock))
            (sb-thread:join-thread other :default :aborted)))`,
    timeout: SLOW,
    status: "ok",
    // Which of the two finds out is a matter of chance.
    shows: { values: [expect.stringMatching(/^\((:ONE :ABORTED|:DEADLOCK :OTHER|:DEADLOCK :ABORTED)\)$/)] },
  },
  { name: "a loop in its own clean-up", code: "(unwind-protect (loop) (loop))", ...RENEWED },
  { name: "a loop that catches tags", code: "(loop (catch :interrupt (catch nil (catch t (loop)))))", ...STOPPED },
  { name: "a loop that lets nothing in", code: "(sb-sys:without-interrupts (loop))", ...RENEWED, last: true },
  { name: "a sleep that lets nothing in", code: "(sb-sys:without-interrupts (sleep 4))", ...RENEWED, last: true },
  {
    name: "a collection that cannot begin",
    first: "(sb-sys:without-gcing (loop))",
    code: "(gc)",
    status: "timeout",
    step: "restart",
    shows: DEFINED,
  },
  { name: "a line that is read", code: "(read-line)", ...failed("END-OF-FILE") },
  { name: "a question", code: "(y-or-n-p)", ...failed("END-OF-FILE") },
  { name: "an endless recursion", code: `${STACK} (deeper 1)`, timeout: SLOW, ...failed("CONTROL-STACK-EXHAUSTED") },
  {
    name: "four of them, three handled",
    code: `(list* (handler-case (deeper 1) (storage-condition () :one))
      (handler-case (deeper 1) (storage-condition () :two))
      (handler-case (deeper 1) (serious-condition () :three)) (deeper 1))`,
    timeout: SLOW,
    ...failed("CONTROL-STACK-EXHAUSTED"),
  },
  {
    name: "a recursion while one is handled",
    code: "(handler-bind ((storage-condition (lambda (c) (declare (ignore c)) (deeper 2)))) (deeper 1))",
    timeout: SLOW,
    // With luck its memory is only damaged, and without it is gone at once; it is never kept.
    status: expect.stringMatching(/^(error|lost)$/) as "lost",
    step: "restart",
  },
  {
    name: "a recursion of bindings",
    code: "(defvar *deep* 0) (defun bind () (let ((*deep* 1)) (1+ (bind)))) (bind)",
    timeout: SLOW,
    ...failed("BINDING-STACK-EXHAUSTED"),
  },
  {
    name: "errors in the handler of errors",
    code: '(handler-bind ((error (lambda (c) (declare (ignore c)) (error "again")))) (error "first"))',
    ...failed("SIMPLE-ERROR"),
  },
  {
    name: "an error that cannot be printed",
    code: `(define-condition mute (error) () (:report (lambda (c s) (declare (ignore c s)) (error "in the report"))))
      (error 'mute)`,
    ...failed("MUTE"),
  },
  { name: "an array that is too large", code: "(make-array (expt 10 9))", ...failed("HEAP-EXHAUSTED-ERROR") },
  {
    name: "a string that doubles",
    code: `(let ((text "ab")) (loop (setf text (concatenate 'string text text))))`,
    timeout: SLOW,
    ...failed("HEAP-EXHAUSTED-ERROR"),
  },
  { name: "a list without end", code: HOARD, timeout: SLOW, ...failed("HEAP-EXHAUSTED-ERROR") },
  { name: "the same once more", code: HOARD, timeout: SLOW, ...failed("HEAP-EXHAUSTED-ERROR") },
  {
    name: "a table without end",
    code: "(let ((all (make-hash-table))) (loop for i from 0 do (setf (gethash i all) (make-string 20))))",
    timeout: SLOW,
    ...failed("HEAP-EXHAUSTED-ERROR"),
  },
  {
    name: "output without end",
    code: "(loop (print 1))",
    ...STOPPED,
    shows: { truncated: { stdout: expect.any(Number) as number } },
  },
  {
    name: "a circular value",
    code: "(let ((ring (list 1))) (setf (cdr ring) ring))",
    ...answered("#1=(1 . #1#)"),
  },
  {
    name: "a circular value that is printed as if it were none",
    code: `(let ((ring (list 1)) (*print-circle* nil) (*print-length* nil) (*print-level* nil))
      (setf (cdr ring) ring) (print ring))`,
    ...STOPPED,
  },
  { name: "an exit", code: "(sb-ext:exit)", ...ended("exit code 0") },
  { name: "an exit with a code", code: "(sb-ext:exit :code 3)", ...ended("exit code 3") },
  { name: "an exit that unwinds nothing", code: "(sb-ext:exit :code 4 :abort t)", ...ended("exit code 4") },
  {
    name: "an exit from another thread",
    code: "(sb-thread:make-thread (lambda () (sb-ext:exit :code 5 :abort t))) (sleep 100)",
    timeout: SLOW,
    ...ended("exit code 5"),
  },
  {
    name: "an exit beside busy threads",
    code: "(dotimes (i 2) (sb-thread:make-thread (lambda () (loop)))) (sb-ext:exit :code 6)",
    timeout: SLOW,
    ...ended("exit code 6"),
  },
  {
    name: "a write to no address",
    code: "(setf (sb-sys:sap-ref-word (sb-sys:int-sap 0) 0) 1)",
    ...failed("MEMORY-FAULT-ERROR"),
    step: "restart",
  },
  {
    name: "writes all over the heap",
    code: `(loop for at from #x1000000000 by 64 repeat 300000
      do (setf (sb-sys:sap-ref-word (sb-sys:int-sap at) 0) #xdeadbeef)) (gc :full t)`,
    timeout: SLOW,
    ...GONE,
    shows: DEFINED,
  },
  {
    name: "what goes past Lisp to stdout",
    code: '(write-line "raw" sb-sys:*stdout*) (finish-output sb-sys:*stdout*) 1',
    status: "ok",
    shows: { stdout: "raw\n", values: ["1"] },
  },
  {
    name: "what a program writes to stdout",
    code: '(sb-ext:run-program "/bin/echo" (list "child") :output t) 1',
    timeout: SLOW,
    status: "ok",
    shows: { stdout: "child\n", values: ["1"] },
  },
  {
    name: "a program that writes to the channel",
    code: '(plusp (sb-ext:process-exit-code (sb-ext:run-program "/bin/sh" (list "-c" "echo bad >&3"))))',
    timeout: SLOW,
    ...answered("T"),
  },
  { name: "a channel that is closed", code: posix("close 3"), ...GONE, shows: DEFINED },
  {
    name: "a channel that is closed before a loop",
    code: `${posix("close 3")} (loop)`,
    // It is found out at once, or when something is asked of it.
    status: expect.stringMatching(/^(timeout|lost)$/) as "lost",
    step: "restart",
    shows: DEFINED,
  },
  {
    name: "a thread that fails",
    code: '(sb-thread:join-thread (sb-thread:make-thread (lambda () (error "beside"))) :default :aborted)',
    timeout: SLOW,
    status: "ok",
    shows: { values: [":ABORTED", ":ABORT"], stderr: expect.stringContaining("beside") as string },
  },
  { name: "CAR defined anew", code: "(defun cl:car (x) x)", ...failed("SYMBOL-PACKAGE-LOCKED-ERROR") },
  { name: "a fork", code: posix("fork"), ...failed("SIMPLE-ERROR") },
  {
    name: "SIGINT",
    code: `${posix("kill (sb-posix:getpid) sb-posix:sigint")} (sleep 0.1) :alive`,
    ...answered(":ALIVE"),
  },
  {
    name: "SIGPIPE",
    code: `${posix("kill (sb-posix:getpid) sb-posix:sigpipe")} (sleep 0.1) :alive`,
    ...answered(":ALIVE"),
  },
  {
    name: "SIGTERM",
    code: `${posix("kill (sb-posix:getpid) sb-posix:sigterm")} (sleep 100)`,
    timeout: SLOW,
    ...GONE,
    shows: DEFINED,
  },
  {
    name: "a time limit of its own",
    code: "(handler-case (sb-ext:with-timeout 0.05 (loop)) (sb-ext:timeout () :timed-out))",
    timeout: SLOW,
    ...answered(":TIMED-OUT"),
  },
  { name: "a break", code: "(break)", status: "error" },
  {
    name: "a loop after all other threads were ended",
    code: `(mapc #'sb-thread:terminate-thread
      (remove sb-thread:*current-thread* (sb-thread:list-all-threads))) (loop)`,
    status: expect.stringMatching(/^(timeout|lost)$/) as "lost",
    step: "restart",
  },
];
