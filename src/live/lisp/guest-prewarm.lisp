;;;; Saves cores. Before the core of the guest is saved, each kind of evaluation runs once without a channel, so that SBCL
;;;; has built its method dispatch and the first evaluation of a session does not wait for it. The core of a session is
;;;; saved by a copy of its process, so that the session goes on. SBCL can fork only when it has one thread.

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

;;; The core of a session

(defconstant +save-wait+ 5 "Seconds for a thread of the guest to end.")

(defun end-thread (thread)
  (when (and thread (sb-thread:thread-alive-p thread))
    (ignore-errors (sb-thread:terminate-thread thread)))
  (when thread (sb-thread:join-thread thread :default nil :timeout +save-wait+)))

(defun finalizer-p (thread) (string= (or (sb-thread:thread-name thread) "") "finalizer"))

(defun other-threads ()
  "The names of the threads that the user's code has started and that still run."
  (loop for thread in (sb-thread:list-all-threads)
        unless (or (member thread *own-threads*) (finalizer-p thread))
          collect (or (sb-thread:thread-name thread) "(unnamed)")))

(defun save-copy (path)
  "In the copy of the process: save it, silently, and end."
  (sb-posix:close +channel+)
  (let ((nowhere (sb-posix:open "/dev/null" sb-posix:o-rdwr)))
    (dolist (fd '(0 1 2)) (sb-posix:dup2 nowhere fd)))
  (sb-ext:unlock-package "CATENARY-GUEST")
  (setf sb-ext:*exit-hooks* nil *inbox* nil)
  (sb-ext:save-lisp-and-die path :toplevel #'main :executable nil))

(defun save-problem (path)
  "Save the session in the file PATH. Returns why that failed, or nil."
  (let ((others (other-threads)) (start-finalizer (optional-symbol "FINALIZER-THREAD-START" "SB-IMPL")))
    (if others
        (format nil "The session has other threads, which no core can keep: ~{~A~^, ~}. End them first." others)
        (handler-case
            (progn
              ;; In some releases, forking fails unless this thread exists.
              (when (and start-finalizer (notany #'finalizer-p (sb-thread:list-all-threads)))
                (ignore-errors (funcall start-finalizer)))
              (let ((pid (sb-posix:fork)))
                (when (zerop pid)
                  (unwind-protect (save-copy path) (exit-now 70)))
                (multiple-value-bind (ended status) (sb-posix:waitpid pid 0)
                  (declare (ignore ended))
                  (unless (and (sb-posix:wifexited status) (zerop (sb-posix:wexitstatus status)) (probe-file path))
                    "SBCL could not save the core."))))
          (error (condition) (message-of condition))))))

(defun save-session (job)
  "Answer JOB, in the main thread. The other threads of the guest end for it, and start again after it."
  (let ((evaluator (and *evaluator* (evaluator-thread *evaluator*))))
    (when evaluator (sb-thread:join-thread evaluator :default nil :timeout +save-wait+)))
  (mapc #'end-thread (remove sb-thread:*current-thread* *own-threads*))
  (setf *own-threads* (list sb-thread:*current-thread*)
        *wanted-save* nil *evaluator* nil *active-job* nil *main-reads* nil *latest-job* nil)
  (let ((problem (save-problem (sb-ext:parse-native-namestring (argument job :path "")))))
    (start-flushing)
    (replace-evaluator nil)
    (when (claim job)
      (answer (job-id job) (list :object "text" (or problem "Saved.") "isError" (and problem :true))))))
