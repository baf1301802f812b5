;;;; What stands around the user's code: failures become values, warnings are noted, an interrupt or a full heap throws
;;;; out of it. Evaluation and the tools all run inside. What is answered, and to whom, is not decided here.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defconstant +warnings+ 100 "Warnings that are told of one evaluation.")

(defun redefinition-p (condition)
  "To define again is what a session is for."
  (let ((type (later "REDEFINITION-WARNING" "SB-KERNEL"))) (and type (typep condition type))))

(defun missing-function (condition)
  "The name in a list, where CONDITION says that a function is not defined: it may be, before the call ends."
  (when (typep condition '(and style-warning simple-condition))
    (let ((arguments (simple-condition-format-arguments condition)))
      (and (eq (first arguments) :function) (null (cddr arguments)) (rest arguments)))))

(defun note-warning (condition)
  (when (and *job* (not (redefinition-p condition)))
    (when (<= (incf (job-warned *job*)) +warnings+)
      (push (list* (symbol-title (type-of condition)) (condition-text condition) (missing-function condition))
            (job-warnings *job*))))
  (when (find-restart 'muffle-warning condition) (muffle-warning condition)))

(defun told-warnings (job)
  "Type and message of each, in order, without those that have become untrue."
  (loop for (type message . missing) in (reverse (job-warnings job))
        unless (and missing (ignore-errors (fboundp (first missing))))
          collect (list type message)))

(declaim (notinline user-boundary))
(defun user-boundary (thunk)
  "The frames above this one are the user's."
  (multiple-value-list (funcall thunk)))

(defvar *guard-tag* nil "Where the innermost guard catches a failure.")

(defun last-resort (condition hook)
  "Looking at a failure failed: the stack, most likely, has no room left. Says only what it was."
  (declare (ignore hook))
  (throw *guard-tag*
    (make-failure :type (symbol-title (type-of condition))
                  :message "It failed again while its first failure was being looked at."
                  :damaged (typep condition '(or storage-condition sb-sys:memory-fault-error)))))

(defun catch-failure (condition hook)
  "Called for whatever nobody has handled, on top of the user's frames."
  (declare (ignore hook))
  (throw *guard-tag* (let ((sb-ext:*invoke-debugger-hook* 'last-resort)) (failure-of condition))))

(defun call-guarded (thunk &key (warnings t))
  "The values of THUNK as a list, or nil and a FAILURE. An interrupt goes through, to the end of the whole job."
  (let* ((tag (list nil)) (values nil)
         (failure (catch tag
                    (let ((*guard-tag* tag) (sb-ext:*invoke-debugger-hook* 'catch-failure) (*debugger-hook* nil))
                      (if warnings
                          (handler-bind ((warning #'note-warning)) (setf values (user-boundary thunk)))
                          (setf values (user-boundary thunk))))
                    nil)))
    (values values failure)))

(defmacro guarded ((&rest options) &body body)
  `(call-guarded (lambda () ,@body) ,@options))

;;; Stopping from outside. These run in the evaluator's thread, on top of the user's frames.

(defun throw-out (job failure)
  (when (and (eq *job* job) (job-tag job)) (throw (job-tag job) failure)))

(defun interrupted-failure (frames)
  (make-failure :kind :interrupted :type "INTERRUPTED" :message "The evaluation was interrupted." :frames frames))

(defun stop-interrupted (job)
  (when (eq *job* job)
    (throw-out job (interrupted-failure (handler-case (user-frames :calm) (error () '()))))))
