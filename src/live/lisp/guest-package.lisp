;;;; The guest: the part of a Common Lisp session that runs inside SBCL. This file has its package and what all its
;;;; files share. The files are loaded in the order of sbcl.ts; nothing runs until MAIN is called.

(defpackage "CATENARY-GUEST"
  (:use "COMMON-LISP"))

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defun optional-symbol (name package)
  "The symbol NAME of PACKAGE, or nil in a release of SBCL that lacks it."
  (let ((home (find-package package))) (and home (values (find-symbol name home)))))

(defmacro defshared (name value documentation)
  "A global variable that no thread binds, which makes access faster."
  `(sb-ext:define-load-time-global ,name ,value ,documentation))

(defmacro with-lock ((lock) &body body)
  "Run BODY with LOCK and without interrupts, so that an interrupt never leaves the lock taken."
  `(sb-sys:without-interrupts (sb-thread:with-mutex (,lock) ,@body)))

(deftype index () '(integer 0 #.(ash most-positive-fixnum -4)))
(deftype octets () '(simple-array (unsigned-byte 8) (*)))

(defun symbol-title (symbol)
  "The name of SYMBOL without its package, as condition types are shown."
  (if (symbolp symbol) (symbol-name symbol) (princ-to-string symbol)))

(defstruct (job (:constructor make-job (id op arguments)))
  "One request for the evaluator. TAG is the catch tag for interrupts."
  (id 0 :type fixnum)
  (op "" :type simple-string)
  (arguments nil :type list)
  (tag nil)
  (started 0 :type integer)
  ;; The clocks when the evaluation began, and when it had its values.
  (before nil)
  (after nil)
  ;; The current package of the session when it began.
  (package nil)
  ;; When an interrupt was sent, possibly before the job began.
  (cancelled nil)
  (out nil)
  (err nil)
  (warnings nil)
  (warned 0 :type fixnum)
  (defined nil)
  (noted 0 :type fixnum)
  (base-restarts nil)
  ;; Set by the thread that sends the reply.
  (answered nil))

(declaim (type (or null job) *job*))
(defvar *job* nil "The job of this thread.")

(defun argument (job name &optional default)
  (let ((found (getf (job-arguments job) name)))
    (if (null found) default found)))
