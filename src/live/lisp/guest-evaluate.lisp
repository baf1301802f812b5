;;;; Evaluates code: each form is read after those before it have run, so that a package created by one form exists for
;;;; the next. The current package is kept between evaluations. Code is compiled so that an error can show its frames
;;;; and variables. Values are printed here too, inside the guard, because printing can run the user's code.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defshared *session-package* nil "The package in which the last evaluation ended.")
(defshared *definitions* nil "Definitions, newest first, each once: lists of kind and name.")
(defshared *methods-before* nil "By function name, the methods that existed before the session added one.")
(defshared *last-failure* nil "The last error, for describe-last-error and get-backtrace.")

(defun session-package ()
  "The current package of the session; CL-USER if it was deleted."
  (let ((package *session-package*))
    (if (and package (package-name package)) package (find-package "COMMON-LISP-USER"))))

(defun named-package (name)
  "The package with that name, or its upper case, or nil. Without a name: that of the session."
  (cond ((null name) (session-package))
        ((zerop (length name)) (session-package))
        (t (or (find-package (string-upcase name)) (find-package name)))))

(defun keep-package (job)
  "Make the current package that of the session. The argument of JOB holds for one evaluation; IN-PACKAGE in its code
for later ones too."
  (let ((given (and (string= (job-op job) "eval") (argument job :package))))
    (unless (and given (eq *package* (named-package given))) (setf *session-package* *package*))))

(defun no-package (name) (format nil "Package ~A not found" name))

;;; Definitions. Every defining form is a macro, so *MACROEXPAND-HOOK* sees it anywhere: in a PROGN, in the body of a
;;; LET, in the expansion of a user's macro. Nothing is expanded twice, and other code does not pay for it. A form that
;;; was seen need not have run, or may be undone since, so DEFINED-P is checked before a definition is reported.

(defconstant +max-definitions+ 5000 "Definitions that are recorded for one job.")

(defvar *noting* nil "Whether definitions are recorded: T, or the file whose definitions are.")

