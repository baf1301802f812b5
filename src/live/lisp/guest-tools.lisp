;;;; The table of tools. A tool is a function of keyword arguments that returns a string; it runs in the evaluator,
;;;; inside the same guard as an evaluation. The tools themselves are in the tools-*.lisp files.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defshared *tools* (make-hash-table :test 'equal) "Functions by tool name.")

(defmacro define-tool (name (&rest lambda-list) &body body)
  "Define the tool NAME. LAMBDA-LIST is (&key ...), with the names of the arguments. BODY returns a string, or
\(values string :error t), or (values string :data json), or with :tests and :output, or with :mime-type,
or (values nil :json json) for a whole result."
  `(setf (gethash ,name *tools*)
         (sb-int:named-lambda ,(intern (string-upcase (concatenate 'string "TOOL/" name)) "CATENARY-GUEST")
             (,@(if lambda-list lambda-list '(&key)) &allow-other-keys)
           ,@body)))

(defun captured-output (thunk &optional (cap (max-output *job*)))
  "Call THUNK; return its standard output, its error and trace output, and its values as a list."
  (let* ((out (make-instance 'gathering-stream :cap cap)) (err (make-instance 'gathering-stream :cap cap))
         (values (let ((*standard-output* out) (*error-output* err) (*trace-output* err))
                   (multiple-value-list (funcall thunk)))))
    (values (gathered out) (gathered err) values)))

(defun failure-text (failure)
  "FAILURE in the form of an evaluation: type, message and the backtrace, if any."
  (format nil "[ERROR] ~A~%~A~@[~%~%[Backtrace]~{~%~A~}~]"
          (failure-type failure) (whole-message failure)
          (frame-lines (failure-frames failure))))

;;; Libraries with tools of their own, which the host lists only while they are loaded.

(defshared *loaded* '() "The libraries that the host knows of.")

(defun loaded-json ()
  "The names of the libraries that are loaded now, or nil if the host knows them."
  (let ((now (nconc (and (find-package "TELOS") (list "telos")) (and (find-package "QL") (list "quicklisp")))))
    (unless (equal now *loaded*)
      (setf *loaded* now)
      (cons :array now))))

(defun tool-result (job)
  "The JSON result of JOB, or nil and an error message."
  (let ((tool (gethash (job-op job) *tools*)))
    (if (null tool)
        (values nil (format nil "A Lisp session has no tool ~A." (job-op job)))
        (multiple-value-bind (values failure)
            ;; Warnings are not muffled: loading and compiling count them, and tools that run code have their own guard.
            (guarded (:warnings nil)
              (let ((*package* (session-package)))
                (apply tool :allow-other-keys t (job-arguments job))))
          (if failure
              (list :object "text" (failure-text failure) "isError" :true
                            "damaged" (and (failure-damaged failure) :true) "loaded" (loaded-json))
              (destructuring-bind (text &key error data tests output mime-type json) values
                (or json
                    (list :object "text" text "isError" (and error :true) "data" data "tests" tests "output" output
                                  "mimeType" mime-type "loaded" (loaded-json)))))))))

(defvar *refuse* nil "The catch tag of a tool error.")

(defun refuse (control &rest arguments)
  "End the tool with an error message."
  (throw *refuse* (values (apply #'format nil control arguments) :error t)))

(defmacro deftool (name parameters &body body)
  "Define a tool with keyword PARAMETERS whose BODY returns the text of the result, or refuses."
  `(define-tool ,name (&key ,@parameters)
     (let ((*refuse* (list nil))) (catch *refuse* (values (progn ,@body))))))

(defmacro with-refusals (&body body)
  "Run BODY, which returns the JSON of a result. A refusal becomes the result of a tool."
  `(call-with-refusals (lambda () ,@body)))

(defun call-with-refusals (function)
  (let* ((*refuse* (list nil)) (result nil)
         (text (catch *refuse* (setf result (funcall function)) nil)))
    (if text (list :object "text" text "isError" :true) result)))
