// Hostile Common Lisp: endless and unstoppable loops, overflowing stacks and heaps, exits, closed streams and channels.
// Each case says how its evaluation ends and whether the session keeps its state.

import { expect } from "vitest";
import type { HostileCase } from "./hostile-harness.ts";

const STOPPED = { status: "timeout", step: "interrupt" } as const;
const RENEWED = { status: "timeout", step: "renew" } as const;
const GONE = { status: "lost", step: "restart" } as const;
const DEFINED = { notice: expect.stringContaining("lost definitions: *earlier*") as string };

const failed = (type: string): Pick<HostileCase, "status" | "shows"> => ({
  status: "error",
  shows: { condition: { type } },
});
const answered = (...values: string[]): Pick<HostileCase, "status" | "shows"> => ({ status: "ok", shows: { values } });
const ended = (how: string): Pick<HostileCase, "status" | "step" | "shows"> => ({
  ...GONE,
  shows: { notice: expect.stringContaining(`(${how}); lost definitions: *earlier*`) as string },
});
/** Ends by itself, so the timeout only guards against a hang. */
const SLOW = 60;

const posix = (call: string): string => `(eval (read-from-string "(sb-posix:${call})"))`;
const STACK = "(defun deeper (x) (1+ (deeper x)))";
const HOARD = "(let ((all nil)) (loop (push (make-array 100) all)))";

