;;;; Evaluation of a piece of code: its forms are read one by one, each when those before it have run, so that a package
;;;; made by one is there for the next. The package stays from one evaluation to the next. Values are printed here too,
;;;; while the guard still stands, for printing runs the user's code.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defshared *session-package* nil "Where the last evaluation ended.")
(defshared *definitions* nil "What was defined, newest first: lists of type, name and the name's own object.")
(defshared *last-failure* nil "For the tools that tell of it afterwards.")

(defun session-package ()
  "The package of the session: CL-USER when the one it was in is gone."
  (let ((package *session-package*))
    (if (and package (package-name package)) package (find-package "COMMON-LISP-USER"))))

(defun named-package (name)
  "The package of that name or its upper case, or nil. No name: that of the session."
  (cond ((null name) (session-package))
        ((zerop (length name)) (session-package))
        (t (or (find-package (string-upcase name)) (find-package name)))))

(defun no-package (name) (format nil "Package ~A not found" name))

(defun definition-of (form)
  "Type and name of what a top-level form defines, or nil."
  (when (and (consp form) (symbolp (car form)) (consp (cdr form)))
    (let ((type (case (car form)
                  ((defun defgeneric) "function")
                  (defmacro "macro")
                  ((defvar defparameter defconstant) "variable")
                  (defclass "class")
                  (defstruct "struct")
                  (defmethod "method")))
          (name (cadr form)))
      (when type
        (when (and (eq (car form) 'defstruct) (consp name)) (setf name (car name)))
        (list type
              (string-downcase (if (symbolp name)
                                   (symbol-name name)
                                   (let ((*print-pretty* nil)) (princ-to-string name))))
              name)))))

(defun note-definition (form)
  (let ((definition (definition-of form)))
    (when definition
      (push definition *definitions*)
      (when *job* (push definition (job-defined *job*))))))

(defun next-form (stream spot end)
  "The next form of STREAM, or END; SPOT is kept up."
  (setf (spot-start spot) (file-position stream) (spot-end spot) nil (spot-form spot) nil)
  (incf (spot-number spot))
  (let ((form (let ((*read-eval* nil) (*code-stream* stream)) (read stream nil end))))
    (setf (spot-form spot) form (spot-end spot) (file-position stream))
    form))

(defmacro do-forms ((form code) &body body)
  "BODY for each form of CODE, each read in the package that those before it left."
  (let ((stream (gensym)) (end (gensym)) (text (gensym)))
    `(let* ((,text ,code) (,stream (make-string-input-stream ,text)) (,end ',end) (*spot* (make-spot ,text)))
       (loop
         (let ((,form (next-form ,stream *spot* ,end)))
           (when (eq ,form ,end) (return))
           ,@body)))))

(defun evaluate-code (code)
  "Evaluates all forms of CODE; the values of the last as a list."
  (let ((values '()))
    (do-forms (form code)
      (setf - form)
      (setf values (multiple-value-list (eval form)))
      (note-definition form)
      (shiftf +++ ++ + form))
    (shiftf *** ** * (first values))
    (shiftf /// // / values)
    values))

(defmacro with-print-limits ((job) &body body)
  (let ((it (gensym)))
    `(let* ((,it ,job)
            (*print-length* (if ,it (argument ,it :print-length 100) 100))
            (*print-level* (if ,it (argument ,it :print-level 10) 10))
            (*print-circle* t) (*print-pretty* t) (*print-readably* nil))
       ,@body)))

(defun max-output (job) (if job (argument job :max-output 100000) 100000))

(defun value-text (value &optional (cap (max-output *job*)))
  "VALUE as PRIN1 prints it, cut after CAP characters. The limits are the caller's."
  (typecase value
    ((or fixnum character) (prin1-to-string value))
    (t (multiple-value-bind (text cut) (print-bounded cap (lambda (stream) (prin1 value stream)))
         (if cut (format nil "~A... [cut at ~:D characters]" text cap) text)))))

(defun value-texts (values)
  (with-print-limits (*job*)
    (let ((cap (max-output *job*)))
      (loop for value in values
            for text = (value-text value (max cap 0))
            do (decf cap (length text))
            collect text))))

(defun now ()
  "Microseconds. GET-INTERNAL-REAL-TIME counts in steps of some milliseconds."
  (multiple-value-bind (seconds microseconds) (sb-ext:get-time-of-day) (+ (* seconds 1000000) microseconds)))

(defun milliseconds (from to)
  ;; The clock may have been set back.
  (/ (max 0 (- to from)) 1000))

(defun clock ()
  "Real, run and collection time in microseconds, and octets allocated."
  (list (now) (get-internal-run-time) sb-ext:*gc-run-time* (sb-ext:get-bytes-consed)))

(defun timing (before after)
  (destructuring-bind ((real run gc bytes) (real2 run2 gc2 bytes2)) (list before after)
    (list :object "realMs" (milliseconds real real2) "runMs" (milliseconds run run2)
                  "gcMs" (milliseconds gc gc2) "bytes" (- bytes2 bytes))))
