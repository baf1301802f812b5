;;;; Saves a core. Before that, each kind of evaluation runs once without a channel, so that SBCL has built its method
;;;; dispatch and the first evaluation of a session does not wait for it.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defparameter *prewarm-code*
  '("(+ 1 2)" "(values)" "(list 1 \"two\" :three 4.5 #\\a 'b)" "(format t \"~a~%\" 1) (print :x *error-output*)"
    "(warn \"one\")" "(error \"two\")" "(car 1)" "(/ 1 0)" "unbound-there" "(undefined-there 1)" "(" ")" "#.1"
    "(make-condition 'simple-error :format-control \"x\")" "(find-class 'standard-object)" "(make-hash-table)"
    "(handler-case (error \"three\") (error (c) (princ-to-string c)))" "(break)" "(vector 1 2)"
    "(let ((x (list 1))) (setf (cdr x) x))" "(y-or-n-p \"?\")" "(read-line)" "(pprint '(defun f (x) (let ((y x)) y)))"
    "(funcall (lambda (x) (* x x)) 3)")
  "Code of every kind. It leaves only interned symbols, which are deleted with their package.")

(defun prewarm ()
  (setf *muted* t)
  (make-package "CATENARY-PREWARM" :use '("COMMON-LISP"))
  (set-global-streams)
  (dolist (code *prewarm-code*)
    (run-job (open-job 0 "eval" (list :code code :package "CATENARY-PREWARM" :capture-time t))))
  (run-job (open-job 0 "no such tool" '()))
  (setf *session-package* nil *definitions* nil *last-failure* nil *dirty* nil *muted* nil *last-handle* 0)
  (drop-handles)
  (clrhash *sources*)
  (setf * nil ** nil *** nil / nil // nil /// nil + nil ++ nil +++ nil - nil)
  (delete-package "CATENARY-PREWARM"))

(defun save-core (path)
  (prewarm)
  (sb-ext:save-lisp-and-die path :toplevel #'main :executable nil))