export const LISP_CASES: readonly HostileCase[] = [
  { name: "an endless loop", code: "(loop)", ...STOPPED },
  {
    name: "a compiled loop without safety",
    code: "(funcall (compile nil '(lambda () (declare (optimize (speed 3) (safety 0))) (loop))))",
    ...STOPPED,
  },
  { name: "a long sleep", code: "(sleep 100)", ...STOPPED },
  { name: "a huge number", code: "(integer-length (expt 7 (expt 7 10)))", ...STOPPED },
  { name: "a loop that ignores errors", code: "(loop (ignore-errors (loop)))", ...STOPPED },
  { name: "a loop that handles everything", code: "(loop (handler-case (loop) (t () nil)))", ...STOPPED },
  {
    name: "a foreign call that blocks",
    code: '(sb-alien:alien-funcall (sb-alien:extern-alien "sleep" (function sb-alien:unsigned sb-alien:unsigned)) 50)',
    ...STOPPED,
  },
  {
    name: "a child process that is waited for",
    code: '(sb-ext:run-program "sleep" (list "100") :search t)',
    ...STOPPED,
  },
  {
    name: "a mutex that is never released",
    code: `(let ((mutex (sb-thread:make-mutex)) (taken (sb-thread:make-semaphore)))
      (sb-thread:make-thread
        (lambda () (sb-thread:with-mutex (mutex) (sb-thread:signal-semaphore taken) (sleep 100))))
      (sb-thread:wait-on-semaphore taken)
      (sb-thread:grab-mutex mutex))`,
    ...STOPPED,
  },
  {
    name: "a deadlock of two threads",
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
    // Either thread may detect the deadlock.
    shows: { values: [expect.stringMatching(/^\((:ONE :ABORTED|:DEADLOCK :OTHER|:DEADLOCK :ABORTED)\)$/)] },
  },
  { name: "a loop in a cleanup form", code: "(unwind-protect (loop) (loop))", ...RENEWED },
  { name: "a loop that catches tags", code: "(loop (catch :interrupt (catch nil (catch t (loop)))))", ...STOPPED },
  { name: "a loop without interrupts", code: "(sb-sys:without-interrupts (loop))", ...RENEWED, last: true },
  { name: "a sleep without interrupts", code: "(sb-sys:without-interrupts (sleep 4))", ...RENEWED, last: true },
  {
    name: "a garbage collection that cannot start",
    first: "(sb-sys:without-gcing (loop))",
    code: "(gc)",
    status: "timeout",
    step: "restart",
    shows: DEFINED,
  },
  { name: "reading a line", code: "(read-line)", ...failed("END-OF-FILE") },
  { name: "asking a question", code: "(y-or-n-p)", ...failed("END-OF-FILE") },
  { name: "an endless recursion", code: `${STACK} (deeper 1)`, timeout: SLOW, ...failed("CONTROL-STACK-EXHAUSTED") },
  {
    name: "four recursions, three of them handled",
    code: `(list* (handler-case (deeper 1) (storage-condition () :one))
      (handler-case (deeper 1) (storage-condition () :two))
      (handler-case (deeper 1) (serious-condition () :three)) (deeper 1))`,
    timeout: SLOW,
    ...failed("CONTROL-STACK-EXHAUSTED"),
  },
  {
    name: "a recursion in the handler of a recursion",
    code: "(handler-bind ((storage-condition (lambda (c) (declare (ignore c)) (deeper 2)))) (deeper 1))",
    timeout: SLOW,
    // The process is damaged or ends at once; its state is never kept.
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
  { name: "an array larger than the heap", code: "(make-array (expt 10 9))", ...failed("HEAP-EXHAUSTED-ERROR") },
  {
    name: "a string that doubles",
    code: `(let ((text "ab")) (loop (setf text (concatenate 'string text text))))`,
    timeout: SLOW,
    ...failed("HEAP-EXHAUSTED-ERROR"),
  },
  { name: "a growing list", code: HOARD, timeout: SLOW, ...failed("HEAP-EXHAUSTED-ERROR") },
  { name: "a growing list once more", code: HOARD, timeout: SLOW, ...failed("HEAP-EXHAUSTED-ERROR") },
  {
    name: "a growing hash table",
    code: "(let ((all (make-hash-table))) (loop for i from 0 do (setf (gethash i all) (make-string 20))))",
    timeout: SLOW,
    ...failed("HEAP-EXHAUSTED-ERROR"),
  },
  {
    name: "endless output",
    // Long lines, so that every machine reaches the output limit before the timeout.
    code: "(let ((line (make-string 1000 :initial-element #\\x))) (loop (write-line line)))",
    ...STOPPED,
    shows: { truncated: { stdout: { chars: expect.any(Number) as number } } },
  },
  {
    name: "a circular value",
    code: "(let ((ring (list 1))) (setf (cdr ring) ring))",
    ...answered("#1=(1 . #1#)"),
  },
  {
    name: "a circular value printed without *print-circle*",
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
    name: "a write to address 0",
    code: "(setf (sb-sys:sap-ref-word (sb-sys:int-sap 0) 0) 1)",
    ...failed("MEMORY-FAULT-ERROR"),
    step: "restart",
  },
  {
    name: "writes all over the heap",
    code: `(loop for at from sb-vm:dynamic-space-start by 64 repeat 300000
      do (setf (sb-sys:sap-ref-word (sb-sys:int-sap at) 0) #xdeadbeef)) (gc :full t)`,
    timeout: SLOW,
    ...GONE,
    shows: DEFINED,
  },
  {
    name: "output to SBCL's own stdout stream",
    code: '(write-line "raw" sb-sys:*stdout*) (finish-output sb-sys:*stdout*) 1',
    status: "ok",
    shows: { stdout: "raw", values: ["1"] },
  },
  {
    name: "output of a child process",
    code: '(sb-ext:run-program "echo" (list "child") :search t :output t) 1',
    timeout: SLOW,
    status: "ok",
    shows: { stdout: "child", values: ["1"] },
  },
  {
    name: "a child process that writes to the channel",
    code: '(plusp (sb-ext:process-exit-code (sb-ext:run-program "/bin/sh" (list "-c" "echo bad >&3"))))',
    timeout: SLOW,
    ...answered("T"),
  },
  { name: "a closed channel", code: posix("close 3"), ...GONE, shows: DEFINED },
  {
    name: "a closed channel before a loop",
    code: `${posix("close 3")} (loop)`,
    // The host notices at once, or with the next request.
    status: expect.stringMatching(/^(timeout|lost)$/) as "lost",
    step: "restart",
    shows: DEFINED,
  },
  {
    name: "a thread that fails",
    code: '(sb-thread:join-thread (sb-thread:make-thread (lambda () (error "beside"))) :default :aborted)',
    timeout: SLOW,
    status: "ok",
    shows: { values: [":ABORTED", ":ABORT"], text: expect.stringMatching(/^\[stderr\] .*beside/) as string },
  },
  { name: "redefining CAR", code: "(defun cl:car (x) x)", ...failed("SYMBOL-PACKAGE-LOCKED-ERROR") },
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
    name: "a timeout of its own",
    code: "(handler-case (sb-ext:with-timeout 0.05 (loop)) (sb-ext:timeout () :timed-out))",
    timeout: SLOW,
    ...answered(":TIMED-OUT"),
  },
  { name: "a break", code: "(break)", status: "error" },
  {
    name: "an open error whose cleanup form loops",
    first: '(unwind-protect (error "open") (loop))',
    code: "1",
    ...RENEWED,
  },
  {
    name: "an open error whose cleanup form fails",
    first: '(unwind-protect (error "open") (error "again"))',
    code: ":fine",
    timeout: SLOW,
    ...answered(":FINE"),
  },
  {
    name: "an open error whose cleanup form exits",
    first: '(unwind-protect (error "open") (sb-ext:exit :code 7 :abort t))',
    code: "1",
    timeout: SLOW,
    ...ended("exit code 7"),
  },
  {
    name: "an open error that holds a lock",
    first: '(defvar *lock* (sb-thread:make-mutex)) (sb-thread:with-mutex (*lock*) (error "open"))',
    code: "(sb-thread:with-mutex (*lock*) :free)",
    timeout: SLOW,
    ...answered(":FREE"),
  },
  {
    name: "an open error that holds much of the heap",
    first: '(let ((all (make-array 5000000))) (list (error "open") all))',
    code: HOARD,
    timeout: SLOW,
    ...failed("HEAP-EXHAUSTED-ERROR"),
  },
  {
    name: "an open error deep in the stack",
    first: `${STACK} (labels ((dive (n) (if (= n 0) (error "open") (1+ (dive (1- n)))))) (dive 50000))`,
    code: "(deeper 1)",
    timeout: SLOW,
    ...failed("CONTROL-STACK-EXHAUSTED"),
  },
  {
    name: "an open error while other threads fail and fill the heap",
    first: `(sb-thread:make-thread (lambda () (error "beside")))
      (sb-thread:make-thread (lambda () ${HOARD})) (error "open")`,
    code: "(sleep 0.2) :fine",
    timeout: SLOW,
    ...answered(":FINE"),
  },
  {
    name: "a loop after terminating all other threads",
    code: `(mapc #'sb-thread:terminate-thread
      (remove sb-thread:*current-thread* (sb-thread:list-all-threads))) (loop)`,
    status: expect.stringMatching(/^(timeout|lost)$/) as "lost",
    step: "restart",
  },
];
