;;;; The guest: the part of a Common Lisp session that runs inside SBCL. Here are its package, what all of its files
;;;; share, and the few names of SBCL that may be absent from one release or another. The files are loaded in the order
;;;; of sources.ts; none of them does anything until MAIN is called.

(defpackage "CATENARY-GUEST"
  (:use "COMMON-LISP"))

;; What a request is read in, so that reading one never touches the user's packages.
(defpackage "CATENARY-REQUEST" (:use))

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defun later (name package)
  "The symbol, or nil in a release that lacks it."
  (let ((home (find-package package))) (and home (values (find-symbol name home)))))

(defmacro defshared (name value documentation)
  "A variable of the whole process: never bound by a thread, so never looked for in one."
  `(sb-ext:define-load-time-global ,name ,value ,documentation))

(defmacro with-lock ((lock) &body body)
  "Nothing interrupts BODY, so a lock is never left behind by one who was thrown out."
  `(sb-sys:without-interrupts (sb-thread:with-mutex (,lock) ,@body)))

(deftype index () '(integer 0 #.(ash most-positive-fixnum -4)))
(deftype octets () '(simple-array (unsigned-byte 8) (*)))

(defun symbol-title (symbol)
  "The name without its package, which is how a condition's type is told."
  (if (symbolp symbol) (symbol-name symbol) (princ-to-string symbol)))

(defstruct (job (:constructor make-job (id op arguments)))
  "One request that the evaluator works at. TAG is what an interrupt throws to."
  (id 0 :type fixnum)
  (op "" :type simple-string)
  (arguments nil :type list)
  (tag nil)
  (started 0 :type integer)
  ;; When an interrupt was sent: it may have come before the job had begun.
  (cancelled nil)
  (out nil)
  (err nil)
  (warnings nil)
  (warned 0 :type fixnum)
  (defined nil)
  (noted 0 :type fixnum)
  (base-restarts nil)
  ;; Who answers sets it; the other then keeps silent.
  (answered nil))

(declaim (type (or null job) *job*))
(defvar *job* nil "What this thread works at.")

(defun argument (job name &optional default)
  (let ((found (getf (job-arguments job) name)))
    (if (null found) default found)))
