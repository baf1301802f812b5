;;;; What is told of a failure while the stack still stands: the condition in words, the restarts that were on offer,
;;;; and the frames of the user's code, without those of the guest around it and of the signalling above it.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defconstant +frames+ 20 "Frames that are told of one failure.")
(defconstant +argument-chars+ 120 "Characters of one argument in a frame.")
(defconstant +message-chars+ 10000 "Characters of a condition's report.")
(defconstant +walk+ 400 "Frames looked at to find those.")
(defconstant +fold+ 4 "Frames in a row of the same function that are all told.")

(defstruct failure
  "Why an evaluation did not end by itself. KIND is :ERROR, :HEAP or :INTERRUPTED."
  (kind :error :type symbol)
  (type "" :type string)
  (message "" :type string)
  (restarts nil :type list)
  (frames nil :type list)
  (damaged nil)
  (time (get-universal-time)))

(defun print-bounded (cap print)
  "What PRINT writes to the stream it is called with, and whether it was cut after CAP characters."
  (let* ((tag (list nil)) (cut nil)
         (stream (make-instance 'gathering-stream :cap cap :full (lambda () (setf cut t) (throw tag nil)))))
    (catch tag (funcall print stream))
    (values (gathered stream) cut)))

(defmacro with-plain-printing (() &body body)
  "Whatever the user has set, a failure can be told."
  `(let ((*print-readably* nil) (*print-circle* t) (*print-length* 10) (*print-level* 4) (*print-lines* nil)
         (*print-base* 10) (*print-radix* nil) (*print-case* :upcase) (*print-escape* t) (*print-array* t)
         (*print-gensym* t) (*print-right-margin* nil) (*print-miser-width* 16))
     ,@body))

(defun unprintable-p (argument)
  "SBCL's own mark for an argument that it does not know any more."
  (let ((type (later "UNPRINTABLE-OBJECT" "SB-DEBUG"))) (and type (typep argument type))))

(defun print-argument (argument calm)
  "CALM: no method of the user's is called, for it may be what was interrupted."
  (handler-case
      (if (or (eq argument :invalid-value-for-unescaped-register-storage)
              (and calm (typep argument '(or standard-object structure-object condition))
                    (not (unprintable-p argument))))
          (format nil "#<~A>" (if (keywordp argument) "unavailable" (symbol-title (type-of argument))))
          (multiple-value-bind (text cut) (print-bounded +argument-chars+ (lambda (stream) (prin1 argument stream)))
            (if cut (concatenate 'string text "...") text)))
    (error () "#<unprintable>")))

(defun guest-name-p (name)
  (typecase name
    (symbol (eq (symbol-package name) (load-time-value (find-package "CATENARY-GUEST"))))
    (cons (or (guest-name-p (car name)) (guest-name-p (cdr name))))))

(defun last-symbol (name)
  "Of (FLET X :IN Y) it is Y."
  (if (consp name) (last-symbol (car (last name))) name))

(defun home-p (name packages)
  (let ((symbol (last-symbol name)))
    (and (symbolp symbol) symbol (symbol-package symbol)
         (member (package-name (symbol-package symbol)) packages :test #'string=))))

(defun machinery-p (name deep)
  "Frames that stand between the place of a failure and the one who looks at it. DEEP: below the first handler."
  (or (stringp (last-symbol name))
      (and (not deep)
           (or (member (last-symbol name) '(signal error cerror warn break invoke-debugger))
               (home-p name '("SB-KERNEL" "SB-INT" "SB-DEBUG" "SB-THREAD" "SB-SYS" "SB-UNIX" "SB-VM" "SB-ALIEN"))))))

(defun under-p (name)
  "The frames of SBCL's own EVAL and READ, which stand under the user's."
  (or (eq name 'eval) (home-p name '("SB-IMPL" "SB-INT")) (and *code-stream* (eq name 'read))))

(defun plain-name (name)
  "The function of COMMON-LISP that SBCL's own TWO-ARG-* and its kin stand for, or nil."
  (when (and (home-p name '("SB-KERNEL")) (symbolp name) (eql (mismatch "TWO-ARG-" (symbol-name name)) 8))
    (let ((plain (find-symbol (subseq (symbol-name name) 8) "COMMON-LISP")))
      (and plain (fboundp plain) (not (macro-function plain)) plain))))

(defun frame-text (frame how)
  (multiple-value-bind (name arguments)
      (let ((call (later "FRAME-CALL" "SB-DEBUG")))
        (if (and call (not (eq how :names)))
            (funcall call frame)
            (sb-di:debug-fun-name (sb-di:frame-debug-fun frame))))
    (format nil "(~A~{ ~A~})" (print-argument (or (plain-name name) name) nil)
            (if (listp arguments) (mapcar (lambda (each) (print-argument each (eq how :calm))) arguments) '()))))

(defun some-home-p (name test)
  "Whether a symbol in NAME, such as (FLET X :IN Y), has a home whose name passes TEST."
  (typecase name
    (cons (or (some-home-p (car name) test) (some-home-p (cdr name) test)))
    (symbol (and name (symbol-package name) (funcall test (package-name (symbol-package name)))))))

(defun loader-p (name)
  "The frames of loading and compiling, which may stand between the user's."
  (or (and (symbolp (last-symbol name))
           (member (symbol-name (last-symbol name)) '("SIMPLE-EVAL-IN-LEXENV" "%SIMPLE-EVAL" "EVAL-TLF"
                                                      "LOAD-AS-SOURCE" "%WITH-COMPILATION-UNIT"
                                                      "CALL-WITH-LOADER-PACKAGE-NAMES")
                   :test #'string=)
           (some-home-p (last-symbol name) (lambda (home) (eql (mismatch "SB-" home) 3))))
      (some-home-p name (lambda (home)
                          (or (string= home "SB-FASL") (string= home "SB-C")
                              (eql (mismatch "ASDF/" home) 5) (eql (mismatch "UIOP/" home) 5))))))

(defun inner-p (name) (home-p name '("SB-KERNEL" "SB-INT" "SB-IMPL" "SB-VM")))

(defun without-inner (frames)
  "FRAMES, of which each begins with its name, without the first if they are SBCL's own way to do what is told below."
  (let ((plain (plain-name (first (first frames)))) (rest (member-if-not #'inner-p frames :key #'first)))
    (cond (plain (cons (first frames) (member plain (rest frames) :key #'first :test-not #'eq)))
          ((and rest (not (equal (first (first rest)) '(lambda ())))) rest)
          (t frames))))

(defun folded (frames all)
  "FRAMES, with a long row of the same function as two of them: name, frame, and how many more there were. ALL: there
are none below these."
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

(defun user-frames (&optional (how :full))
  "Texts of the frames from where it happened down to the user's form. HOW is :FULL, :CALM or :NAMES."
  (with-plain-printing ()
    (let ((*print-pretty* nil) (leading t) (deep nil) (frames '()) (ended nil) (frame (sb-di:top-frame)))
      (loop repeat +walk+
            while frame
            do (let ((name (sb-di:debug-fun-name (sb-di:frame-debug-fun frame))))
                 (when (eq name 'user-boundary) (setf ended t) (return))
                 (unless (or (guest-name-p name) (and leading (machinery-p name deep)))
                   (setf leading nil)
                   (push (list name frame) frames))
                 (when (eq name 'sb-kernel:internal-error) (setf deep t)))
               (setf frame (sb-di:frame-down frame)))
      (when ended (loop while (and frames (under-p (first (first frames)))) do (pop frames)))
      (loop for (nil frame more)
              in (folded (without-inner (delete-if #'loader-p (nreverse frames) :key #'first)) (or ended (null frame)))
            repeat +frames+
            collect (format nil "~A~@[ [~A of the same]~]" (frame-text frame how) more)))))

(defun report-text (condition)
  (multiple-value-bind (text cut) (print-bounded +message-chars+ (lambda (stream) (princ condition stream)))
    (if cut (format nil "~A... [cut at ~:D characters]" text +message-chars+) text)))

(defun condition-text (condition)
  (with-plain-printing ()
    (let ((*print-pretty* t) (*print-escape* nil))
      (handler-case
          (cond ((not (reading-p condition)) (report-text condition))
                ((and (typep condition 'end-of-file) *spot*) (unclosed-text (spot-code *spot*)))
                (t (without-stream (report-text condition))))
        (error () (format nil "A ~A whose own report failed." (symbol-title (type-of condition))))))))

(defun restart-list (condition job)
  "Name and words of each restart; those of the guest's thread are no offer."
  (with-plain-printing ()
    (let ((*print-pretty* nil))
      (loop for restart in (compute-restarts condition)
            unless (and job (member restart (job-base-restarts job)))
              collect (cons (and (restart-name restart) (symbol-name (restart-name restart)))
                            (handler-case (values (print-bounded 500 (lambda (stream) (princ restart stream))))
                              (error () "")))))))

(defun way-on (condition restarts)
  "How CONTINUE is taken, where it leads on: not one that tries the same again, breaks a lock or passes over a fault."
  (let ((continue (cdr (assoc "CONTINUE" restarts :test #'equal))))
    (when (and continue (typep condition 'error) (not (reading-p condition))
               (notany (lambda (word) (eql (search word continue) 0)) '("Retry" "Ignore")))
      (format nil "To take its restart CONTINUE (~A): (handler-bind ((error #'continue)) (eval '...))"
              (string-right-trim "." continue)))))

(defun failure-of (condition)
  (let* ((storage (typep condition 'storage-condition)) (restarts (restart-list condition *job*)))
    (make-failure :type (symbol-title (type-of condition))
                  :message (format nil "~A~@[~%~A~]~@[~%~A~]" (condition-text condition)
                                   (and (not storage) (way-on condition restarts))
                                   (ignore-errors (with-plain-printing () (spot-text))))
                  :restarts restarts
                  :frames (if (reading-p condition) '() (user-frames (if storage :names :full)))
                  :damaged (typep condition 'sb-sys:memory-fault-error))))
