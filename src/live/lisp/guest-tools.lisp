;;;; The tools of a session by their names. A tool is a function of keyword arguments that returns a text; it runs in
;;;; the evaluator, inside the same guard as an evaluation. The tools themselves are in the files tools-*.lisp.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defshared *tools* (make-hash-table :test 'equal) "Functions by the names of the tools.")

(defmacro define-tool (name (&rest lambda-list) &body body)
  "NAME is the tool's own name. LAMBDA-LIST is (&key ...), named as the arguments are. BODY returns a text, or
\(values text :error t), or (values text :data json)."
  `(setf (gethash ,name *tools*)
         (sb-int:named-lambda ,(intern (string-upcase (concatenate 'string "TOOL/" name)) "CATENARY-GUEST")
             (,@(if lambda-list lambda-list '(&key)) &allow-other-keys)
           ,@body)))

(defun captured-output (thunk &optional (cap (max-output *job*)))
  "Calls THUNK; what it printed to standard output, what to error and trace output, then its values as a list."
  (let* ((out (make-instance 'gathering-stream :cap cap)) (err (make-instance 'gathering-stream :cap cap))
         (values (let ((*standard-output* out) (*error-output* err) (*trace-output* err))
                   (multiple-value-list (funcall thunk)))))
    (values (gathered out) (gathered err) values)))

(defun failure-text (failure)
  "As an evaluation tells it: type, message and, where there are frames, the backtrace."
  (format nil "[ERROR] ~A~%~A~@[~%~%[Backtrace]~{~%~A~}~]"
          (failure-type failure) (failure-message failure)
          (loop for text in (failure-frames failure) for number from 0 collect (format nil "~D: ~A" number text))))

(defun tool-result (job)
  "The JSON value that answers, or nil and why there is none."
  (let ((tool (gethash (job-op job) *tools*)))
    (if (null tool)
        (values nil (format nil "There is no tool ~A in a Lisp session." (job-op job)))
        (multiple-value-bind (values failure)
            ;; Not muffled: loading and compiling count their warnings, and the tools that run code guard it themselves.
            (guarded (:warnings nil)
              (let ((*package* (session-package)))
                (apply tool :allow-other-keys t (job-arguments job))))
          (if failure
              (list :object "text" (failure-text failure) "isError" :true
                            "damaged" (and (failure-damaged failure) :true))
              (destructuring-bind (text &key error data) values
                (list :object "text" text "isError" (and error :true) "data" data)))))))
