;;;; What is done once, before a core is saved: each kind of answer is made one time with the wire shut, so that SBCL
;;;; has built its method dispatch and a session's first evaluation does not wait for it. And the saving itself.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defparameter *warm-up*
  '("(+ 1 2)" "(values)" "(list 1 \"two\" :three 4.5 #\\a 'b)" "(format t \"~a~%\" 1) (print :x *error-output*)"
    "(warn \"one\")" "(error \"two\")" "(car 1)" "(/ 1 0)" "unbound-there" "(undefined-there 1)" "(" ")" "#.1"
    "(make-condition 'simple-error :format-control \"x\")" "(find-class 'standard-object)" "(make-hash-table)"
    "(handler-case (error \"three\") (error (c) (princ-to-string c)))" "(break)" "(vector 1 2)"
    "(let ((x (list 1))) (setf (cdr x) x))" "(y-or-n-p \"?\")" "(read-line)" "(pprint '(defun f (x) (let ((y x)) y)))"
    "(funcall (lambda (x) (* x x)) 3)")
  "Code of every kind. It leaves nothing behind but interned symbols, which go with their package.")

(defun warm-up ()
  (setf *mute* t)
  (make-package "CATENARY-WARM" :use '("COMMON-LISP"))
  (set-global-streams)
  (dolist (code *warm-up*)
    (run-job (open-job 0 "eval" (list :code code :package "CATENARY-WARM" :capture-time t))))
  (run-job (open-job 0 "no such tool" '()))
  (setf *session-package* nil *definitions* nil *last-failure* nil *dirty* nil *mute* nil)
  (setf * nil ** nil *** nil / nil // nil /// nil + nil ++ nil +++ nil - nil)
  (delete-package "CATENARY-WARM"))

(defun save-core (path)
  (warm-up)
  (sb-ext:save-lisp-and-die path :toplevel #'main :executable nil))
