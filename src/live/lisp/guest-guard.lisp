;;;; The guard around the user's code: errors become values, warnings are recorded, an interrupt or a full heap throws
;;;; out of it. Evaluations and tools all run inside a guard.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defconstant +max-warnings+ 100 "Warnings that are reported for one evaluation.")

(defun redefinition-p (condition)
  "Whether CONDITION is about a redefinition, which is normal in a session."
  (let ((type (optional-symbol "REDEFINITION-WARNING" "SB-KERNEL"))) (and type (typep condition type))))

(defun missing-function (condition)
  "A list of the name, if CONDITION is about an undefined function: it may be defined before the call ends."
  (when (typep condition '(and style-warning simple-condition))
    (let ((arguments (simple-condition-format-arguments condition)))
      (and (eq (first arguments) :function) (null (cddr arguments)) (rest arguments)))))

(defun note-warning (condition)
  (when (and *job* (not (redefinition-p condition)))
    (when (<= (incf (job-warned *job*)) +max-warnings+)
      (push (list* (symbol-title (type-of condition)) (condition-text condition) (missing-function condition))
            (job-warnings *job*))))
  (when (find-restart 'muffle-warning condition) (muffle-warning condition)))

(defun reported-warnings (job)
  "Type and message of each warning, in order, without those about functions that are defined by now."
  (loop for (type message . missing) in (reverse (job-warnings job))
        unless (and missing (ignore-errors (fboundp (first missing))))
          collect (list type message)))

(declaim (notinline user-boundary))
(defun user-boundary (thunk)
  "Call THUNK. The frames above this one are the user's."
  (multiple-value-list (funcall thunk)))

(defvar *guard-tag* nil "The catch tag of the innermost guard.")
(defvar *hold* nil "Whether an error in it may stay open.")

(defun last-resort (condition hook)
  "Called if describing an error fails, most likely because the stack is full. Reports only the type."
  (declare (ignore hook))
  (throw *guard-tag*
    (make-failure :type (symbol-title (type-of condition))
                  :message "A second error occurred while the first was being described."
                  :damaged (typep condition '(or storage-condition sb-sys:memory-fault-error)))))

(defun catch-failure (condition hook)
  "Called for an unhandled condition, on top of the user's frames."
  (declare (ignore hook))
  (let ((failure (let ((sb-ext:*invoke-debugger-hook* 'last-resort)) (failure-of condition))))
    (when (may-hold-p condition) (hold-error failure))
    (release-frames failure)
    (throw *guard-tag* failure)))

(defun call-guarded (thunk &key (warnings t) hold)
  "The values of THUNK as a list, or nil and a FAILURE. An interrupt is not caught here and ends the whole job. HOLD: an
error may stay open, if the request allows it (guest-hold.lisp)."
  (let* ((tag (list nil)) (values nil)
         (failure (catch tag
                    (let ((*guard-tag* tag) (*hold* hold)
                          (sb-ext:*invoke-debugger-hook* 'catch-failure) (*debugger-hook* nil))
                      (if warnings
                          (handler-bind ((warning #'note-warning)) (setf values (user-boundary thunk)))
                          (setf values (user-boundary thunk))))
                    nil)))
    (values values failure)))

(defmacro guarded ((&rest options) &body body)
  `(call-guarded (lambda () ,@body) ,@options))

;;; Stopping from another thread. These functions run in the evaluator's thread, on top of the user's frames.

(defun throw-out (job failure)
  (when (and (eq *job* job) (job-tag job)) (throw (job-tag job) failure)))

(defun interrupted-failure (frames)
  (make-failure :kind :interrupted :type "INTERRUPTED" :message "The evaluation was interrupted." :frames frames))

(defun stop-interrupted (job)
  (when (eq *job* job)
    (throw-out job (interrupted-failure (handler-case (user-frames :safe) (error () '()))))))
