;;;; Evaluation of a piece of code: its forms are read one by one, each when those before it have run, so that a package
;;;; made by one is there for the next. The package stays from one evaluation to the next. Values are printed here too,
;;;; while the guard still stands, for printing runs the user's code.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defshared *session-package* nil "Where the last evaluation ended.")
(defshared *definitions* nil "What definers were met, newest first, each once: lists of kind and name.")
(defshared *methods-before* nil "By name of a function, the methods that it had before the session gave it one.")
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

;;; What is defined. Every definer is a macro, so a hook on expansion meets it wherever it stands: in a PROGN, in the
;;; body of a LET, in what a macro of the user's expands to. Nothing is expanded twice, and code that defines nothing
;;; does not pay for it. What was met need not have run, or may be undone since: STANDING-P is asked before it is told.

(defconstant +definitions+ 5000 "Definitions that are noted of one job.")

(defvar *noting* nil "Whether definitions are noted: true, or the one file whose definitions are.")

(defun definition-of (form)
  "Kind and name of what FORM defines, or nil."
  (let ((kind (case (car form)
                ((defun defgeneric) "function")
                (defmacro "macro")
                ((defvar defparameter defconstant define-symbol-macro sb-ext:defglobal) "variable")
                (defclass "class")
                (define-condition "condition")
                (defstruct "struct")
                (defmethod "method")
                (deftype "type")
                ((defsetf define-setf-expander) "setf")
                (define-compiler-macro "compiler-macro"))))
    (when (and kind (consp (cdr form)))
      (let ((name (cadr form)))
        (when (and (eq (car form) 'defstruct) (consp name)) (setf name (car name)))
        (when (or (symbolp name) (setf-name-p name)) (list kind name))))))

(defun setf-name-p (name)
  (and (consp name) (eq (car name) 'setf) (consp (cdr name)) (symbolp (cadr name)) (null (cddr name))))

(defun users-name-p (name)
  "Whether NAME is not of SBCL, and can be written down."
  (let ((home (symbol-package (if (consp name) (cadr name) name))))
    (and home (not (sb-ext:package-locked-p home)))))

(defun methods-of (name)
  (and (fboundp name) (typep (fdefinition name) 'generic-function)
       (sb-mop:generic-function-methods (fdefinition name))))

(defun remember (definition)
  (destructuring-bind (kind name) definition
    (cond ((find definition *definitions* :test #'equal)
           (setf *definitions* (cons definition (remove definition *definitions* :test #'equal))))
          (t (when (string= kind "method") (push (cons name (copy-list (methods-of name))) *methods-before*))
             (push definition *definitions*)))))

(defun note-definition (form)
  "A file that the user's code loads or compiles is not gone into: it may be one of a hundred."
  (flet ((here-p (file) (or (null file) (equal file *noting*))))
    (let ((definition (definition-of form)) (job *job*))
      (when (and definition job (here-p *load-truename*) (here-p *compile-file-truename*)
                 (or (users-name-p (second definition)) (string= (first definition) "method"))
                 (not (equal definition (first (job-defined job))))
                 (<= (incf (job-noted job)) +definitions+))
        (push definition (job-defined job))
        (remember definition)))))

(defun expand-noting (expander form environment)
  "What *MACROEXPAND-HOOK* is in a session."
  (when (and *noting* (consp form)) (note-definition form))
  (funcall (the function expander) form environment))

(defun users-methods (name)
  (set-difference (methods-of name) (cdr (assoc name *methods-before* :test #'equal))))

(defun variable-kind (name) (sb-int:info :variable :kind name))

(defun standing-p (kind name)
  "Whether what KIND and NAME say is there."
  (flet ((kind-p (&rest kinds) (member kind kinds :test #'string=)))
    (cond ((kind-p "function") (and (fboundp name) (not (and (symbolp name) (macro-function name)))))
          ((kind-p "method") (users-methods name))
          ((consp name) nil)
          ((kind-p "macro") (macro-function name))
          ((kind-p "variable") (or (boundp name) (member (variable-kind name) '(:special :constant :global :macro))))
          ((kind-p "type") (eq (sb-int:info :type :kind name) :defined))
          ((kind-p "setf") (sb-int:info :setf :expander name))
          ((kind-p "compiler-macro") (compiler-macro-function name))
          (t (find-class name nil)))))

(defun standing-definitions (job)
  "Kind and name of each that JOB has made, in their order."
  (when (job-defined job)
    (loop for (kind name) in (remove-duplicates (reverse (job-defined job)) :test #'equal :from-end t)
          when (standing-p kind name)
            collect (list kind (if (consp name)
                                   (format nil "(setf ~A)" (string-downcase (cadr name)))
                                   (string-downcase name))))))

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
  (let ((values '()) (*noting* t))
    (do-forms (form code)
      (setf - form)
      (setf values (multiple-value-list (eval form)))
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
