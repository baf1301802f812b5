;;;; Describes an error while its stack still exists: the condition's report, the available restarts, and the frames of
;;;; the user's code with their variables, without those of the guest around them and of the signalling above them.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defconstant +max-frames+ 20 "Frames that are reported for one error.")
(defconstant +argument-chars+ 120 "Characters of one argument in a frame.")
(defconstant +message-chars+ 10000 "Characters of a condition's report.")
(defconstant +max-walked-frames+ 400 "Frames that are examined to find those.")
(defconstant +fold+ 4 "Consecutive frames of one function that are all shown.")
(defconstant +max-locals+ 20 "Variables that are reported for one frame.")
(defconstant +local-chars+ 200 "Characters of the value of one.")
(defconstant +local-handles+ 60 "Handles that are given for the variables of one error, the innermost frames first.")

(defstruct shown
  "A frame of a failure. LOCALS are lists of name, text and handle or nil. FRAME is nil unless the error is open."
  (text "" :type string)
  (locals '() :type list)
  (frame nil))

(defstruct offer
  "A restart of a failure. TAKES-VALUE is T if it needs a value, :OPTIONAL if it can take one. ASKS: it asks for it."
  name
  (text "" :type string)
  restart
  takes-value
  asks)

(defstruct failure
  "Why an evaluation did not return normally. KIND is :ERROR, :HEAP or :INTERRUPTED."
  (kind :error :type symbol)
  (type "" :type string)
  (message "" :type string)
  ;; What to do about it, in words that name tools, or nil.
  (hint nil)
  (restarts nil :type list)
  (frames nil :type list)
  ;; Whether the evaluation still waits at the error.
  (open nil)
  (damaged nil)
  (time (get-universal-time)))

(defun whole-message (failure)
  (format nil "~A~@[~%~A~]" (failure-message failure) (failure-hint failure)))

(defun print-bounded (cap print)
  "What PRINT writes to its stream argument, and whether it was cut after CAP characters."
  (let* ((tag (list nil)) (cut nil)
         (stream (make-instance 'gathering-stream :cap cap :full (lambda () (setf cut t) (throw tag nil)))))
    (catch tag (funcall print stream))
    (values (gathered stream) cut)))

(defmacro with-plain-printing (() &body body)
  "Run BODY with printer settings that work whatever the user has set."
  `(let ((*print-readably* nil) (*print-circle* t) (*print-length* 10) (*print-level* 4) (*print-lines* nil)
         (*print-base* 10) (*print-radix* nil) (*print-case* :upcase) (*print-escape* t) (*print-array* t)
         (*print-gensym* t) (*print-right-margin* nil) (*print-miser-width* 16))
     ,@body))

(defun unprintable-p (argument)
  "Whether ARGUMENT is SBCL's marker for a value that is no longer available."
  (let ((type (optional-symbol "UNPRINTABLE-OBJECT" "SB-DEBUG"))) (and type (typep argument type))))

(defun print-argument (argument safe &optional (cap +argument-chars+))
  "The text of ARGUMENT, and whether it was cut. SAFE: call no method of the user, since it may be what was interrupted."
  (handler-case
      (if (or (eq argument :invalid-value-for-unescaped-register-storage)
              (and safe (typep argument '(or standard-object structure-object condition))
                    (not (unprintable-p argument))))
          (format nil "#<~A>" (if (keywordp argument) "unavailable" (symbol-title (type-of argument))))
          (multiple-value-bind (text cut) (print-bounded cap (lambda (stream) (prin1 argument stream)))
            (if cut (values (concatenate 'string text "...") t) text)))
    (error () "#<unprintable>")))

(defun guest-name-p (name)
  (typecase name
    (symbol (eq (symbol-package name) (load-time-value (find-package "CATENARY-GUEST"))))
    (cons (or (guest-name-p (car name)) (guest-name-p (cdr name))))))

(defun last-symbol (name)
  "The last symbol in NAME: Y for (FLET X :IN Y)."
  (if (consp name) (last-symbol (car (last name))) name))

(defun at-home-p (name packages)
  (let ((symbol (last-symbol name)))
    (and (symbolp symbol) symbol (symbol-package symbol)
         (member (package-name (symbol-package symbol)) packages :test #'string=))))

(defun signalling-name-p (name deep)
  "Whether NAME is a frame of signalling, above the frame that failed. DEEP: below the first handler."
  (or (stringp (last-symbol name))
      (and (not deep)
           (or (member (last-symbol name) '(signal error cerror warn break invoke-debugger))
               (at-home-p name '("SB-KERNEL" "SB-INT" "SB-DEBUG" "SB-THREAD" "SB-SYS" "SB-UNIX" "SB-VM" "SB-ALIEN"))))))

(defun eval-name-p (name)
  "Whether NAME is a frame of SBCL's EVAL or READ, below the user's frames."
  (or (eq name 'eval) (at-home-p name '("SB-IMPL" "SB-INT" "SB-DI")) (and *code-stream* (eq name 'read))))

(defun standard-name (name)
  "The function of COMMON-LISP that an internal TWO-ARG-* function implements, or nil."
  (when (and (at-home-p name '("SB-KERNEL")) (symbolp name) (eql (mismatch "TWO-ARG-" (symbol-name name)) 8))
    (let ((plain (find-symbol (subseq (symbol-name name) 8) "COMMON-LISP")))
      (and plain (fboundp plain) (not (macro-function plain)) plain))))

(defun frame-text (frame how)
  (multiple-value-bind (name arguments)
      (let ((call (optional-symbol "FRAME-CALL" "SB-DEBUG")))
        (if (and call (not (eq how :names)))
            (funcall call frame)
            (sb-di:debug-fun-name (sb-di:frame-debug-fun frame))))
    (format nil "(~A~{ ~A~})" (print-argument (or (standard-name name) name) nil)
            (if (listp arguments) (mapcar (lambda (each) (print-argument each (eq how :safe))) arguments) '()))))

(defun some-symbol-at-home-p (name test)
  "Whether a symbol in NAME, such as (FLET X :IN Y), has a home package whose name passes TEST."
  (typecase name
    (cons (or (some-symbol-at-home-p (car name) test) (some-symbol-at-home-p (cdr name) test)))
    (symbol (and name (symbol-package name) (funcall test (package-name (symbol-package name)))))))

(defun loader-name-p (name)
  "Whether NAME is a frame of loading or compiling, which may be between the user's frames."
  (or (and (symbolp (last-symbol name))
           (member (symbol-name (last-symbol name)) '("SIMPLE-EVAL-IN-LEXENV" "%SIMPLE-EVAL" "EVAL-TLF"
                                                      "LOAD-AS-SOURCE" "%WITH-COMPILATION-UNIT"
                                                      "CALL-WITH-LOADER-PACKAGE-NAMES")
                   :test #'string=)
           (some-symbol-at-home-p (last-symbol name) (lambda (home) (eql (mismatch "SB-" home) 3))))
      (some-symbol-at-home-p name (lambda (home)
                          (or (string= home "SB-FASL") (string= home "SB-C")
                              (eql (mismatch "ASDF/" home) 5) (eql (mismatch "UIOP/" home) 5))))))

(defun internal-name-p (name) (at-home-p name '("SB-KERNEL" "SB-INT" "SB-IMPL" "SB-VM")))

(defun without-internal (frames)
  "FRAMES, each beginning with its name, without the internal SBCL frames at the top that implement the frame below."
  (let ((plain (standard-name (first (first frames)))) (rest (member-if-not #'internal-name-p frames :key #'first)))
    (cond (plain (cons (first frames) (member plain (rest frames) :key #'first :test-not #'eq)))
          ((and rest (not (toplevel-name-p (first (first rest))))) rest)
          (t frames))))

(defun fold-frames (frames all)
  "FRAMES, with many consecutive frames of one function reduced to two and the number of the others. ALL: there are no
frames below these."
  (loop while frames
        append (let* ((name (first (first frames)))
                      (end (or (position name frames :key #'first :test-not #'equal) (length frames))))
                 (prog1 (if (> end +fold+)
                            (list (first frames)
                                  (append (second frames)
                                          (list (format nil "~D~:[ or more~; more~]" (- end 2)
                                                        (or all (nthcdr end frames))))))
                            (subseq frames 0 end))
                   (setf frames (nthcdr end frames))))))

;;; Variables. Those that macros have made have no package or one of SBCL's, and are left out.

(defun users-symbol-p (symbol)
  (let ((home (symbol-package symbol)))
    (and home (not (eq home (load-time-value (find-package "CATENARY-GUEST"))))
         (not (eql (mismatch "SB-" (package-name home)) 3)))))

(defun users-frame-p (name)
  "Whether NAME is a function of the user: not one of SBCL or of the COMMON-LISP package."
  (let ((symbol (last-symbol name)))
    (and (or (consp name) (not (at-home-p name '("COMMON-LISP"))))
         (or (not (symbolp symbol)) (null symbol) (null (symbol-package symbol)) (users-symbol-p symbol)))))

(defun frame-variables (frame)
  "The variables of FRAME that have a value now: lists of symbol and value."
  (let ((location (sb-di:frame-code-location frame)) (found '()))
    (handler-case
        (sb-di:do-debug-fun-vars (variable (sb-di:frame-debug-fun frame))
          (let ((symbol (sb-di:debug-var-symbol variable)))
            (when (and symbol (users-symbol-p symbol)
                       (eq (sb-di:debug-var-validity variable location) :valid))
              (push (list symbol (sb-di:debug-var-value variable frame)) found))))
      ;; SBCL's conditions about missing debug information are of several types.
      (condition () nil))
    (nreverse found)))

(defvar *local-handles* 0 "Handles that can still be given to variables of this error.")

(defun describe-locals (frame how)
  (loop for (symbol value) in (frame-variables frame)
        repeat +max-locals+
        collect (multiple-value-bind (text cut) (print-argument value (eq how :safe) +local-chars+)
                  (list (symbol-name symbol) text
                        (and (plusp *local-handles*)
                             (let ((handle (handle-for value text cut)))
                               (when handle (decf *local-handles*))
                               handle))))))

(defun user-frames (&optional (how :full))
  "The frames, from the error down to the user's form. HOW is :FULL, :SAFE or :NAMES."
  (with-plain-printing ()
    (let ((*print-pretty* nil) (*local-handles* (if (eq how :full) +local-handles+ 0))
          (leading t) (deep nil) (frames '()) (ended nil) (frame (sb-di:top-frame)))
      (loop repeat +max-walked-frames+
            while frame
            do (let ((name (sb-di:debug-fun-name (sb-di:frame-debug-fun frame))))
                 (when (eq name 'user-boundary) (setf ended t) (return))
                 (unless (or (guest-name-p name) (and leading (signalling-name-p name deep)))
                   (setf leading nil)
                   (push (list name frame) frames))
                 (when (eq name 'sb-kernel:internal-error) (setf deep t)))
               (setf frame (sb-di:frame-down frame)))
      (when ended (loop while (and frames (eval-name-p (first (first frames)))) do (pop frames)))
      (let ((form (and ended (toplevel-name-p (first (first frames))) (second (first frames)))))
        (loop for (name frame more)
                in (fold-frames (without-internal (delete-if #'loader-name-p (nreverse frames) :key #'first))
                                (or ended (null frame)))
              for locals = (unless (or (eq how :names) (not (users-frame-p name))) (describe-locals frame how))
              repeat +max-frames+
              unless (and (eq frame form) (null locals))
                collect (make-shown :text (if (eq frame form)
                                              "(top-level form)"
                                              (format nil "~A~@[ [~A of the same]~]" (frame-text frame how) more))
                                    :locals locals
                                    :frame (and (eq how :full) frame)))))))

(defun toplevel-name-p (name)
  "Whether NAME is that of the function that EVAL makes of a form, or SB-DI:EVAL-IN-FRAME, with its own parameter."
  (and (consp name) (eq (first name) 'lambda)
       (typep (rest name) '(cons (or null (cons (and symbol (not null)) null)) null))
       (every (lambda (parameter) (null (symbol-package parameter))) (second name))))

(defun release-frames (failure)
  "The stack is about to be unwound, so its frames and its restarts, which are on it, can no longer be used."
  (dolist (offer (failure-restarts failure)) (setf (offer-restart offer) nil))
  (dolist (shown (failure-frames failure)) (setf (shown-frame shown) nil)))

(defun frame-lines (shown)
  "The lines of each frame: its number and text, and its variables."
  (loop for each in shown
        for number from 0
        collect (format nil "~D: ~A" number (shown-text each))
        append (local-lines each)))

(defun local-lines (shown)
  (loop for (name text handle) in (shown-locals shown)
        collect (format nil "     ~A = ~A~@[ [handle ~D]~]" name text handle)))

(defun report-text (condition)
  (multiple-value-bind (text cut) (print-bounded +message-chars+ (lambda (stream) (princ condition stream)))
    (if cut (format nil "~A... [cut at ~:D characters]" text +message-chars+) text)))

(defparameter *no-input-text*
  "There is no more input: a session has none. Put the value into the code instead, or bind *STANDARD-INPUT*, as in
(with-input-from-string (*standard-input* \"text\") (read-line)).")

(defun input-ended-p (condition)
  "Whether the code has read from the empty input of the session."
  (and (typep condition 'end-of-file)
       (let ((stream (ignore-errors (stream-error-stream condition))))
         (loop for name in '(*standard-input* *terminal-io*)
               thereis (eq stream (sb-ext:symbol-global-value name))))))

(defun condition-text (condition)
  (with-plain-printing ()
    (let ((*print-pretty* t) (*print-escape* nil))
      (handler-case
          (cond ((input-ended-p condition) *no-input-text*)
                ((not (reader-error-p condition)) (report-text condition))
                ((unclosed-p condition) (unclosed-text (cursor-code *cursor*)))
                (t (without-stream (report-text condition))))
        (error () (format nil "A ~A whose report function failed." (symbol-title (type-of condition))))))))

(defun restart-arity (restart)
  "Whether RESTART takes a value: T, :OPTIONAL or nil."
  (let* ((function (ignore-errors (sb-kernel::restart-function restart)))
         (parameters (and (functionp function) (ignore-errors (sb-introspect:function-lambda-list function)))))
    (cond ((null parameters) nil)
          ((not (listp parameters)) :optional)
          ((eq (first parameters) '&rest) (if (sb-kernel::restart-interactive-function restart) t :optional))
          ((member (first parameters) lambda-list-keywords) :optional)
          (t t))))

;;; A restart has functions of the user, which may fail: one tells whether it applies to a condition, one reports it.

(defun established-restarts (&optional condition)
  "All restarts for CONDITION, without asking them whether they apply."
  (let ((found '()))
    (sb-kernel::map-restarts (lambda (restart) (push restart found)) condition nil)
    (nreverse found)))

(defun failed-note (function condition)
  (format nil "(its ~A function failed: ~A)" function (symbol-title (type-of condition))))

(defun restart-applies (restart condition)
  "Whether RESTART applies to CONDITION. If its function for that fails: true, and a note."
  (handler-case (and (funcall (sb-kernel::restart-test-function restart) condition) t)
    (serious-condition (problem) (values t (failed-note "test" problem)))))

(defun restart-text (restart)
  (handler-case (values (print-bounded 500 (lambda (stream) (princ restart stream))))
    (serious-condition (problem) (failed-note "report" problem))))

(defun restart-offers (condition job)
  "An offer for each restart, without those of the guest's thread."
  (with-plain-printing ()
    (let ((*print-pretty* nil))
      (loop for restart in (established-restarts condition)
            for (applies note) = (unless (and job (member restart (job-base-restarts job)))
                                   (multiple-value-list (restart-applies restart condition)))
            when applies
              collect (make-offer :name (and (restart-name restart) (symbol-name (restart-name restart)))
                                  :text (format nil "~A~@[ ~A~]" (restart-text restart) note)
                                  :restart restart
                                  :takes-value (restart-arity restart)
                                  :asks (and (sb-kernel::restart-interactive-function restart) t))))))

(defun offer-lines (offers)
  (loop for offer in offers
        for number from 0
        collect (format nil "~D: [~:[unnamed~;~:*~A~]] ~A~@[ (~A)~]" number (offer-name offer) (offer-text offer)
                        (case (offer-takes-value offer) ((t) "takes a value") (:optional "can take a value")))))

(defun continue-advice (condition restarts)
  "How to take the restart CONTINUE, if that is useful: not if it retries, breaks a lock or ignores an error."
  (let* ((offer (find "CONTINUE" restarts :key #'offer-name :test #'equal)) (continue (and offer (offer-text offer))))
    (when (and continue (typep condition 'error) (not (reader-error-p condition)) (not (may-hold-p condition))
               (notany (lambda (word) (eql (search word continue) 0)) '("Retry" "Ignore")))
      (format nil "To take the restart CONTINUE (~A): (handler-bind ((error #'continue)) (eval '...))"
              (string-right-trim "." continue)))))

(defun stack-advice (condition)
  "How to let a deep tail recursion run, if the frames of tail calls are kept."
  (when (and (string= (symbol-title (type-of condition)) "CONTROL-STACK-EXHAUSTED") (debug-environment))
    "Code of a session keeps the frames of tail calls. For a deep tail recursion: (declaim (optimize (debug 2))), then
define the function again."))

(defun failure-of (condition)
  (let* ((storage (typep condition 'storage-condition)) (restarts (restart-offers condition *job*)))
    (make-failure :type (symbol-title (type-of condition))
                  :message (format nil "~A~@[~%~A~]~@[~%~A~]" (condition-text condition)
                                   (if storage (stack-advice condition) (continue-advice condition restarts))
                                   (ignore-errors (with-plain-printing () (failed-form-text))))
                  :hint (and (unclosed-p condition) *unclosed-hint*)
                  :restarts restarts
                  :frames (if (reader-error-p condition) '() (user-frames (if storage :names :full)))
                  :damaged (typep condition 'sb-sys:memory-fault-error))))