(defun definition-of (form)
  "The kind and name of what FORM defines, or nil."
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
  "Whether NAME belongs to the user: it is interned, and not in a locked package."
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

(defconstant +max-sources+ 3000 "Definitions whose text is kept.")
(defconstant +source-chars+ 100000 "Characters of the text of one.")

(defshared *sources* (make-hash-table :test 'equal :synchronized t)
  "The text of definitions by kind and name; of methods also by qualifiers and specializers.")

(defun keep-source (form definition)
  "Keep the text of the top-level form that has FORM. What a file defines is found in the file."
  (let ((key (if (eq (car form) 'defmethod)
                 (append definition (loop for part in (cddr form)
                                          collect (with-plain-printing () (prin1-to-string part))
                                          until (listp part)))
                 definition))
        (cursor (and (null *load-truename*) (null *compile-file-truename*) *cursor*)))
    (if (and cursor (cursor-end cursor)
             (< (- (cursor-end cursor) (cursor-start cursor)) +source-chars+)
             (or (gethash key *sources*) (< (hash-table-count *sources*) +max-sources+)))
        (setf (gethash key *sources*)
              (let ((code (cursor-code cursor)))
                (string-right-trim '(#\Space #\Newline)
                                   (subseq code (form-start code (cursor-start cursor)) (cursor-end cursor)))))
        (remhash key *sources*))))

(defun note-definition (form)
  "Record what FORM defines. Files that the user's code loads or compiles are ignored, since there may be hundreds."
  (flet ((here-p (file) (or (null file) (equal file *noting*))))
    (let ((definition (definition-of form)) (job *job*))
      (when (and definition job (here-p *load-truename*) (here-p *compile-file-truename*)
                 (or (users-name-p (second definition)) (string= (first definition) "method")))
        (keep-source form definition)
        (when (and (not (equal definition (first (job-defined job))))
                   (<= (incf (job-noted job)) +max-definitions+))
          (push definition (job-defined job))
          (remember definition))))))

(defun expand-noting (expander form environment)
  "The *MACROEXPAND-HOOK* of a session."
  (when (and *noting* (consp form)) (note-definition form))
  (funcall (the function expander) form environment))

(defun users-methods (name)
  (set-difference (methods-of name) (cdr (assoc name *methods-before* :test #'equal))))

(defun variable-kind (name) (sb-int:info :variable :kind name))

(defun defined-p (kind name)
  "Whether NAME is defined as KIND."
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

(defun current-definitions (job)
  "Kind and name of each definition of JOB, in order."
  (when (job-defined job)
    (loop for (kind name) in (remove-duplicates (reverse (job-defined job)) :test #'equal :from-end t)
          when (defined-p kind name)
            collect (list kind (if (consp name)
                                   (format nil "(setf ~A)" (string-downcase (cadr name)))
                                   (string-downcase name))))))

(defun next-form (stream cursor end)
  "The next form of STREAM, or END. Updates CURSOR."
  (setf (cursor-start cursor) (file-position stream) (cursor-end cursor) nil (cursor-form cursor) nil)
  (incf (cursor-number cursor))
  (let ((form (let ((*read-eval* nil) (*code-stream* stream)) (read stream nil end))))
    (setf (cursor-form cursor) form (cursor-end cursor) (file-position stream))
    form))

(defmacro do-forms ((form code) &body body)
  "Run BODY for each form of CODE, each read in the package that the forms before it left."
  (let ((stream (gensym)) (end (gensym)) (text (gensym)))
    `(let* ((,text ,code) (,stream (make-string-input-stream ,text)) (,end ',end) (*cursor* (make-cursor ,text)))
       (loop
         (let ((,form (next-form ,stream *cursor* ,end)))
           (when (eq ,form ,end) (return))
           ,@body)))))

;;; SBCL merges tail calls at its default policy, and then an error shows none of the user's functions. DEBUG 3 keeps
;;; the frames and their variables; the instrumentation for STEP, which makes code slow, is left out. The policy is in
;;; the lexical environment of the evaluated form alone: files that it loads, and code that it compiles, keep theirs.

(defshared *debug-environment* '(nil) "The global policy, and the environment for it, or nil.")
(defshared *this-environment* nil "What THIS-ENVIRONMENT has found.")

(defmacro this-environment (&environment environment)
  (setf *this-environment* environment)
  nil)

(defun default-policy-p (policy)
  "Whether the user has declaimed nothing about speed, space or debugging, so that it is ours to choose."
  (and (= (sb-c::policy-quality policy 'debug) 1)
       (<= (sb-c::policy-quality policy 'speed) 1)
       (<= (sb-c::policy-quality policy 'space) 1)))

(defun debug-environment ()
  "The lexical environment for the user's forms; nil for the null environment."
  (let ((policy sb-c::*policy*))
    (unless (eq policy (car *debug-environment*))
      (setf *debug-environment*
            (cons policy
                  (when (default-policy-p policy)
                    (eval '(locally (declare (optimize (debug 3) (sb-c::insert-step-conditions 0)))
                            (this-environment)))
                    (shiftf *this-environment* nil)))))
    (cdr *debug-environment*)))

(defun evaluate-form (form)
  (let ((environment (debug-environment)))
    (if environment (sb-int:eval-in-lexenv form environment) (eval form))))

(defun evaluate-code (code)
  "Evaluate all forms of CODE and return the values of the last as a list."
  (let ((values '()) (*noting* t))
    (do-forms (form code)
      (setf - form)
      (setf values (multiple-value-list (evaluate-form form)))
      (shiftf +++ ++ + form))
    (shiftf *** ** * (first values))
    (shiftf /// // / values)
    values))

(defmacro with-print-limits ((job) &body body)
  (let ((it (gensym)))
    `(let* ((,it ,job)
            (*print-length* (if ,it (argument ,it :print-length 100) 100))
            (*print-level* (if ,it (argument ,it :print-depth 10) 10))
            (*print-circle* t) (*print-pretty* t) (*print-readably* nil))
       ,@body)))

(defun max-output (job) (if job (argument job :output-chars 100000) 100000))

(defun value-text (value &optional (cap (max-output *job*)))
  "VALUE as PRIN1 prints it, cut after CAP characters, and its handle or nil. The caller binds the print limits."
  (typecase value
    ((or fixnum character) (prin1-to-string value))
    (t (multiple-value-bind (text cut) (print-bounded cap (lambda (stream) (prin1 value stream)))
         (values (if cut (format nil "~A... [cut at ~:D characters]" text cap) text) (handle-for value text cut))))))

(defun value-texts (values)
  "The texts of VALUES, and a list of their handles, or nil if none has one."
  (with-print-limits (*job*)
    (let ((cap (max-output *job*)) (texts '()) (handles '()) (any nil))
      (dolist (value values)
        (multiple-value-bind (text handle) (value-text value (max cap 0))
          (decf cap (length text))
          (push text texts)
          (push (or handle :null) handles)
          (when handle (setf any t))))
      (values (nreverse texts) (and any (nreverse handles))))))

(defun now ()
  "The time in microseconds. GET-INTERNAL-REAL-TIME advances in steps of some milliseconds."
  (multiple-value-bind (seconds microseconds) (sb-ext:get-time-of-day) (+ (* seconds 1000000) microseconds)))

(defun milliseconds (from to)
  ;; The clock may have been set back.
  (/ (max 0 (- to from)) 1000))

(defun clock ()
  "Real, run and GC time in microseconds, and octets allocated."
  (list (now) (get-internal-run-time) sb-ext:*gc-run-time* (sb-ext:get-bytes-consed)))

(defun timing (before after)
  (destructuring-bind ((real run gc bytes) (real2 run2 gc2 bytes2)) (list before after)
    (list :object "realMs" (milliseconds real real2) "runMs" (milliseconds run run2)
                  "gcMs" (milliseconds gc gc2) "bytes" (- bytes2 bytes))))
